"""The Dask cluster that does the work: one on this machine for the time of the sweep, or any other by its address."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from modelstat.errors import ClusterError, MissingExtraError, UsageError

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 20

_CONFIGURATION = {
    # A worker gets a task when it is idle, not before: a task that waits behind a long one could not be seen from outside.
    "distributed.scheduler.worker-saturation": 1.0,
    # Sampling the stack of threads that only wait for a model tells nothing.
    "distributed.worker.profile.enabled": False,
    # What the scheduler keeps of past transitions is never read.
    "distributed.admin.low-level-log-length": 100,
}


def require_distributed() -> None:
    """Raises MissingExtraError if dask[distributed] is not installed, UsageError on a system without fork."""
    if not hasattr(os, "fork"):
        raise UsageError("a sweep forks a process for each model, which this system cannot do: run it on Linux or macOS, or in WSL")
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("dask[distributed]", "sweep", "a sweep") from error


def check_address(scheduler: str) -> None:
    """Raises UsageError for what is no address of a scheduler: Dask would take a minute to say so."""
    protocol, there, _ = scheduler.partition("://")
    if (not there or protocol in ("tcp", "tls", "ws", "wss")) and not re.search(r".:\d{1,5}/?$", scheduler):
        raise UsageError(f"--scheduler {scheduler!r} is no address of a Dask scheduler: write it like tcp://10.0.0.5:8786")


@contextlib.contextmanager
def connected(scheduler: str | None = None, workers: int | None = None) -> Iterator[Client]:
    """A client of the cluster at an address, or of one that is started here: processes of one thread, sharing the machine's memory.

    ``workers`` is the size of the latter, by default one per core. Raises ClusterError if there is no cluster, UsageError for both.
    """
    if scheduler is not None:
        check_address(scheduler)
    require_distributed()
    import dask
    from dask.system import CPU_COUNT
    from distributed import Client, LocalCluster
    from distributed.system import MEMORY_LIMIT

    if scheduler is not None:
        if workers is not None:
            raise UsageError("--workers is for a cluster on this machine: one that is given by --scheduler has workers of its own")
        try:
            client = Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, asyncio.TimeoutError) as error:
            raise ClusterError(f"no Dask scheduler answers at {scheduler}: {error or type(error).__name__}") from error
        with _silent(), client:
            yield client
        return
    number = workers or CPU_COUNT
    with (
        _silent(),
        dask.config.set(_CONFIGURATION),
        LocalCluster(
            n_workers=number,
            threads_per_worker=1,
            processes=True,
            memory_limit=MEMORY_LIMIT // number,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Keep Dask's log off the terminal: what matters of it is raised."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
