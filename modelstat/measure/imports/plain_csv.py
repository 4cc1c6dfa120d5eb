"""A CSV that a person writes: name, ms[, flops, bytes], with the time in whatever unit its column names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from modelstat.errors import ProfileError
from modelstat.measure.imports.numbers import decimal_of, in_units, number
from modelstat.measure.imports.record import MeasuredKernel, Profile
from modelstat.measure.imports.text import cells, delimiter_of, rows

_TIME = re.compile(r"(?:(?:time|duration|measured)[ _]?)?[(\[]?(ns|us|ms|s)[)\]]?")
_NAMES = ("name", "kernel", "layer", "op")


def columns(line: str) -> tuple[list[str], int, int, str] | None:
    """The names of a header, the places of name and time among them, and the time's unit; None for a line that is no such header."""
    names = [name.lower() for name in cells(line, delimiter_of(line))]
    name_at = next((names.index(each) for each in _NAMES if each in names), None)
    times = [(index, match[1]) for index, name in enumerate(names) if (match := _TIME.fullmatch(name))]
    return None if name_at is None or not times else (names, name_at, *times[0])


def read(path: Path, lines: Sequence[str]) -> Profile:
    """The rows of one file. Raises ProfileError where none can be used."""
    start = next(index for index, line in enumerate(lines) if line.strip())
    found = columns(lines[start])
    assert found is not None
    names, name_at, time_at, unit = found
    delimiter = delimiter_of(lines[start])
    body = [(place, row) for place, row in rows(lines, start + 1, delimiter) if any(row)]
    numeric = [time_at, *(names.index(each) for each in ("flops", "bytes") if each in names)]
    decimal = decimal_of((row[at] for _, row in body for at in numeric if at < len(row)), "," if delimiter == ";" else ".")
    kernels: list[MeasuredKernel] = []
    problems: list[str] = []
    for place, row in body:
        try:
            if len(row) != len(names):
                raise ValueError(f"{len(row)} cells where the header has {len(names)}")
            if not row[name_at]:
                raise ValueError("no name")
            values = {names[at]: number(row[at], decimal) for at in numeric if row[at]}
            seconds = in_units(values[names[time_at]], unit) if names[time_at] in values else None
            if seconds is None or not seconds > 0:
                raise ValueError(f"the time {row[time_at]!r} is not above 0")
        except ValueError as error:
            problems.append(f"line {place}: {error}; the row is left out")
            continue
        kernels.append(
            MeasuredKernel(
                name=row[name_at], seconds=seconds, flops=values.get("flops"), dram_bytes=values.get("bytes"), path=row[name_at], line=place
            )
        )
    if not kernels:
        raise ProfileError(f"{path}: no row that can be used: {problems[0] if problems else 'there is only the header'}")
    return Profile(file=str(path), format="CSV", kernels=tuple(kernels), ordered=False, problems=tuple(problems))
