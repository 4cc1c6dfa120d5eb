"""The check as annotations of GitHub Actions: workflow commands that mark the budget's line in the budget file.

Their escapes are those of "Workflow commands for GitHub Actions" in GitHub's documentation and of the toolkit that it refers to (read
2026-11-30): ``%``, CR and LF everywhere, and ``:`` and ``,`` in properties too.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

from modelstat.budget import human
from modelstat.budget.result import Checked, Outcome
from modelstat.report.grid import printable


def write(checked: Checked, file: TextIO) -> None:
    """Write the lines of a log, then an annotation for each budget that failed or could not be checked."""
    human.write(checked, file)
    for outcome in checked.outcomes:
        if outcome.status != "passed":
            file.write(annotation(outcome) + "\n")


def annotation(outcome: Outcome) -> str:
    """One workflow command."""
    properties = {"file": printable(_in_repository(outcome.file))}
    if outcome.line is not None:
        properties["line"] = str(outcome.line)
    properties["title"] = printable(f"modelstat: {outcome.budget}")
    given = ",".join(f"{name}={escaped_property(value)}" for name, value in properties.items())
    return f"::error {given}::{escaped(chr(10).join(human.lines(outcome)))}"


def escaped(text: str) -> str:
    r"""The message of a workflow command.

    >>> escaped("5 %\nmore")
    '5 %25%0Amore'
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escaped_property(text: str) -> str:
    """A property of a workflow command.

    >>> escaped_property("a:b, 5%")
    'a%3Ab%2C 5%25'
    """
    return escaped(text).replace(":", "%3A").replace(",", "%2C")


def _in_repository(path: str) -> str:
    """The path from the root of the checkout, which is what GitHub shows; as it is outside of one."""
    root = os.environ.get("GITHUB_WORKSPACE")
    whole = Path(path).resolve()
    if root and whole.is_relative_to(Path(root).resolve()):
        return whole.relative_to(Path(root).resolve()).as_posix()
    return path
