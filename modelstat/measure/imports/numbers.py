"""Numbers and units as profilers print them: with groups of digits, comma or dot decimals, and units that differ from row to row."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMERIC = re.compile(r"[-+]?\d[\d.,'\u00a0\u202f ]*(?:[eE][-+]?\d+)?")
_SPACES = str.maketrans("", "", "'\u00a0\u202f ")


def decimal_of(cells: Iterable[str], default: str = ".") -> str:
    """Which of ``.`` and ``,`` the numbers of a file use as their decimal point; ``default`` where no number tells.

    A number with both ends in its decimals; a separator that repeats makes groups; one that is followed by other than three
    digits, or stands after a zero or after more than three digits, is a decimal point.

    >>> decimal_of(["1.234,5", "12"]), decimal_of(["1,234,567"]), decimal_of(["0,123"]), decimal_of(["1,234"])
    (',', '.', ',', '.')
    """
    votes = {".": 0, ",": 0}
    other = {".": ",", ",": "."}
    for cell in cells:
        text = cell.strip().translate(_SPACES)
        if not _NUMERIC.fullmatch(text):
            continue
        text = re.split("[eE]", text)[0].lstrip("+-")
        separators = [each for each in text if each in votes]
        if len(set(separators)) == 2:
            votes[separators[-1]] += 1
        elif len(separators) > 1:
            votes[other[separators[0]]] += 1
        elif separators:
            head, tail = text.split(separators[0])
            if len(tail) != 3 or len(head) > 3 or head.startswith("0"):
                votes[separators[0]] += 1
    return default if votes["."] == votes[","] else max(votes, key=lambda each: votes[each])


def number(text: str, decimal: str = ".") -> float:
    """A number of a file whose decimal point is ``decimal``. Raises ValueError for anything else, nan and infinity included.

    >>> number("1,234.5"), number("1.234,5", ","), number("12 345"), number("1e3")
    (1234.5, 1234.5, 12345.0, 1000.0)
    """
    group = "," if decimal == "." else "."
    plain = text.strip().translate(_SPACES)
    whole, point, rest = plain.partition(decimal)
    digits = whole.lstrip("+-")
    grouped = group not in digits or re.fullmatch(rf"\d{{1,3}}(?:\{group}\d{{3}})+", digits)
    if not _NUMERIC.fullmatch(plain) or not grouped or {group, decimal} & set(rest):
        raise ValueError(f"{text.strip()!r} is not a number")
    return float(whole.replace(group, "") + point.replace(",", ".") + rest)


_TIMES = {"": 1.0, "m": 1e-3, "u": 1e-6, "µ": 1e-6, "n": 1e-9}
_MORE = {"": 1.0, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}

UNITS: dict[str, float] = {
    **{prefix + unit: factor for prefix, factor in _TIMES.items() for unit in ("second", "s", "sec")},
    **{prefix + unit: factor for prefix, factor in _MORE.items() for unit in ("byte", "B", "inst", "sector", "request", "op", "FLOP")},
    **{f"{prefix}iB": 1024.0**power for power, prefix in enumerate("KMG", 1)},
    "": 1.0,
}
"""Unit -> its size in seconds, bytes or counts. Nsight's prefixes are decimal."""


def in_units(value: float, unit: str) -> float:
    """A value in seconds (s), bytes (B) or counts. Raises ValueError for a unit that is none of these.

    >>> in_units(12.5, "msecond"), in_units(3, "Mbyte"), in_units(7, "sector")
    (0.0125, 3000000.0, 7.0)
    """
    try:
        return value * UNITS[unit.strip()]
    except KeyError:
        raise ValueError(f"unit {unit.strip()!r} is not known") from None
