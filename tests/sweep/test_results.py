"""A results file survives whatever ends the process that writes it, and whatever happens to it afterwards."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from modelstat.errors import OutputError, UsageError
from modelstat.hardware.database import resolve
from modelstat.sweeping import parquet
from modelstat.sweeping.files import Files, rows, tables
from modelstat.sweeping.grid import Grid
from modelstat.sweeping.journal import Entry, Journal
from modelstat.sweeping.manifest import Manifest, read_manifest
from modelstat.sweeping.results import FEWEST_ROWS, Results
from modelstat.sweeping.row import Layer, Outcome

MakeOutcome = Callable[..., Outcome]


def jobs(path: Path) -> list[int]:
    return [row.job for row in rows(Files(path))]


def layer_jobs(path: Path) -> list[int]:
    return [job for table in tables(Files(path), Layer) for job in table.column("job").to_pylist()]


def abandoned(results: Results) -> None:
    """Leave a results file as a killed process does: nothing is written any more, and the lock is gone."""
    os.close(results._journal._descriptor)


def test_rows_come_back_as_they_were_added(tmp_path: Path, grid: Grid, outcome: MakeOutcome) -> None:
    path = tmp_path / "r.parquet"
    results = Results.open(path, grid)
    added = [outcome(job, rows=2) for job in (5, 3, 99)]
    for each in added:
        results.add(each)
    assert list(results.rows()) == [row for each in added for row in each.rows]
    assert (results.done, results.is_finished(3), results.is_finished(4)) == (3, True, False)
    results.close()
    assert list(rows(Files(path))) == [row for each in added for row in each.rows]
    assert pq.read_table(path).column("macs").to_pylist() == [50, 50, 30, 30, 990, 990]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["r.parquet", "r.parquet.manifest"]


def test_the_file_is_whole_at_every_moment(tmp_path: Path, grid: Grid, outcome: MakeOutcome) -> None:
    path = tmp_path / "r.parquet"
    results = Results.open(path, grid)
    for job in range(100):
        results.add(outcome(job))
        assert pq.read_metadata(path).num_rows >= (job + 1) * 3 // 4 - FEWEST_ROWS
        assert jobs(path) == list(range(job + 1))
    results.close()
    assert results.tally == {"ok": 100}
    assert pq.read_table(path).column("job").to_pylist() == list(range(100))


def test_row_groups_grow_with_the_file(tmp_path: Path, outcome: MakeOutcome) -> None:
    results = Results.open(tmp_path / "r.parquet", Grid(tuple(map(str, range(2000)))))
    for job in range(2000):
        results.add(outcome(job))
    results.close()
    # Groups of 16 up to 4 x 16 rows, then each a quarter of what is there: 1.25**n = 2000 / 64 gives n = 15.4.
    groups = pq.read_metadata(tmp_path / "r.parquet").num_row_groups
    assert 4 + 15 - 2 <= groups <= 4 + 16 + 2


def test_long_row_groups_are_split(tmp_path: Path, grid: Grid, outcome: MakeOutcome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 10)
    results = Results.open(tmp_path / "r.parquet", msgspec.structs.replace(grid, layers=True))
    results.add(outcome(0, rows=25, layers=31))
    results.close()
    assert pq.read_metadata(tmp_path / "r.parquet").num_row_groups == 3
    assert pq.read_metadata(tmp_path / "r.layers.parquet").num_row_groups == 4


@pytest.mark.parametrize("added", [0, 1, FEWEST_ROWS - 1, FEWEST_ROWS, 40])
@pytest.mark.parametrize("layers", [0, 3])
def test_a_killed_process_loses_nothing(tmp_path: Path, grid: Grid, outcome: MakeOutcome, added: int, layers: int) -> None:
    path, grid = tmp_path / "r.parquet", msgspec.structs.replace(grid, layers=bool(layers))
    results = Results.open(path, grid)
    for job in range(added):
        results.add(outcome(job, layers=layers))
    abandoned(results)
    assert jobs(path) == list(range(added))
    resumed = Results.open(path, grid, resume=True)
    assert [job for job in range(100) if resumed.is_finished(job)] == list(range(added))
    for job in range(added, 100):
        resumed.add(outcome(job, layers=layers))
    resumed.close()
    assert jobs(path) == list(range(100))
    if layers:
        assert layer_jobs(path) == [job for job in range(100) for _ in range(layers)]


@pytest.mark.parametrize("torn", [b"", b'{"generation":0,"outco', b"\0" * 100, b"\0" * 100 + b"\n"])
def test_a_torn_line_of_the_journal_is_not_a_row(tmp_path: Path, grid: Grid, outcome: MakeOutcome, torn: bytes) -> None:
    path = tmp_path / "r.parquet"
    results = Results.open(path, grid)
    for job in range(3):
        results.add(outcome(job))
    abandoned(results)
    with Files(path).journal.open("ab") as file:
        file.write(torn)
    assert jobs(path) == [0, 1, 2]
    resumed = Results.open(path, grid, resume=True)
    resumed.add(outcome(3))
    abandoned(resumed)
    assert jobs(path) == [0, 1, 2, 3]


@pytest.mark.parametrize("step", ["layers", "results", "manifest"])
def test_a_crash_within_a_commit(tmp_path: Path, grid: Grid, outcome: MakeOutcome, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process dies after each of the steps that move the journal into Parquet."""
    path, grid = tmp_path / "r.parquet", msgspec.structs.replace(grid, layers=True)
    results = Results.open(path, grid)
    for job in range(3):
        results.add(outcome(job, layers=2))

    class DiesError(Exception):
        pass

    def dies(*_: object) -> None:
        raise DiesError

    if step == "layers":
        results._logs.reverse()
        monkeypatch.setattr(results._logs[1], "append", dies)
    elif step == "results":
        monkeypatch.setattr(Manifest, "write", dies)
    else:
        monkeypatch.setattr(Journal, "clear", dies)
    with pytest.raises(DiesError):
        results._fold()
    monkeypatch.undo()
    abandoned(results)
    assert jobs(path) == [0, 1, 2]
    resumed = Results.open(path, grid, resume=True)
    resumed.add(outcome(7, layers=2))
    resumed.close()
    assert jobs(path) == [0, 1, 2, 7]
    assert layer_jobs(path) == [0, 0, 1, 1, 2, 2, 7, 7]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("victim", ["results", "layers"])
