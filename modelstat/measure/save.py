"""Rows in the format of measurements (docs/accuracy.md), appended to a file of the user's. Nothing is sent anywhere."""

from __future__ import annotations

import csv
from pathlib import Path

from modelstat.errors import OutputError

COLUMNS = (
    "source", "gpu", "model", "input", "batch", "precision", "layout", "mode", "measured_ms", "software", "params_m", "gmacs",
)  # fmt: skip


def check(path: Path) -> None:
    """Raises OutputError for a file that :func:`append` could not add to, before there is anything to add."""
    folder = path.expanduser().resolve().parent
    if not folder.is_dir():
        raise OutputError(f"--save {path} cannot be written: there is no directory {folder}, create it first")
    try:
        if path.exists():
            with path.open("a", encoding="utf-8"):
                _names(path.read_text(encoding="utf-8"), path)
    except (OSError, UnicodeDecodeError) as error:
        raise OutputError(f"--save {path} cannot be written: {getattr(error, 'strerror', None) or error}") from error


def _names(text: str, path: Path) -> tuple[str, ...]:
    """The columns of a file's text. Raises OutputError for other ones."""
    if not text:
        return COLUMNS
    names = tuple(next(csv.reader(text.splitlines()[:1]), ()))
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise OutputError(f"--save {path}: its first line has no {', '.join(missing)}: name a new file, or one that --save wrote")
    return names


def append(path: Path, row: dict[str, object]) -> None:
    """Adds one row, with the header where the file is new.

    Raises OutputError for a file of other columns, or one that cannot be written.
    """
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        names = _names(text, path)
        with path.open("a", newline="", encoding="utf-8") as file:
            file.write("" if not text or text.endswith("\n") else "\n")
            writer = csv.DictWriter(file, names, lineterminator="\n", restval="")
            if not text:
                writer.writeheader()
            writer.writerow(row)
    except (OSError, UnicodeDecodeError) as error:
        raise OutputError(f"--save {path} cannot be written: {getattr(error, 'strerror', None) or error}") from error
