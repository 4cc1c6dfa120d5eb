"""One job, evaluated in this process: batch after batch, a failure becoming rows like everything else."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import msgspec

from modelstat.errors import ModelstatError
from modelstat.sweeping.grid import Job
from modelstat.sweeping.row import Layer, Row, Status
from modelstat.sweeping.rows import evaluated, failed
from modelstat.sweeping.traces import Fetch, NotCachedError, Traces


class Part(msgspec.Struct, frozen=True):
    """The rows of one batch of a job."""

    rows: tuple[Row, ...]
    layers: tuple[Layer, ...] = ()
    seconds: float = 0.0


def evaluate(job: Job, fetch: Fetch) -> Iterator[Part]:
    """One part per batch of the job, in order. Whatever a model raises becomes a part; only NotCachedError passes through."""
    traces = Traces(job, fetch)
    for batch in job.batches:
        start = time.perf_counter()
        try:
            rows, layers = evaluated(job, traces.at(batch))
        except NotCachedError:
            raise
        except BaseException as error:  # a model may raise SystemExit or KeyboardInterrupt
            status, reason = described(error)
            rows, layers = failed(job, batch, status, reason), ()
        yield timed(rows, layers, time.perf_counter() - start)


def timed(rows: Iterable[Row], layers: tuple[Layer, ...], seconds: float) -> Part:
    """A part whose rows say how long it took (s)."""
    return Part(tuple(msgspec.structs.replace(row, seconds=seconds) for row in rows), layers, seconds)


def described(error: BaseException) -> tuple[Status, str]:
    """How a model failed, and why in one line."""
    status: Status = "memory" if any(map(_is_memory, _causes(error))) else "error"
    if isinstance(error, SystemExit):
        return status, f"exit({error.code!r}) was called"
    if isinstance(error, ModelstatError):
        return status, str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return status, f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _is_memory(error: BaseException) -> bool:
    """An allocation that was refused; torch has no class of its own for it on the CPU."""
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)
