"""Rows in the format of measurements (docs/accuracy.md), appended to a file of the user's. Nothing is sent anywhere."""

from __future__ import annotations

import csv
from pathlib import Path

from modelstat.errors import OutputError

COLUMNS = (
    "source", "gpu", "model", "input", "batch", "precision", "layout", "mode", "measured_ms", "software", "params_m", "gmacs",
)  # fmt: skip


def append(path: Path, row: dict[str, object]) -> None:
    """Adds one row, with the header where the file is new.

    Raises OutputError for a file of other columns, or one that cannot be written.
    """
    try:
        there = path.exists() and path.stat().st_size > 0
        names: tuple[str, ...] = COLUMNS
        ended = True
        if there:
            text = path.read_text(encoding="utf-8")
            names = tuple(next(csv.reader(text.splitlines()[:1]), ()))
            ended = text.endswith("\n")
            missing = [name for name in COLUMNS if name not in names]
            if missing:
                raise OutputError(f"--save {path}: its first line has no {', '.join(missing)}: name a new file, or one that --save wrote")
        with path.open("a", newline="", encoding="utf-8") as file:
            file.write("" if ended else "\n")
            writer = csv.DictWriter(file, names, lineterminator="\n", restval="")
            if not there:
                writer.writeheader()
            writer.writerow(row)
    except (OSError, UnicodeDecodeError) as error:
        raise OutputError(f"--save {path} cannot be written: {getattr(error, 'strerror', None) or error}") from error
