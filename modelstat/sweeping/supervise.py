"""One model in a process of its own, forked here, watched, and killed at its limits."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import select
import signal
import sys
import sysconfig
import tempfile
import time
from typing import IO, NamedTuple, NoReturn

import msgspec

from modelstat.sweeping import frames
from modelstat.sweeping.evaluate import Part, evaluate, timed
from modelstat.sweeping.request import Request
from modelstat.sweeping.row import Outcome, Status
from modelstat.sweeping.rows import failed
from modelstat.sweeping.traces import walked
from modelstat.units import bytes_, seconds

TICK_SECONDS = 0.05
"""How often a model's memory and time are looked at: it may take what it can allocate in that time above its limit."""
GRACE_SECONDS = 1.0
"""How long a process that closed its pipe has to end."""


class End(NamedTuple):
    """How a process ended, or was ended."""

    status: Status
    reason: str


def supervised(request: Request, source: int) -> Outcome:
    """Run a job in a forked process and wait for it. Batches that it leaves unanswered are failures, with its end as the reason.

    Exits this process where ``source`` ends: nobody is left to answer to.
    """
    start = time.perf_counter()
    with tempfile.TemporaryFile() as fault:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            os.close(source)
            _run(request, writer, fault)
        os.close(writer)
        with contextlib.suppress(OSError):  # the child does the same: whoever comes first
            os.setpgid(child, child)
        process = _Process(child)
        try:
            parts, end = _watch(request, process, reader, source)
        finally:
            os.close(reader)
            status = process.end()
        end = end or post_mortem(status, fault)
    total = time.perf_counter() - start
    missing = request.job.batches[len(parts) :]
    for batch in missing:
        spent = (total - sum(part.seconds for part in parts)) if batch == missing[0] else 0.0
        parts.append(timed(failed(request.job, batch, end.status, end.reason), (), spent))
    rows, layers = (row for part in parts for row in part.rows), (layer for part in parts for layer in part.layers)
    return Outcome(request.job.index, tuple(rows), tuple(layers), total, process.processor_seconds)


def _run(request: Request, writer: int, fault: IO[bytes]) -> NoReturn:
    """In the forked process: evaluate the job, and leave without running any exit handler."""
    code = 1
    try:
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        _die_first()
        faulthandler.enable(fault, all_threads=False)
        for part in evaluate(request.job, walked(request.job)):
            frames.write(writer, msgspec.msgpack.encode(part))
        code = 0
    finally:
        os._exit(code)


def _die_first() -> None:
    """On Linux: end with the parent, and be the first that the system kills when memory runs out."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")


def _watch(request: Request, child: _Process, reader: int, source: int) -> tuple[list[Part], End | None]:
    """The parts that the process gives, until it has given all, ends or reaches a limit; then the limit."""
    splitter, decoder = frames.Splitter(), msgspec.msgpack.Decoder(Part)
    parts: list[Part] = []
    deadline = None if request.timeout is None else time.monotonic() + request.timeout
    while len(parts) < len(request.job.batches):
        ready = select.select([reader, source], [], [], TICK_SECONDS)[0]
        if source in ready:
            child.end()
            sys.exit()
        if reader in ready:
            piece = os.read(reader, 1 << 20)
            parts += map(decoder.decode, splitter.feed(piece))
            if not piece:
                if not child.ended(GRACE_SECONDS):
                    return parts, End("crash", "it closed the pipe that its result was expected from: its process was killed")
                break
        elif child.ended():  # its own children may hold the pipe open
            break
        if deadline is not None and time.monotonic() > deadline:
            return parts, End("timeout", f"it took longer than {seconds(request.timeout or 0)}: its process was killed")
        used = child.resident_bytes()
        if request.memory is not None and used > request.memory:
            return parts, End("memory", f"its process took {bytes_(used)} of memory, {bytes_(request.memory)} is the limit: it was killed")
    return parts, None


class _Process:
    """A forked process."""

    def __init__(self, identifier: int) -> None:
        self._identifier = identifier
        self._status: int | None = None
        self.processor_seconds = 0.0
        """What it took of a processor's time, known when it has ended (s)."""

    def ended(self, patience: float = 0.0) -> bool:
        """Whether it has ended, after waiting that long for it at most (s)."""
        until = time.monotonic() + patience
        while self._status is None:
            if self._reaped(os.WNOHANG):
                break
            if time.monotonic() >= until:
                return False
            time.sleep(0.01)
        return True

    def _reaped(self, options: int = 0) -> bool:
        found, status, usage = os.wait4(self._identifier, options)
        if found:
            self._status, self.processor_seconds = status, usage.ru_utime + usage.ru_stime
        return bool(found)

    def end(self) -> int:
        """Kill it and all that it started, as far as they still run; its wait status."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._identifier, signal.SIGKILL)
        if self._status is None:
            os.kill(self._identifier, signal.SIGKILL)  # if it has no group of its own yet
            self._reaped()
        assert self._status is not None
        return self._status

    def resident_bytes(self) -> int:
        """Its resident memory (B), what it shares with this process included; 0 if it is gone."""
        import psutil

        try:
            return int(psutil.Process(self._identifier).memory_info().rss)
        except psutil.Error:
            return 0


def post_mortem(status: int, fault: IO[bytes]) -> End:
    """What a wait status says of a process that ended by itself; ``fault`` has its traceback if it crashed."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGKILL:
            return End("memory", "its process was killed by the system (SIGKILL), most likely since memory ran out")
        name = (signal.strsignal(number) or "signal").lower()
        return End("crash", f"its process ended with a {name} ({signal.Signals(number).name}){_place(fault)}")
    return End("crash", f"its process ended with exit code {os.waitstatus_to_exitcode(status)} before it gave a result")


def _place(fault: IO[bytes]) -> str:
    """The innermost line of faulthandler's traceback that is not of the standard library or of an installed package."""
    fault.seek(0)
    installed = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    for line in fault.read().decode(errors="replace").splitlines():
        _, quote, rest = line.partition('  File "')
        path, _, where = rest.partition('", ')
        if quote and where and not path.startswith((*installed, "<")):
            return f" at {path}, {where}"
    return ""
