"""SQL over a results file, in whatever state it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from modelstat.errors import OutputError, UsageError
from modelstat.sweeping.files import Files
from modelstat.sweeping.grid import Grid
from modelstat.sweeping.query import Query
from modelstat.sweeping.results import Results
from modelstat.sweeping.row import Outcome

MakeOutcome = Callable[..., Outcome]


@pytest.fixture
def results(tmp_path: Path, grid: Grid, outcome: MakeOutcome) -> Path:
    """40 rows, two layers each, in a path that SQL must quote."""
    path = tmp_path / "it's mine.parquet"
    opened = Results.open(path, msgspec.structs.replace(grid, layers=True))
    for job in range(40):
        opened.add(outcome(job, layers=2))
    opened.close()
    return path


def answer(statement: str, path: Path) -> list[tuple[object, ...]]:
    return list(Query(statement, path).rows())


def test_results_and_layers(results: Path) -> None:
    query = Query("SELECT spec, macs FROM results WHERE job < 3 ORDER BY job DESC", results)
    assert query.columns == ["spec", "macs"]
    assert list(query.rows()) == [("model2", 20), ("model1", 10), ("model0", 0)]
    joined = "SELECT r.job, count(*) FROM results r JOIN layers l USING (job) GROUP BY r.job HAVING r.job = 7"
    assert answer(joined, results) == [(7, 2)]
    assert answer("SELECT sum(macs)::BIGINT FROM results", results) == [(10 * 40 * 39 // 2,)]


def test_more_rows_than_are_fetched_at_once(results: Path) -> None:
    assert len(answer("SELECT * FROM range(25000)", results)) == 25000


def test_a_sweep_that_is_still_running_or_was_killed(tmp_path: Path, grid: Grid, outcome: MakeOutcome) -> None:
    path = tmp_path / "r.parquet"
    opened = Results.open(path, grid)
    assert answer("SELECT count(*) FROM results", path) == [(0,)]
    for job in range(20):
        opened.add(outcome(job))
    assert pq.read_metadata(path).num_rows == 16
    assert answer("SELECT count(*), count(DISTINCT job) FROM results", path) == [(20, 20)]
    opened.close()
    os.truncate(path, path.stat().st_size - 100)
    assert answer("SELECT count(*) FROM results", path) == [(20,)]


def test_another_parquet_file_without_a_manifest(results: Path) -> None:
    Files(results).manifest.unlink()
    assert answer("SELECT count(*) FROM results", results) == [(40,)]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("SELEC 1", "query: Parser Error"),
        ("SELECT nope FROM results", "nope"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT spec::INTEGER FROM results", "model"),
        ("", "query: it is empty"),
    ],
)
def test_mistakes_are_one_line(results: Path, statement: str, words: str) -> None:
    with pytest.raises(UsageError) as raised:
        answer(statement, results)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "^" not in str(raised.value)
    assert "LINE 1" not in str(raised.value)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"no\.parquet does not exist: `modelstat sweep"):
        answer("SELECT 1", tmp_path / "no.parquet")
