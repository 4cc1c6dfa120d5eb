"""The outcomes that are not in the Parquet file yet, one JSON line each: a job is finished when its line is written."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from modelstat.errors import OutputError
from modelstat.sweeping.row import Outcome

SYNC_SECONDS = 1.0
"""How long a line may be in the system's memory only, where a loss of power reaches it."""


class Entry(msgspec.Struct, frozen=True):
    """One line: it belongs into a Parquet file of exactly this generation, and is in those of any later one already."""

    generation: int
    outcome: Outcome


class Journal:
    """A file that only grows, until all of it is in Parquet. One process may write to it. Raises OutputError, OSError."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        self._synced = time.monotonic()
        self.path = path
        try:
            self._lock()
        except BlockingIOError:
            os.close(self._descriptor)
            raise OutputError(f"{path.with_suffix('')} is being written by another sweep: wait for it, or name another --output") from None
        self._drop_torn_line()

    def _lock(self) -> None:
        import fcntl

        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _drop_torn_line(self) -> None:
        """What a crash left behind the last whole line, so that the next line begins a line."""
        with self.path.open("rb") as file:
            whole = sum(len(line) for line in file if line.endswith(b"\n"))
        os.ftruncate(self._descriptor, whole)

    def add(self, entry: Entry) -> None:
        """Write one line. It survives the end of this process at once, and a loss of power after :data:`SYNC_SECONDS`."""
        line = memoryview(msgspec.json.encode(entry) + b"\n")
        while line:
            line = line[os.write(self._descriptor, line) :]
        if time.monotonic() - self._synced > SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Force everything onto the disk."""
        os.fsync(self._descriptor)
        self._synced = time.monotonic()

    def clear(self) -> None:
        """Forget all lines."""
        os.ftruncate(self._descriptor, 0)

    def close(self) -> None:
        """Close it; an empty journal is removed."""
        if not os.fstat(self._descriptor).st_size:
            self.path.unlink(missing_ok=True)
        os.close(self._descriptor)


def entries(path: Path) -> Iterator[Entry]:
    """The whole lines of a journal, none if there is no such file. A line that was torn by a crash ends them."""
    decoder = msgspec.json.Decoder(Entry)
    try:
        with path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    return
                yield decoder.decode(line)
    except (FileNotFoundError, msgspec.DecodeError):
        return
