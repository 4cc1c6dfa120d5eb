"""What ncu prints without ``--csv``: a head a launch, and tables of metrics below it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from modelstat.measure.imports import counters
from modelstat.measure.imports.ncu_csv import UNKNOWN, Launch, finished
from modelstat.measure.imports.numbers import decimal_of, in_units, number
from modelstat.measure.imports.record import Profile

_GRID = r"\(\d+, \d+, \d+\)"
_HEAD = re.compile(rf"^  (?P<name>\S.*?)(?: {_GRID}x{_GRID})?(?:, \d{{4}}-\w{{3}}-\d{{2}} [\d:]+)?, Context \d+, Stream \d+.*$")
_CAPABILITY = re.compile(r", CC (\d+\.\d+)")
_METRIC = re.compile(r"^    (?P<metric>\S+(?: \S+)*?)(?: +(?P<unit>[A-Za-zµ/%]+))? +(?P<value>\(!\) n/a|n/a|[-+]?\d[\d.,]*)\s*$")


def is_log(lines: Sequence[str]) -> bool:
    """Whether the lines are an ncu log."""
    return any(_HEAD.match(line) for line in lines)


def read(path: Path, lines: Sequence[str]) -> Profile:
    """The kernels of one log. Raises ProfileError where no metric of use is in it."""
    found = [(place, match) for place, line in enumerate(lines, 1) if (match := _METRIC.match(line))]
    decimal = decimal_of(match["value"] for _, match in found)
    metrics = dict(found)
    launches: list[Launch] = []
    problems: list[str] = []
    for place, line in enumerate(lines, 1):
        head = _HEAD.match(line)
        if head:
            capability = _CAPABILITY.search(line)
            launches.append(Launch(place, head["name"], capability[1] if capability else ""))
            continue
        match = metrics.get(place)
        if match is None:
            words = line.split()
            if words and counters.is_known(words[0]):
                problems.append(f"line {place}: {words[0]} has no value that can be read; the row is left out")
            continue
        if not launches or not counters.is_known(match["metric"]) or match["value"] in UNKNOWN:
            continue
        try:
            launches[-1].metrics.setdefault(match["metric"], in_units(number(match["value"], decimal), match["unit"] or ""))
        except ValueError as error:
            problems.append(f"line {place}: {match['metric']}: {error}; the row is left out")
    return finished(path, "Nsight Compute log", launches, problems)
