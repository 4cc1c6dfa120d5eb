"""NVTX ranges in the CSV of ``ncu --nvtx``: the ranges that were open when the host launched a kernel.

The column of a thread's nested ranges holds its number and then each range in quotes, the outermost first::

    4242  "<default domain>:iteration 0:none:none:none:none:none:none"  "<default domain>:aten::relu:none:none:none:none:none:none"

which its header spells out: domain, range, type and value of the payload, type and value of the colour, type and text of the message
(Nsight Compute CLI documentation, NVTX). The column of ranges of the whole process has a number before the domain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from modelstat.measure.imports.ranges import read_ranges
from modelstat.measure.imports.record import OpCall

COLUMNS = ("Start/Stop_Range", "Push/Pop_Range")
"""Parts of the headers: ranges of the process lie around those of a thread."""

_QUOTED = re.compile(r'"([^"]*)"')
_NUMBER = re.compile(r"^\s*\d+(?:\s+|:)")
# A range's name may hold colons, so that the fields behind it are told by what they can be.
_PAYLOAD, _COLOUR = "none|unknown|(?:unsigned_)?u?int(?:32|64)|float|double", "none|unknown|argb"
_MESSAGE = "none|unknown|ascii|unicode|registered"
_RANGE = re.compile(rf"[^:]*:(.*?):(?:{_PAYLOAD}):[^:]*:(?:{_COLOUR}):[^:]*:(?:{_MESSAGE}):.*", re.IGNORECASE | re.DOTALL)

Around = tuple[tuple[OpCall, ...], str, int | None]
"""Ops, path and step of the ranges around a kernel."""


def columns_of(names: Sequence[str]) -> tuple[int, ...]:
    """Places of the columns of ranges in a header, the outer ones first."""
    return tuple(index for part in COLUMNS for index, name in enumerate(names) if part in name)


def names_of(cell: str) -> tuple[str, ...]:
    """The ranges of one cell, the outermost first.

    >>> names_of('7  "<default domain>:aten::relu, op_id = 3:none:none:none:none:none:none"  "lib:f:none:none:none:none:REGISTERED:a:b" ')
    ('aten::relu, op_id = 3', 'f')
    >>> names_of("")
    ()
    """
    parts = _QUOTED.findall(cell) or ([cell] if cell.strip() else [])
    return tuple(_name(_NUMBER.sub("", part)) for part in parts)


def _name(text: str) -> str:
    found = _RANGE.fullmatch(text)
    return found[1] if found else text.partition(":")[2] or text


def around(launches: Iterable[Sequence[str]]) -> list[Around]:
    """What the ranges around each launch say, in the order of the launches.

    A range that is open at two launches in a row is one call. (Two calls of one text right after each other cannot be told apart; torch's
    ranges have a number in their text.)
    """
    found: list[Around] = []
    before: list[tuple[int, str]] = []
    count = 0
    for names in launches:
        same = 0
        while same < min(len(before), len(names)) and before[same][1] == names[same]:
            same += 1
        before = before[:same] + [(count + place, name) for place, name in enumerate(names[same:])]
        count += len(names) - same
        found.append(read_ranges(before))
    return found
