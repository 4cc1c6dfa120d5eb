"""Whatever a model does to its process is a row with the reason, and the next model does not notice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from modelstat import __version__
from modelstat.sweeping import frames
from modelstat.sweeping.grid import Grid
from modelstat.sweeping.isolation import Zygote
from modelstat.sweeping.request import Request
from modelstat.sweeping.row import Outcome

CONV_MACS = 27 * 8 * 16 * 16
"""Of Conv2d(3, 8, 3, padding=1) on 3x16x16."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log") / "builds.log"


@pytest.fixture(scope="module")
def zygote(log: Path) -> Iterator[Zygote]:
    """One for all tests, since it takes seconds to start."""
    found = Zygote()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BUILD_LOG", str(log))
        yield found
    found.close()


def run(
    zygote: Zygote, spec: str, *, timeout: float | None = 20.0, memory: float | None = 3e9, batches: tuple[int | None, ...] = (1,)
) -> Outcome:
    (job,) = Grid((spec,), ("3x16x16",), batches).jobs(cache=False)
    return zygote.outcome(Request(job, __version__, timeout, memory))


@pytest.mark.parametrize(
    ("model", "status", "reason"),
    [
        ("good", "ok", None),
        ("raises", "error", "ValueError: on purpose"),
        ("exits", "error", "exit(3) was called"),
        ("Exits", "error", "exit('bye') was called"),
        ("no_such_function", "error", "has no 'no_such_function'"),
        ("refused", "memory", "MemoryError"),
        ("crashes", "crash", "its process ended with a segmentation fault (SIGSEGV) at {models}, line 36 in crashes"),
        ("leaves", "crash", "its process ended with exit code 4 before it gave a result"),
        ("killed", "memory", "killed by the system (SIGKILL)"),
        ("closes", "crash", "closed the pipe"),
    ],
)
def test_how_a_model_ends(zygote: Zygote, models: str, model: str, status: str, reason: str | None) -> None:
    (row,) = run(zygote, f"{models}:{model}").rows
    assert row.status == status
    if reason is None:
        assert (row.reason, row.macs) == (None, CONV_MACS)
    else:
        assert reason.format(models=models) in str(row.reason)
        assert row.macs is None
    (after,) = run(zygote, f"{models}:good").rows
    assert (after.status, after.macs) == ("ok", CONV_MACS)


def test_time_limit(zygote: Zygote, models: str) -> None:
    run(zygote, f"{models}:good")
    start = time.monotonic()
    (row,) = run(zygote, f"{models}:hangs", timeout=0.5).rows
    assert time.monotonic() - start < 10
    assert (row.status, row.reason) == ("timeout", "it took longer than 500 ms: its process was killed")
    assert 0.5 <= row.seconds < 10


def test_memory_limit(zygote: Zygote, models: str) -> None:
    (row,) = run(zygote, f"{models}:eats", memory=1.2e9).rows
    assert row.status == "memory"
    assert "1.20 GB is the limit: it was killed" in str(row.reason)


def test_a_batch_that_fails_leaves_the_others(zygote: Zygote, models: str) -> None:
    outcome = run(zygote, f"{models}:OnlyFour", batches=(1, 4, 9, 5))
    assert [(row.batch, row.status) for row in outcome.rows] == [(1, "error"), (4, "ok"), (9, "error"), (5, "ok")]
    assert sum(row.seconds for row in outcome.rows) <= outcome.seconds


def test_what_is_left_of_a_killed_job_fails_with_it(zygote: Zygote, models: str) -> None:
    outcome = run(zygote, f"{models}:hangs", batches=(1, 8), timeout=0.3)
    assert [(row.batch, row.status) for row in outcome.rows] == [(1, "timeout"), (8, "timeout")]


def test_torch_is_imported_once_and_stays_as_it_was(zygote: Zygote, models: str, log: Path) -> None:
    log.unlink(missing_ok=True)
    rows = [row for model in ("good", "patches", "good(width=16)") for row in run(zygote, f"{models}:{model}").rows]
    assert [row.macs for row in rows] == [CONV_MACS, 0, 2 * CONV_MACS]  # the patched one convolves nothing
    built = [line.split() for line in log.read_text().splitlines()]
    assert len({process for _, process, _ in built}) == 3
    assert len({parent for _, _, parent in built}) == 1


def test_processes_of_a_model_end_with_it(zygote: Zygote, models: str, log: Path) -> None:
    log.unlink(missing_ok=True)
    (row,) = run(zygote, f"{models}:leaves_a_child").rows
    assert row.status == "ok"
    child = int(log.read_text().split()[0])
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_a_zygote_that_dies_is_replaced_and_ends_with_its_worker(zygote: Zygote, models: str) -> None:
    run(zygote, f"{models}:good")
    assert zygote._process is not None
    zygote._process.kill()
    assert run(zygote, f"{models}:good").rows[0].status == "ok"
    # A model that runs when the pipe is closed ends too.
    process = psutil.Process(zygote._process.pid)
    (job,) = Grid((f"{models}:good(wait=1000.0)",), ("3x16x16",)).jobs(cache=False)
    assert zygote._process.stdin is not None
    frames.write(zygote._process.stdin.fileno(), msgspec.msgpack.encode(Request(job, __version__)))
    until = time.monotonic() + 20
    while not (children := process.children()) and time.monotonic() < until:
        time.sleep(0.02)
    assert len(children) == 1
    zygote.close()
    assert psutil.wait_procs([process, *children], timeout=10)[1] == []
