"""The traces of one job at all its batch sizes, walked as seldom as possible."""

from __future__ import annotations

from collections.abc import Callable

from modelstat.errors import ModelstatError
from modelstat.records import Trace
from modelstat.sweeping.grid import SAME_TRACE, Job
from modelstat.trace.batches import HIGH, LOW, BatchPair, NotAffineError

Fetch = Callable[[int | None], Trace]
"""Gives the trace at one batch."""


class NotCachedError(Exception):
    """The cache does not hold a trace: the model has to be walked."""


def walked(job: Job) -> Fetch:
    """Traces from the cache, or else by walking the model in this process. Raises what :func:`modelstat.walking.trace_spec` raises."""
    from modelstat.api import trace_spec

    def fetch(batch: int | None) -> Trace:
        last = job.execution.walks_channels_last
        return trace_spec(job.target, job.inputs, batch, _traced_precision(job), channels_last=last, cache=job.cache)

    return fetch


def cached(job: Job) -> Fetch:
    """Traces from the cache only: torch is not imported and no code of the model runs. Raises NotCachedError."""
    from modelstat.api import trace_key
    from modelstat.sources import parse
    from modelstat.trace.cache import TraceCache

    source, store = parse(job.target), TraceCache()

    def fetch(batch: int | None) -> Trace:
        key = trace_key(source, job.inputs, batch, _traced_precision(job), job.execution.walks_channels_last)
        trace = store.get(key) if job.cache else None
        if trace is None:
            raise NotCachedError
        return trace

    return fetch


def _traced_precision(job: Job) -> str | None:
    first = job.precisions[0]
    return SAME_TRACE[0] if first in SAME_TRACE else first


class Traces:
    """The trace of a job at any of its batches.

    Three batches above 1 or more are evaluated from the walks at two small ones, see :mod:`modelstat.trace.batches`. Where sizes are not
    affine in the batch, or the model does not take the small ones, each batch is walked by itself.
    """

    def __init__(self, job: Job, fetch: Fetch) -> None:
        self._fetch = fetch
        self._wanted = len({batch for batch in job.batches if batch is not None and batch > 1}) > 2
        self._pair: BatchPair | None = None

    def at(self, batch: int | None) -> Trace:
        """The trace at a batch. Raises what fetching it raises."""
        pair = self._two() if batch is not None and batch > 1 else None
        if pair is not None and batch is not None:
            try:
                return pair.at(batch)
            except NotAffineError:
                pass
        return self._fetch(batch)

    def _two(self) -> BatchPair | None:
        if self._wanted and self._pair is None:
            try:
                self._pair = BatchPair(self._fetch(LOW), self._fetch(HIGH))
            except (NotAffineError, ModelstatError):
                self._wanted = False
        return self._pair
