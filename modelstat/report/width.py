"""How wide a report is: what COLUMNS says, else the terminal, else a width that is easy to paste."""

from __future__ import annotations

import os
import shutil
from typing import TextIO

LEAST = 40
"""Columns below which no report goes: numbers want room."""


def columns() -> int | None:
    """What the environment variable COLUMNS says, at least 40; None where it is not set, or is not a whole number above 0."""
    text = os.environ.get("COLUMNS", "")
    known = text.isascii() and text.isdecimal() and len(text) <= 6 and int(text) > 0
    return max(int(text), LEAST) if known else None


def width_of(file: TextIO, default: int) -> int:
    """Columns of a report in ``file``; ``default`` where it is no terminal and COLUMNS says nothing."""
    asked = columns()
    if asked is not None:
        return asked
    return shutil.get_terminal_size((default, 24)).columns if file.isatty() else default
