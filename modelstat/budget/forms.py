"""The forms of a check's report by name: a new one is a file with one function, and one entry here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

import msgspec

from modelstat.budget import github, human, junit, markdown
from modelstat.budget.result import Checked


def write_json(checked: Checked, file: TextIO) -> None:
    """Everything as JSON, numbers in SI units."""
    file.write(msgspec.json.format(msgspec.json.encode(checked), indent=2).decode() + "\n")


FORMS: dict[str, Callable[[Checked, TextIO], None]] = {
    "human": human.write,
    "github": github.write,
    "junit": junit.write,
    "markdown": markdown.write,
    "json": write_json,
}
