"""Each model is walked as seldom as its batches allow, and gives what a walk at each batch gives."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from modelstat import __version__
from modelstat.api import trace_spec
from modelstat.errors import TraceError
from modelstat.records import Trace
from modelstat.sweeping.grid import Grid, Job
from modelstat.sweeping.request import Request
from modelstat.sweeping.traces import NotCachedError, Traces, cached, walked


def job(spec: str, batches: tuple[int | None, ...], precisions: tuple[str | None, ...] = (None,), *, cache: bool = False) -> Job:
    (found,) = Grid((spec,), ("3x8x8",), batches, precisions).jobs(cache=cache)
    return found


@pytest.mark.parametrize(
    ("model", "batches", "fetched"),
    [
        ("good", (None,), [None]),
        ("good", (1,), [1]),
        ("good", (1, 8, 64), [1, 8, 64]),  # two batches above 1 take two walks either way
        ("good", (2, 8, 64), [2, 3]),
        ("good", (1, 8, 16, 32, 64), [1, 2, 3]),
        ("Loops", (4, 5, 6), [2, 3, 4, 5, 6]),  # its ops depend on the batch
        ("OnlyFour", (4, 5, 6), [2, 4, 5, 6]),  # it does not take the small batches
    ],
)
def test_walks(models: str, model: str, batches: tuple[int | None, ...], fetched: list[int | None]) -> None:
    asked: list[int | None] = []
    this = job(f"{models}:{model}", batches)
    walk = walked(this)

    def fetch(batch: int | None) -> Trace:
        asked.append(batch)
        return walk(batch)

    traces = Traces(this, fetch)
    found = {batch: traces.at(batch) for batch in batches}
    assert asked == fetched
    for batch, trace in found.items():
        assert trace == trace_spec(f"{models}:{model}", "3x8x8", batch, cache=False)


def test_tf32_is_traced_as_fp32(models: str) -> None:
    trace = walked(job(f"{models}:good", (1,), ("tf32",)))(1)
    assert trace == trace_spec(f"{models}:good", "3x8x8", 1, "fp32", cache=False)


def test_cached_traces_need_no_walk(models: str) -> None:
    spec = f"{models}:good(width=5)"
    with pytest.raises(NotCachedError):
        cached(job(spec, (1,), cache=True))(1)
    trace = trace_spec(spec, "3x8x8", 1)
    assert cached(job(spec, (1,), cache=True))(1) == trace
    with pytest.raises(NotCachedError):
        cached(job(spec, (1,), cache=False))(1)


def test_a_worker_answers_from_the_cache_without_torch(models: str) -> None:
    spec = f"{models}:good(width=6)"
    for batch in (1, 2, 3):
        trace_spec(spec, "3x8x8", batch)
    payload = msgspec.msgpack.encode(Request(job(spec, (1, 8, 16, 32), cache=True), __version__, memory=1e9))
    program = (
        "import sys, msgspec\n"
        "from modelstat.sweeping.row import Outcome\n"
        "from modelstat.sweeping.task import run\n"
        f"outcome = msgspec.msgpack.decode(run({payload!r}), type=Outcome)\n"
        "assert 'torch' not in sys.modules\n"
        "print([row.macs for row in outcome.rows])\n"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout == f"{[27 * 6 * 64 * batch for batch in (1, 8, 16, 32)]}\n"


def test_what_fetching_raises_passes_through(models: str) -> None:
    this = job(f"{models}:OnlyFour", (1,))
    with pytest.raises(TraceError, match="batch 1"):
        Traces(this, walked(this)).at(1)
