"""The worker's side of isolation: it keeps one zygote, asks it for outcomes, and starts another one if it is lost."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from typing import IO

import msgspec

from modelstat.sweeping import frames
from modelstat.sweeping.processes import command
from modelstat.sweeping.request import Request
from modelstat.sweeping.row import Outcome
from modelstat.sweeping.rows import failed

ATTEMPTS = 2
"""How often a job is tried whose zygote dies; what only the model's own process does never comes here."""

_SINGLE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS")}
"""A process with several threads should not be forked, and a worker is one of many on its machine."""


class Zygote:
    """A running zygote, started on the first request. One request at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def outcome(self, request: Request) -> Outcome:
        """The outcome of a job. A zygote that dies is replaced; a job that loses two of them has crashed."""
        for _ in range(ATTEMPTS):
            process = self._process or self._start()
            try:
                frames.write(_descriptor(process.stdin), msgspec.msgpack.encode(request))
                return msgspec.msgpack.decode(frames.read(_descriptor(process.stdout)), type=Outcome)
            except (EOFError, OSError):
                self.close()
        reason = "the process that models are started from died, twice: memory may have run out, or torch cannot be imported"
        rows = (row for batch in request.job.batches for row in failed(request.job, batch, "crash", reason))
        return Outcome(request.job.index, tuple(rows))

    def _start(self) -> subprocess.Popen[bytes]:
        # Its own session: Control-C in a terminal is for the sweep, which closes everything in order.
        self._process = subprocess.Popen(
            command("modelstat.sweeping.zygote"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
            env={**os.environ, **_SINGLE_THREAD},
        )
        return self._process

    def close(self) -> None:
        """End it, with the model that it may be running."""
        if self._process is not None:
            process, self._process = self._process, None
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    pipe and pipe.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)
            process.kill()
            process.wait()


def _descriptor(pipe: IO[bytes] | None) -> int:
    assert pipe is not None
    return pipe.fileno()


_threads = threading.local()


def zygote() -> Zygote:
    """The zygote of this thread: a worker with several threads runs as many models at once."""
    if not hasattr(_threads, "zygote"):
        _threads.zygote = Zygote()
    found: Zygote = _threads.zygote
    return found
