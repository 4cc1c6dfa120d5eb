"""Whole sweeps: on a cluster of their own, on another one, and through every way of being ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

import modelstat
from modelstat import __version__
from modelstat.errors import ClusterError, MissingExtraError, OutputError, UsageError
from modelstat.hardware.database import resolve
from modelstat.sweeping import cluster, task
from modelstat.sweeping.dispatch import Answer, Task
from modelstat.sweeping.files import Files, rows
from modelstat.sweeping.grid import Grid
from modelstat.sweeping.request import Request
from modelstat.sweeping.row import Row
from modelstat.sweeping.sweep import Sweep, _outcome

WIDTHS = range(1, 13)
PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
from modelstat.cli import main
code = main(sys.argv[1:])
assert "torch" not in sys.modules, "the parent imported torch"
sys.exit(code)
"""


def identity(row: Row) -> Row:
    """A row without what differs from run to run."""
    return msgspec.structs.replace(row, seconds=0.0)


def ordered(found: Iterator[Row] | tuple[Row, ...] | list[Row]) -> list[Row]:
    return sorted(map(identity, found), key=lambda row: (row.job, row.batch or 0, str(row.precision), str(row.gpu)))


def builds(log: Path) -> Counter[str]:
    return Counter(line.split()[0] for line in log.read_text().splitlines())


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)


def test_models_that_fail_in_every_way(models: str, build_log: Path, tmp_path: Path) -> None:
    names = ["good(width=1)", "raises", "good(width=2)", "hangs", "crashes", "good(width=3)", "exits", "eats", "leaves", "good(width=4)"]
    gpus = resolve(["v100,t4"])
    sweep = modelstat.sweep(
        [f"{models}:{name}" for name in names],
        inputs="3x16x16", precision=["fp32", "tf32"], gpu=gpus, workers=2, timeout=6.0, memory=1.2e9, cache=False,
        output=tmp_path / "r.parquet", layers=True,
    )  # fmt: skip
    found = list(sweep)
    # Each model is one job of 2 precisions x 2 GPUs, whether it fails or not, and each good one was walked once for all four.
    assert Counter(row.spec for row in found) == {f"{models}:{name}": 4 for name in names}
    assert builds(build_log) == {str(width): 1 for width in range(1, 5)}
    assert {row.spec.partition(":")[2]: row.status for row in found} == {
        "good(width=1)": "ok", "raises": "error", "good(width=2)": "ok", "hangs": "timeout", "crashes": "crash", "good(width=3)": "ok",
        "exits": "error", "eats": "memory", "leaves": "crash", "good(width=4)": "ok",
    }  # fmt: skip
    good = [row for row in found if row.status == "ok"]
    assert {(row.name.partition("width=")[2], row.macs) for row in good} == {(f"{n})", 27 * n * 16 * 16) for n in range(1, 5)}
    assert all(row.reason for row in found if row.status != "ok")
    assert ordered(sweep.failures) == [row for row in ordered(found) if row.status != "ok"]
    assert sweep.tally == {"ok": 16, "error": 8, "crash": 8, "timeout": 4, "memory": 4}
    assert sweep.statistics.jobs == 10
    assert sweep.statistics.threads == 2
    # Nothing is left to do: the same rows come from the file.
    assert ordered(list(sweep)) == ordered(found)
    frame = sweep.to_dataframe()
    assert (len(frame), str(frame["macs"].dtype), str(frame["fits"].dtype)) == (40, "Int64", "boolean")
    assert len(sweep.to_dataframe(layers=True)) == 16 * 3  # the model, its convolution and its ReLU
    # Two workers, one process each that models were forked from.
    assert len({line.split()[2] for line in build_log.read_text().splitlines()}) <= 2


def test_traces_are_kept_for_the_next_sweep(models: str, build_log: Path) -> None:
    specs = [f"{models}:good(width={width})" for width in (31, 32, 33)]
    with_batches = {"inputs": "3x16x16", "batch": [1, 4, 8, 64], "workers": 1}
    first = list(modelstat.sweep(specs, **with_batches))  # type: ignore[arg-type]
    # Batch 1 is walked, and 2 and 3, which tell all others.
    assert builds(build_log) == {"31": 3, "32": 3, "33": 3}
    sweep = modelstat.sweep(specs, gpu="v100", **with_batches)  # type: ignore[arg-type]
    stopped = iter(sweep)
    next(stopped)
    stopped.close()  # type: ignore[attr-defined]
    second = sweep.run().to_dataframe()
    assert builds(build_log) == {"31": 3, "32": 3, "33": 3}
    assert sorted(second["macs"]) == sorted(row.macs or 0 for row in first)
    assert {(row.batch, row.macs) for row in first if row.spec == specs[0]} == {(b, 27 * 31 * 256 * b) for b in (1, 4, 8, 64)}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log") / "builds.log"