def test_a_truncated_file_is_recovered_up_to_its_last_row_group(
    tmp_path: Path, grid: Grid, outcome: MakeOutcome, share: float, victim: str
) -> None:
    path, grid = tmp_path / "r.parquet", msgspec.structs.replace(grid, layers=True)
    results = Results.open(path, grid)
    for job in range(100):
        results.add(outcome(job, layers=2))
    results.close()
    file = path if victim == "results" else Files(path).layers
    size = round(share * file.stat().st_size)
    footer = pq.read_metadata(file)
    ends = [_end(footer.row_group(index)) for index in range(footer.num_row_groups)]
    whole = sum(end <= size for end in ends)
    os.truncate(file, size)

    recovered = Results.open(path, grid, resume=True)
    kept = jobs(path)
    # The two files have the same commits: results have one row a job, layers two.
    per_job = 1 if victim == "results" else 2
    assert kept == list(range(sum(footer.row_group(index).num_rows for index in range(whole)) // per_job))
    assert recovered.done == len(kept)
    assert layer_jobs(path) == [job for job in kept for _ in range(2)]
    for job in range(len(kept), 100):
        recovered.add(outcome(job, layers=2))
    recovered.close()
    assert jobs(path) == list(range(100))
    assert layer_jobs(path) == [job for job in range(100) for _ in range(2)]
    assert whole > 0 or share < 0.3


def _end(group: pq.RowGroupMetaData) -> int:
    columns = [group.column(index) for index in range(group.num_columns)]
    return max((c.dictionary_page_offset or c.data_page_offset) + c.total_compressed_size for c in columns)


def test_truncated_while_the_journal_holds_rows(tmp_path: Path, grid: Grid, outcome: MakeOutcome) -> None:
    path = tmp_path / "r.parquet"
    results = Results.open(path, grid)
    for job in range(2 * FEWEST_ROWS + 5):
        results.add(outcome(job))
    abandoned(results)
    os.truncate(path, _end(pq.read_metadata(path).row_group(0)) + 10)
    first = list(range(FEWEST_ROWS))
    last = list(range(2 * FEWEST_ROWS, 2 * FEWEST_ROWS + 5))
    assert jobs(path) == first + last
    Results.open(path, grid, resume=True).close()
    assert jobs(path) == first + last


def test_a_file_that_exists_needs_a_choice(tmp_path: Path, grid: Grid, outcome: MakeOutcome) -> None:
    path = tmp_path / "r.parquet"
    results = Results.open(path, grid)
    results.add(outcome(0))
    results.close()
    with pytest.raises(OutputError, match="exists already: --resume goes on with it, --overwrite starts anew"):
        Results.open(path, grid)
    with pytest.raises(UsageError, match="exclude each other"):
        Results.open(path, grid, resume=True, overwrite=True)
    Results.open(path, grid, resume=True).close()
    assert jobs(path) == [0]
    Results.open(path, grid, overwrite=True).close()
    assert jobs(path) == []


def test_resuming_what_is_not_there_starts_it(tmp_path: Path, grid: Grid) -> None:
    Results.open(tmp_path / "r.parquet", grid, resume=True).close()
    assert jobs(tmp_path / "r.parquet") == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"batches": (1, 8)}, "--batch default there, 1,8 here"),
        ({"precisions": ("fp16",)}, "--precision default there, fp16 here"),
        ({"inputs": ("3x32x32", None)}, "--input default there, 3x32x32,default here"),
        ({"gpus": resolve(["v100"])}, "--gpu none there, v100-pcie-32 here"),
        ({"layers": True}, "--layers False there, True here"),
        ({"specs": ("model0",)}, "models (100, digest"),
    ],
)
def test_another_grid_is_refused(tmp_path: Path, grid: Grid, change: dict[str, object], words: str) -> None:
    path = tmp_path / "r.parquet"
    Results.open(path, grid).close()
    with pytest.raises(OutputError) as raised:
        Results.open(path, msgspec.structs.replace(grid, **change), resume=True)
    assert words in str(raised.value)
    assert "--overwrite" in str(raised.value)


