"""``nsys stats --format csv``: kernels summed by name (cuda_gpu_kern_sum) or one launch a row (cuda_gpu_trace)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from modelstat.errors import ProfileError
from modelstat.measure.imports.numbers import decimal_of, in_units, number
from modelstat.measure.imports.record import MeasuredKernel, Profile
from modelstat.measure.imports.text import cells, delimiter_of, rows

_TIME = re.compile(r"(Total Time|Duration) ?[(\[](\w+)[)\]]")
COMMAND = "nsys stats --report cuda_gpu_trace --format csv report.nsys-rep"


def tables(lines: Sequence[str]) -> list[tuple[int, list[str]]]:
    """Index and names of every line that heads one of nsys's tables."""
    found = []
    for index, line in enumerate(lines):
        if "Time" in line or "Duration" in line:
            names = cells(line, delimiter_of(line))
            if any(_TIME.fullmatch(name) for name in names) and {"Name", "Operation", "Range"} & set(names):
                found.append((index, names))
    return found


def read(path: Path, lines: Sequence[str]) -> Profile:
    """The kernels of the first table that has some. Raises ProfileError where all tables are of something else."""
    found = tables(lines)
    for position, (start, names) in enumerate(found):
        end = found[position + 1][0] if position + 1 < len(found) else len(lines)
        if "Name" in names and ("Instances" in names or "GrdX" in names):
            return _table(path, lines[:end], start, names)
    heads = ", ".join(found[0][1][:3])
    raise ProfileError(f"{path}: a table of nsys, but of no kernels (its columns are {heads}, ...): write one with `{COMMAND}`")


def _table(path: Path, lines: Sequence[str], start: int, names: list[str]) -> Profile:
    delimiter = delimiter_of(lines[start])
    time_at, unit = next((index, match[2]) for index, name in enumerate(names) if (match := _TIME.fullmatch(name)))
    name_at, count_at = names.index("Name"), names.index("Instances") if "Instances" in names else None
    # A table ends with a blank line, or with the line in which nsys says what it does next.
    body = []
    for place, row in rows(lines, start + 1, delimiter):
        if not any(row) or row[0].startswith(("Processing [", "** ", "SKIPPED")):
            break
        body.append((place, row))
    decimal = decimal_of((row[time_at] for _, row in body if time_at < len(row)), "," if delimiter == ";" else ".")
    kernels: list[MeasuredKernel] = []
    problems: list[str] = []
    for place, row in body:
        if len(row) != len(names):
            problems.append(f"line {place}: {len(row)} cells where the header has {len(names)}; left out")
            continue
        try:
            seconds = in_units(number(row[time_at], decimal), unit)
            count = 1 if count_at is None else int(number(row[count_at], decimal))
        except ValueError as error:
            problems.append(f"line {place}: {error}; the row is left out")
            continue
        kernels.append(MeasuredKernel(name=row[name_at], seconds=seconds, launches=count, line=place))
    if not kernels:
        raise ProfileError(f"{path}: no kernel in it: {problems[0] if problems else 'the table has no rows'}")
    form = "Nsight Systems kernel trace" if count_at is None else "Nsight Systems kernel summary"
    return Profile(file=str(path), format=form, kernels=tuple(kernels), ordered=count_at is None, problems=tuple(problems))
