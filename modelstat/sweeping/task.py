"""What the cluster runs: one job, from the request to the outcome. Everything that it needs travels with it."""

from __future__ import annotations

import time

import msgspec

from modelstat import __version__
from modelstat.errors import ModelstatError
from modelstat.sweeping.evaluate import Part, described, evaluate
from modelstat.sweeping.isolation import zygote
from modelstat.sweeping.request import Request
from modelstat.sweeping.row import Outcome
from modelstat.sweeping.rows import failed
from modelstat.sweeping.traces import NotCachedError, cached

WORKER_SHARE = 0.95
"""Of a worker's memory limit, what one model may take."""


class VersionError(Exception):
    """The worker runs another modelstat than the sweep."""


def run(payload: bytes) -> bytes:
    """Answer an encoded Request with an encoded Outcome. A job whose traces are all cached is evaluated here, without torch."""
    request = msgspec.msgpack.decode(payload, type=Request)
    if request.version != __version__:
        raise VersionError(f"a worker runs modelstat {__version__}, the sweep is of {request.version}: install the same everywhere")
    if request.memory is None:
        request = msgspec.structs.replace(request, memory=_worker_memory())
    return msgspec.msgpack.encode(_from_cache(request) or zygote().outcome(request))


def _from_cache(request: Request) -> Outcome | None:
    """The outcome if no model has to be walked for it; a spec that cannot be read needs none either."""
    start, processor = time.perf_counter(), time.thread_time()
    try:
        parts = list(evaluate(request.job, cached(request.job)))
    except NotCachedError:
        return None
    except ModelstatError as error:
        parts = [Part(failed(request.job, batch, *described(error))) for batch in request.job.batches]
    rows, layers = (row for part in parts for row in part.rows), (layer for part in parts for layer in part.layers)
    return Outcome(request.job.index, tuple(rows), tuple(layers), time.perf_counter() - start, time.thread_time() - processor)


def _worker_memory() -> float | None:
    """What one model may take of this worker's memory (B); None if it has no limit."""
    from distributed import get_worker

    limit = get_worker().memory_manager.memory_limit
    return None if limit is None else WORKER_SHARE * limit