@pytest.fixture(scope="module")
def address(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A scheduler and two workers of their own, over loopback, in another folder; the first two processes are the workers."""
    folder = tmp_path_factory.mktemp("cluster")
    file = folder / "scheduler.json"
    environment = {**os.environ, "BUILD_LOG": str(log), "PYTHONPATH": str(Path(modelstat.__file__).parents[1])}
    started = []

    def start(module: str, *arguments: str) -> None:
        command = [sys.executable, "-W", "ignore", "-m", f"distributed.cli.{module}", "--no-dashboard", "--scheduler-file", str(file)]
        started.append(subprocess.Popen([*command, *arguments], cwd=folder, env=environment, stderr=subprocess.DEVNULL))

    start("dask_scheduler", "--host", "127.0.0.1", "--port", "0")
    for _ in range(2):
        start("dask_worker", "--nthreads", "1", "--no-nanny")
    wait_for(file.exists)
    yield json.loads(file.read_text())["address"]
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def specs(models: str) -> list[str]:
    return [f"{models}:good(width={width}, wait=0.4)" for width in WIDTHS]


@pytest.fixture(scope="module")
def uninterrupted(address: str, specs: list[str], log: Path) -> list[Row]:
    """All rows of a sweep that nothing interrupts, on the workers at that address."""
    log.unlink(missing_ok=True)
    sweep = modelstat.sweep(specs, inputs="3x16x16", batch=[1, 2], scheduler=address, cache=False)
    found = ordered(list(sweep))
    assert sweep.statistics.threads == 2
    return found


def test_workers_of_another_cluster(uninterrupted: list[Row], log: Path) -> None:
    assert [(row.batch, row.macs) for row in uninterrupted] == [(b, 27 * width * 256 * b) for width in WIDTHS for b in (1, 2)]
    assert len({line.split()[2] for line in log.read_text().splitlines()}) == 2  # both of them worked
    assert builds(log) == {str(width): 2 for width in WIDTHS}


def test_a_worker_that_is_lost_costs_no_row(uninterrupted: list[Row], address: str, specs: list[str], log: Path) -> None:
    """A worker is killed while it runs a model: that model runs again on the other one."""
    log.unlink()
    arrived: list[Row] = []
    for row in modelstat.sweep(specs, inputs="3x16x16", batch=[1, 2], scheduler=address, cache=False):
        arrived.append(row)
        if len(arrived) == 3:
            zygote = int(log.read_text().splitlines()[-1].split()[2])
            worker = psutil.Process(zygote).parent()
            assert worker is not None
            worker.kill()
    assert ordered(arrived) == uninterrupted


def test_an_interrupted_sweep_gives_the_rows_of_an_uninterrupted_one(
    uninterrupted: list[Row], specs: list[str], tmp_path: Path, build_log: Path
) -> None:
    """Control-C, then --resume; kill -9, then --resume again."""
    listed, output = tmp_path / "specs.txt", tmp_path / "r.parquet"
    listed.write_text("\n".join(specs))
    arguments = ["sweep", "--from", str(listed), "--input", "3x16x16", "--batch", "1,2", "--no-cache"]

    def start(workers: int, *more: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROGRAM, *arguments, "--output", str(output), "--workers", str(workers), *more]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def finished() -> int:
        return len(list(rows(Files(output)))) if Files(output).manifest.exists() else 0

    first = start(1)
    wait_for(lambda: finished() >= 4)
    first.send_signal(signal.SIGINT)
    _, errors = first.communicate(timeout=30)
    assert first.returncode == 130
    interrupted = finished()
    assert f"modelstat: {interrupted} of 24 rows are in {output}: the same command with --resume goes on" in errors

    second = start(2, "--resume")
    wait_for(lambda: finished() >= interrupted + 4)
    family = psutil.Process(second.pid).children(recursive=True)
    assert len(family) >= 4  # two workers, and what they fork models from
    os.kill(second.pid, signal.SIGKILL)
    second.communicate()
    assert psutil.wait_procs(family, timeout=20)[1] == []
    killed = finished()
    assert interrupted + 4 <= killed < 24
    done_before = {row.name.partition("width=")[2].partition(",")[0] for row in rows(Files(output))}
    before = builds(build_log)

    third = start(1, "--resume")
    out, errors = third.communicate(timeout=120)
    assert third.returncode == 0, errors
    assert "24 of 24: 24 ok" in out
    assert ordered(rows(Files(output))) == uninterrupted
    after = builds(build_log)
    assert all(after[width] == before[width] for width in done_before)
    assert sum(after.values()) <= 2 * (12 + 1 + 2)  # at most what the workers were at when it ended, of two batches each


def test_a_scheduler_that_is_not_there(models: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    with pytest.raises(ClusterError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        modelstat.sweep(f"{models}:good", scheduler="tcp://127.0.0.1:9").run()
    with pytest.raises(UsageError, match="--workers is for a cluster on this machine"):
        modelstat.sweep(f"{models}:good", scheduler="tcp://127.0.0.1:9", workers=2).run()


def test_a_worker_of_another_version_refuses(models: str) -> None:
    (job,) = Grid((f"{models}:good",)).jobs()
    with pytest.raises(task.VersionError, match=rf"a worker runs modelstat {__version__}, the sweep is of 0\.0\.1"):
        task.run(msgspec.msgpack.encode(Request(job, "0.0.1")))


def test_a_job_that_loses_all_its_workers_has_crashed(models: str) -> None:
    (job,) = Grid((f"{models}:good",), batches=(1, 2)).jobs()
    payload = msgspec.msgpack.encode(Request(job, __version__))
    outcome = _outcome(Answer(Task(0, job.spec, payload), None, "the worker that ran it was lost"))
    assert [(row.batch, row.status, row.reason) for row in outcome.rows] == [
        (1, "crash", "the worker that ran it was lost"), (2, "crash", "the worker that ran it was lost"),
    ]  # fmt: skip


def test_mistakes_are_found_before_anything_runs(models: str, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="there is no directory"):
        modelstat.sweep(f"{models}:good", output=tmp_path / "no" / "r.parquet")
    with pytest.raises(modelstat.UnknownGpuError):
        modelstat.sweep(f"{models}:good", gpu="no such gpu")
    modelstat.sweep(f"{models}:good", output=tmp_path / "r.parquet")
    with pytest.raises(OutputError, match="--resume goes on with it"):
        modelstat.sweep(f"{models}:good", output=tmp_path / "r.parquet")


def test_without_the_extra(models: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"dask\[distributed\] is not installed.*\[sweep\]"):
        Sweep(Grid((f"{models}:good",)))
