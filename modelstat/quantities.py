"""Quantities from text: the only place that reads them. (:mod:`modelstat.units` prints them.)

Values are in SI base units everywhere else: seconds, bytes, FLOP/s, hertz. Prefixes are decimal (GB/s = 1e9 B/s); binary ones
are read only where the unit says so (MiB, GiB).
"""

from __future__ import annotations

import re
from math import isfinite

from modelstat.errors import UsageError

_BITS = re.compile(r"[KMGT]b(/s)?")  # gigabits where bytes are meant: eight times off, so never read as bytes
_NUMBER = re.compile(r"\s*(\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?|\.\d+)\s*(.*?)\s*")

_HERTZ = {"hz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9}
_BYTES = {
    "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
    "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30, "tib": 2.0**40,
}  # fmt: skip
_BANDWIDTH = {f"{unit}/s": factor for unit, factor in _BYTES.items()}
_DATA_RATE = {f"{prefix}{unit}": factor for prefix, factor in (("m", 1e6), ("g", 1e9)) for unit in ("bps", "bit/s", "t/s")}
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_COUNT = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9, "t": 1e12}
_FLOPS = {
    f"{prefix}{unit}": factor
    for prefix, factor in (("m", 1e6), ("g", 1e9), ("t", 1e12), ("p", 1e15))
    for unit in ("flop/s", "flops", "op/s", "ops")
}
_WATTS = {"w": 1.0, "kw": 1e3}


def _parse(text: str, units: dict[str, float], what: str, example: str, default: str | None = None) -> float:
    """A number and one of ``units`` (case does not matter) in SI base units; ``default`` is the unit of a bare number."""
    match = _NUMBER.fullmatch(text)
    unit = match[2].lower() if match else ""
    if match and not unit and default is not None:
        unit = default.lower()
    if not match or unit not in units or _BITS.fullmatch(match[2]):
        raise UsageError(f"{text!r} is not a {what}: write it like {example}")
    value = float(f"{float(match[1]) * units[unit]:.15g}")  # 1.815 GHz is 1815000000.0, not 1814999999.9999998
    if not isfinite(value):
        raise UsageError(f"{text!r} is too large for a {what}: write it like {example}")
    return value


def parse_hertz(text: str, default: str | None = None) -> float:
    """A clock in Hz. Raises UsageError.

    >>> parse_hertz("1815MHz"), parse_hertz("1.815 GHz"), parse_hertz("1815", default="MHz")
    (1815000000.0, 1815000000.0, 1815000000.0)
    """
    return _parse(text, _HERTZ, "clock", "1815MHz", default)


def parse_bandwidth(text: str, default: str | None = None) -> float:
    """Bytes per second. ``Gbps`` is refused: it is a data rate per pin, in bits. Raises UsageError.

    >>> parse_bandwidth("448GB/s"), parse_bandwidth("3.35 TB/s")
    (448000000000.0, 3350000000000.0)
    """
    return _parse(text, _BANDWIDTH, "bandwidth", "448GB/s", default)


def parse_data_rate(text: str, default: str | None = None) -> float:
    """Bits per second and pin. Raises UsageError.

    >>> parse_data_rate("14Gbps"), parse_data_rate("14 Gbit/s")
    (14000000000.0, 14000000000.0)
    """
    return _parse(text, _DATA_RATE, "data rate per pin", "14Gbps", default)


def parse_bytes(text: str, default: str | None = None) -> float:
    """Bytes. Raises UsageError.

    >>> parse_bytes("16GB"), parse_bytes("16GiB")
    (16000000000.0, 17179869184.0)
    """
    return _parse(text, _BYTES, "number of bytes", "16GB", default)


def parse_seconds(text: str, default: str | None = None) -> float:
    """Seconds. Raises UsageError.

    >>> parse_seconds("3ms")
    0.003
    """
    return _parse(text, _SECONDS, "time", "3ms", default)


def parse_count(text: str) -> int:
    """A whole number with an optional prefix (B is a billion). Raises UsageError.

    >>> parse_count("5M"), parse_count("25_557_032"), parse_count("1.5k")
    (5000000, 25557032, 1500)
    """
    value = _parse(text, _COUNT, "count", "5M")
    if value != int(value):
        raise UsageError(f"{text!r} is not a whole number: write it like 5M")
    return int(value)


def parse_percent(text: str) -> float:
    """A share of one, in percent. Raises UsageError.

    >>> parse_percent("5%"), parse_percent("0.5 %")
    (0.05, 0.005)
    """
    return _parse(text, {"%": 0.01}, "share", "5%")


def parse_intensity(text: str) -> float:
    """FLOP/B; a bare number is one. Raises UsageError.

    >>> parse_intensity("20"), parse_intensity("20.7 FLOP/B")
    (20.0, 20.7)
    """
    return _parse(text, {"flop/b": 1.0}, "intensity", "20 FLOP/B", "flop/b")


def parse_flops_rate(text: str, default: str | None = None) -> float:
    """FLOP/s (integer peaks: OP/s). Raises UsageError.

    >>> parse_flops_rate("125TFLOP/s"), parse_flops_rate("9292.8 GFLOPS"), parse_flops_rate("125", default="TFLOP/s")
    (125000000000000.0, 9292800000000.0, 125000000000000.0)
    """
    return _parse(text, _FLOPS, "peak", "125TFLOP/s", default)


def parse_watts(text: str, default: str | None = None) -> float:
    """Watts. Raises UsageError.

    >>> parse_watts("250W")
    250.0
    """
    return _parse(text, _WATTS, "power", "250W", default)
