"""Many tasks through a cluster, few at a time, so that what is kept here does not grow with their number."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from modelstat.errors import ClusterError

if TYPE_CHECKING:
    from distributed import Client, Future

FEWEST = 64
"""Tasks that the scheduler knows of at least: enough for an adaptive cluster to see that more workers would help."""
PER_THREAD = 4
"""Tasks per thread of the cluster, so that no worker waits for the next one."""
TICK_SECONDS = 1.0

GROUP = "modelstat-sweep"
"""The name under which a Dask dashboard shows the tasks."""


class Task(NamedTuple):
    """One call of the function: what it is given, and how it is called in the progress."""

    job: int
    name: str
    payload: bytes


class Answer(NamedTuple):
    """What came back: the result, or why the worker that ran it was lost again and again."""

    task: Task
    result: bytes | None
    lost: str | None = None


class Situation(NamedTuple):
    """What the cluster does at a moment."""

    threads: int
    running: Sequence[str]


def dispatched(
    client: Client, function: Callable[[bytes], bytes], tasks: Iterable[Task], tick: Callable[[Situation], None]
) -> Iterator[Answer]:
    """Run all tasks and give their answers as they come. ``tick`` is told about once a second what is running.

    A task whose worker is lost runs again elsewhere, as often as the scheduler allows (three times by default).
    Raises ClusterError if the scheduler goes away or a worker cannot run the function.
    """
    remaining = iter(tasks)
    flying: dict[object, tuple[Task, Future[Any]]] = {}
    done: SimpleQueue[Future[Any]] = SimpleQueue()
    ticked, threads = 0.0, 0
    while True:
        if time.monotonic() - ticked > TICK_SECONDS:
            situation = _situation(client, {key: task.name for key, (task, _) in flying.items()})
            ticked, threads = time.monotonic(), situation.threads
            tick(situation)
        for task in islice(remaining, max(0, max(FEWEST, PER_THREAD * threads) - len(flying))):
            future = client.submit(function, task.payload, key=(GROUP, task.job), pure=False, retries=0)
            flying[future.key] = task, future
            future.add_done_callback(done.put)
        if not flying:
            return
        try:
            future = done.get(timeout=TICK_SECONDS / 4)
        except Empty:
            continue
        task, _ = flying.pop(future.key)
        yield _answer(task, future)
        future.release()


def _answer(task: Task, future: Future[Any]) -> Answer:
    from distributed import KilledWorker

    if future.status == "finished":
        return Answer(task, future.result())
    if future.status != "error":
        raise ClusterError(f"the Dask scheduler went away: what is finished is kept, --resume goes on ({task.name} was {future.status})")
    error = future.exception()
    if isinstance(error, KilledWorker):
        return Answer(task, None, f"the worker that ran it was lost, and so were those that tried again: {str(error).splitlines()[0]}")
    kind = type(error).__name__
    raise ClusterError(f"a worker cannot do the work, is the same modelstat installed there? {kind}: {error}") from error


def _situation(client: Client, names: dict[object, str]) -> Situation:
    """The first task of each worker is what it runs; others wait there."""
    try:
        processing = client.processing()
        threads = sum(client.nthreads().values())
    except (OSError, ValueError) as error:
        raise ClusterError(f"the Dask scheduler went away: what is finished is kept, --resume goes on ({error})") from error
    running = [names[keys[0]] for keys in processing.values() if keys and keys[0] in names]
    return Situation(threads, running)
