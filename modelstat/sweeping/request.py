"""What a worker is asked: one job, and the limits on it."""

from __future__ import annotations

import msgspec

from modelstat.sweeping.grid import Job


class Request(msgspec.Struct, frozen=True):
    """``timeout`` (s) and ``memory`` (B) hold for the process that walks the model; None is no limit."""

    job: Job
    version: str
    """Version of modelstat that the sweep runs: the worker's must be the same."""
    timeout: float | None = None
    memory: float | None = None
