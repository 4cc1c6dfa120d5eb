"""Where a report goes: stdout, or a file that appears whole or not at all."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import TextIO

from modelstat.errors import OutputError


class Output:
    """Context manager around one report. ``path`` None is stdout; ``option`` is what the user gave the path by, for error messages.

    Entering opens the place, so that a path that cannot be written fails before any work is done. The text goes into a
    temporary file beside the target, which takes the target's name when all went well: a failed run leaves an old file
    as it was. Raises OutputError for a path that cannot be written.
    """

    def __init__(self, path: Path | None, option: str = "--output") -> None:
        self._path = path
        self._option = option
        self._temporary: Path | None = None
        self.stream: TextIO = sys.stdout

    def __enter__(self) -> Output:
        if self._path is None:
            self.stream = sys.stdout
            return self
        target = self._path.expanduser().resolve()
        try:
            mode = _mode(target)
            if stat.S_ISREG(mode):
                descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent, text=True)
                self._temporary = Path(name)
                self.stream = os.fdopen(descriptor, "w", encoding="utf-8")
                self._temporary.chmod(stat.S_IMODE(mode))
            else:
                # A device or a pipe cannot be replaced; a directory refuses here.
                self.stream = target.open("w", encoding="utf-8")
        except OSError as error:
            raise OutputError(f"{self._option} {self._path} cannot be written: {_reason(error, target)}") from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._path is None:
            return
        try:
            self.stream.close()
            if self._temporary is not None:
                if kind is None:
                    self._temporary.replace(self._path.expanduser().resolve())
                else:
                    self._temporary.unlink(missing_ok=True)
        except OSError as failure:
            if self._temporary is not None:
                self._temporary.unlink(missing_ok=True)
            raise OutputError(f"{self._option} {self._path} cannot be written: {failure.strerror}") from failure

    @property
    def is_file(self) -> bool:
        """True where the report goes into a file: no colours, no terminal width."""
        return self._path is not None


def _mode(target: Path) -> int:
    """The mode that the finished file gets: that of the file it replaces, or what the umask leaves of rw-rw-rw-."""
    if target.exists():
        # Opening for appending changes nothing and refuses what may not be written.
        if target.is_file():
            target.open("a").close()
        return target.stat().st_mode
    umask = os.umask(0)
    os.umask(umask)
    return stat.S_IFREG | (0o666 & ~umask)


def _reason(error: OSError, target: Path) -> str:
    if not target.parent.is_dir():
        return f"there is no directory {target.parent}, create it first"
    if target.is_dir():
        return "it is a directory, name a file"
    return error.strerror or str(error)
