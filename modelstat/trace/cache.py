"""Traces on disk, so that a model traced once is evaluated again without importing torch."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import modelstat
from modelstat import collector
from modelstat.records import TRACE_SCHEMA, Trace, decode_trace, encode_trace

SUFFIX = ".trace"
"""Of a stored trace: its JSON, compressed by zlib."""
TEMPORARY = ".tmp"
LIMIT_BYTES = 1_000_000_000
"""Size (B) above which the entries that were not used for the longest time are removed."""
STALE_SECONDS = 3600
"""Age (s) at which a temporary file belongs to a process that died while writing it."""


class CacheInfo(NamedTuple):
    """What is in the cache: where, how many traces, and their size (B)."""

    directory: Path
    files: int
    bytes: int


class TraceCache:
    """Traces by key. An entry that cannot be read is removed and counts as absent; a folder that cannot be written to stays empty."""

    def __init__(self, directory: Path | None = None, *, limit_bytes: int = LIMIT_BYTES) -> None:
        self.directory = directory if directory is not None else default_directory()
        self.limit_bytes = limit_bytes

    def get(self, key: Mapping[str, Any]) -> Trace | None:
        """The trace stored under ``key``, or None."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        try:
            with collector.paused():
                trace = decode_trace(zlib.decompress(data))
        except (zlib.error, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        # The time of the last use: file systems are often mounted without access times.
        with contextlib.suppress(OSError):
            os.utime(path)
        return trace

    def put(self, key: Mapping[str, Any], trace: Trace) -> None:
        """Store a trace. Readers see the old entry or the new one, never a part; the last of two writers wins."""
        path = self._path(key)
        temporary = None
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=self.directory, suffix=TEMPORARY)
            with os.fdopen(descriptor, "wb") as file:
                # The fastest level: it takes less time than writing what it saves, a tenth of the size or less.
                file.write(zlib.compress(encode_trace(trace), 1))
            os.replace(temporary, path)
        except OSError as error:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            _warn_once(f"modelstat: traces are not cached, {self.directory} cannot be written to: {error.strerror}")
            return
        self._trim(path)

    def clear(self) -> tuple[int, int]:
        """Remove all entries; their number and size (B)."""
        files = size = 0
        for path, stat in self._entries((SUFFIX, TEMPORARY)):
            with contextlib.suppress(OSError):
                path.unlink()
                files += path.suffix == SUFFIX
                size += stat.st_size
        return files, size

    def info(self) -> CacheInfo:
        """Where the cache is, and its number of entries and size (B)."""
        sizes = [stat.st_size for _, stat in self._entries((SUFFIX,))]
        return CacheInfo(self.directory, len(sizes), sum(sizes))

    def _path(self, key: Mapping[str, Any]) -> Path:
        return self.directory / f"{fingerprint(key)}{SUFFIX}"

    def _entries(self, suffixes: tuple[str, ...]) -> Iterator[tuple[Path, os.stat_result]]:
        with contextlib.suppress(OSError), os.scandir(self.directory) as entries:
            for entry in entries:
                if entry.name.endswith(suffixes):
                    with contextlib.suppress(OSError):
                        yield Path(entry.path), entry.stat()

    def _trim(self, newest: Path) -> None:
        """Remove what was not used for the longest time until the limit holds; the entry just written stays."""
        entries = sorted(self._entries((SUFFIX, TEMPORARY)), key=lambda entry: entry[1].st_mtime_ns)
        excess = sum(stat.st_size for path, stat in entries) - self.limit_bytes
        now = time.time()
        for path, stat in entries:
            stale = path.suffix == TEMPORARY and now - stat.st_mtime > STALE_SECONDS
            if stale or (excess > 0 and path.suffix == SUFFIX and path != newest):
                with contextlib.suppress(OSError):
                    path.unlink()
                    excess -= stat.st_size


def default_directory() -> Path:
    """``traces`` in ``$MODELSTAT_CACHE_DIR``, or in the user's cache folder of this system."""
    chosen = os.environ.get("MODELSTAT_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser() / "traces"
    import platformdirs

    return Path(platformdirs.user_cache_dir("modelstat", appauthor=False)) / "traces"


def fingerprint(key: Mapping[str, Any]) -> str:
    """SHA-256 over a key, whatever the order of its names, and over what every trace depends on.

    That is the schema of traces, the versions of torch and modelstat, and the code of a modelstat that is being edited.
    """
    whole = {
        "key": key,
        "schema": TRACE_SCHEMA,
        "torch": _version("torch"),
        "modelstat": _version("modelstat"),
        "code": _code_state(),
    }
    return hashlib.sha256(msgspec.json.encode(whole, order="deterministic")).hexdigest()


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return str(getattr(modelstat, "__version__", "absent")) if distribution == "modelstat" else "absent"


def _code_state() -> list[tuple[str, int, int]]:
    """Name, size (B) and time of change (ns) of the files that make a trace: versions do not tell an edited checkout apart."""
    package = Path(__file__).parents[1]
    folders = [package / name for name in ("trace", "sources", "serving", "rewrite")]
    files = [package / "records.py", *(file for folder in folders for file in sorted(folder.rglob("*.py")))]
    return [(file.name, stat.st_size, stat.st_mtime_ns) for file in files for stat in (file.stat(),)]


_warned: set[str] = set()


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        print(message, file=sys.stderr)