def test_another_definition_of_the_same_gpu_is_another_grid(tmp_path: Path, grid: Grid) -> None:
    gpus = resolve(["v100"])
    Results.open(tmp_path / "r.parquet", msgspec.structs.replace(grid, gpus=gpus)).close()
    faster = (msgspec.structs.replace(gpus[0], bandwidth_gbs=1000.0),)
    with pytest.raises(OutputError, match="--gpu"):
        Results.open(tmp_path / "r.parquet", msgspec.structs.replace(grid, gpus=faster), resume=True)


def test_another_version_is_refused(tmp_path: Path, grid: Grid) -> None:
    path = tmp_path / "r.parquet"
    Results.open(path, grid).close()
    manifest = read_manifest(Files(path).manifest)
    assert manifest is not None
    msgspec.structs.replace(manifest, modelstat="0.0.1").write(Files(path).manifest)
    with pytest.raises(OutputError, match=r"made by modelstat 0\.0\.1, this is .*--overwrite"):
        Results.open(path, grid, resume=True)


def test_a_file_without_a_manifest_is_not_resumed(tmp_path: Path, grid: Grid) -> None:
    path = tmp_path / "r.parquet"
    Results.open(path, grid).close()
    Files(path).manifest.unlink()
    with pytest.raises(OutputError, match=r"no manifest \(r\.parquet\.manifest\) beside it"):
        Results.open(path, grid, resume=True)


def test_two_sweeps_do_not_write_one_file(tmp_path: Path, grid: Grid) -> None:
    path = tmp_path / "r.parquet"
    first = Results.open(path, grid)
    with pytest.raises(OutputError, match=r"r\.parquet is being written by another sweep"):
        Results.open(path, grid, resume=True)
    first.close()
    Results.open(path, grid, resume=True).close()


def test_a_folder_that_does_not_exist(tmp_path: Path, grid: Grid) -> None:
    with pytest.raises(OutputError, match="there is no directory"):
        Results.open(tmp_path / "no" / "r.parquet", grid)


def test_a_file_that_is_no_results_file(tmp_path: Path) -> None:
    (tmp_path / "r.parquet").write_text("hello")
    with pytest.raises(OutputError, match="is not a Parquet file that can be read"):
        jobs(tmp_path / "r.parquet")
    with pytest.raises(OutputError, match="does not exist"):
        jobs(tmp_path / "other.parquet")


def _adds_for_ever(path: Path, grid: Grid, made: list[Outcome]) -> None:
    results = Results.open(path, grid)
    for each in made:
        results.add(each)


def test_kill_at_any_time(tmp_path: Path, outcome: MakeOutcome) -> None:
    """A process that writes as fast as it can is killed at different times: what is there is always a beginning of its rows."""
    grid = Grid(tuple(map(str, range(3000))), layers=True)
    made = [outcome(job, layers=1) for job in range(3000)]
    seen = []
    for delay in (0.15, 0.2, 0.3):
        path = tmp_path / f"{delay}" / "r.parquet"
        path.parent.mkdir()
        process = multiprocessing.get_context("fork").Process(target=_adds_for_ever, args=(path, grid, made))
        process.start()
        process.join(delay)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        if not Files(path).manifest.exists():
            continue
        copy = tmp_path / f"copy{delay}"
        shutil.copytree(path.parent, copy)
        found = jobs(copy / "r.parquet")
        assert found == list(range(len(found)))
        Results.open(path, grid, resume=True).close()
        assert jobs(path) == found
        assert layer_jobs(path) == found
        seen.append(len(found))
    assert seen


def test_entries_are_one_line(outcome: MakeOutcome) -> None:
    assert b"\n" not in msgspec.json.encode(Entry(0, outcome(0)))
