"""``ncu --csv``: the raw page (a row a launch, a column a metric), the details page (a row a metric) and summaries by kernel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from modelstat.errors import ProfileError
from modelstat.measure.imports import counters, ncu_ranges
from modelstat.measure.imports.numbers import decimal_of, in_units, number
from modelstat.measure.imports.record import MeasuredKernel, Profile
from modelstat.measure.imports.text import cells, delimiter_of, rows

UNKNOWN = ("", "n/a", "(!) n/a", "nan", "no data")


class Launch:
    """One launch while its metrics come in: ``metrics`` in SI units, ``ranges`` the NVTX ranges around it, the outermost first."""

    def __init__(self, line: int, name: str, capability: str, launches: int = 1) -> None:
        self.line, self.name, self.capability, self.launches = line, name, capability, launches
        self.metrics: dict[str, float] = {}
        self.ranges: tuple[str, ...] = ()


def header_index(lines: Sequence[str]) -> int | None:
    """The index of the first line that names ncu's columns, None where there is none."""
    return next((index for index, line in enumerate(lines) if "Kernel Name" in line and _is_header(line)), None)


def _is_header(line: str) -> bool:
    names = cells(line, delimiter_of(line))
    return "Kernel Name" in names and ("Metric Name" in names or "ID" in names)


def read(path: Path, lines: Sequence[str]) -> Profile:
    """The kernels of one CSV. Raises ProfileError where no metric of use is in it."""
    start = header_index(lines)
    assert start is not None
    delimiter = delimiter_of(lines[start])
    names = cells(lines[start], delimiter)
    body = [(place, row) for place, row in rows(lines, start + 1, delimiter) if row and not row[0].startswith("==")]
    problems: list[str] = []
    default = "," if delimiter == ";" else "."
    launches = (_details if "Metric Name" in names else _raw)(names, body, default, problems)
    return finished(path, "Nsight Compute CSV", launches, problems)


def finished(path: Path, form: str, launches: Sequence[Launch], problems: list[str]) -> Profile:
    """The profile of launches. Raises ProfileError where there are none, or none has a metric of use."""
    collected = {metric for launch in launches for metric in launch.metrics}
    if not launches:
        why = f": {problems[0]}" if problems else ": the file ends before the first one"
        raise ProfileError(f"{path}: no kernel in it{why}")
    if not collected:
        raise ProfileError(f"{path}: none of the metrics that a roofline needs is in it; collect them with `{counters.COMMAND}`")
    kernels: list[MeasuredKernel] = []
    for each, (calls, place, step) in zip(launches, ncu_ranges.around(each.ranges for each in launches), strict=True):
        kernel = counters.kernel(each.name, each.metrics, collected, capability=each.capability, line=each.line, launches=each.launches)
        kernels.append(msgspec.structs.replace(kernel, calls=calls, path=place, step=step))
    ordered = all(each.launches == 1 for each in launches)
    told = (*problems, *counters.missing(kernels, collected))
    return Profile(file=str(path), format=form, kernels=tuple(kernels), ordered=ordered, problems=told)


def _raw(names: list[str], body: list[tuple[int, list[str]]], default: str, problems: list[str]) -> list[Launch]:
    """A column a metric, the units in the line below the header."""
    if not body:
        return []
    columns = [(index, name) for index, name in enumerate(names) if counters.is_known(name)]
    units = body[0][1]
    name_at, capability_at = names.index("Kernel Name"), names.index("CC") if "CC" in names else None
    decimal = decimal_of((row[index] for _, row in body[1:] for index, _ in columns if index < len(row)), default)
    ranges = ncu_ranges.columns_of(names)
    launches: list[Launch] = []
    for place, row in body[1:]:
        if len(row) != len(names) or len(units) != len(names):
            problems.append(f"line {place}: {len(row)} cells where the header has {len(names)}; left out")
            continue
        launch = Launch(place, row[name_at], row[capability_at] if capability_at is not None else "")
        launch.ranges = tuple(name for index in ranges for name in ncu_ranges.names_of(row[index]))
        try:
            for index, metric in columns:
                if row[index].lower() not in UNKNOWN:
                    launch.metrics[metric] = in_units(number(row[index], decimal), units[index])
        except ValueError as error:
            problems.append(f"line {place}: {metric}: {error}; the row is left out")
            continue
        launches.append(launch)
    return launches


def _details(names: list[str], body: list[tuple[int, list[str]]], default: str, problems: list[str]) -> list[Launch]:
    """A row a metric. A launch is known by its process and ID; a summary by kernel has averages over its invocations."""
    place_of = {name: index for index, name in enumerate(names)}
    summary = "Invocations" in place_of
    value_at = place_of.get("Average" if summary else "Metric Value")
    if value_at is None or "Metric Unit" not in place_of:
        return []
    keys = [place_of[name] for name in (("Process ID", "Kernel Name") if summary else ("Process ID", "ID")) if name in place_of]
    metric_at, unit_at, name_at = place_of["Metric Name"], place_of["Metric Unit"], place_of["Kernel Name"]
    # A line of one cell is what the program printed; a row that is cut off has more.
    known = [(place, row) for place, row in body if (len(row) > 1 if len(row) != len(names) else counters.is_known(row[metric_at]))]
    decimal = decimal_of((row[value_at] for _, row in body if value_at < len(row)), default)
    ranges = () if summary else ncu_ranges.columns_of(names)
    launches: dict[tuple[str, ...], Launch] = {}
    for place, row in known:
        if len(row) != len(names):
            problems.append(f"line {place}: {len(row)} cells where the header has {len(names)}; left out")
            continue
        try:
            count = int(number(row[place_of["Invocations"]], decimal)) if summary else 1
            key = tuple(row[index] for index in keys)
            launch = launches.setdefault(key, Launch(place, row[name_at], row[place_of["CC"]] if "CC" in place_of else "", count))
            launch.ranges = tuple(name for index in ranges for name in ncu_ranges.names_of(row[index]))
            # A metric that stands in several sections is one figure.
            if row[value_at].lower() not in UNKNOWN:
                launch.metrics.setdefault(row[metric_at], in_units(number(row[value_at], decimal), row[unit_at]) * count)
        except ValueError as error:
            problems.append(f"line {place}: {row[metric_at]}: {error}; the row is left out")
    return list(launches.values())
