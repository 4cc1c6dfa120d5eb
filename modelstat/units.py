"""Quantities as text, both ways: the only place that prints and parses them.

Values are in SI base units everywhere else: seconds, bytes, FLOP/s, hertz. Prefixes are decimal (GB/s = 1e9 B/s); binary ones
appear only where the unit says so (MiB, GiB).
"""

from __future__ import annotations

import re
from math import isfinite

from modelstat.errors import UsageError

_PREFIXES = ("", "k", "M", "G", "T", "P", "E")
_SMALL = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def _scaled(value: float, decimals: int) -> tuple[str, str]:
    """Number and prefix, with ``decimals`` places; a value that rounds to 1000 takes the next prefix."""
    index = 0
    while abs(round(value, decimals)) >= 1000 and index < len(_PREFIXES) - 1:
        value /= 1000
        index += 1
    return f"{value:.{decimals}f}", _PREFIXES[index]


def _significant(value: float) -> str:
    """Three significant digits for a value below 1000, never in exponent form."""
    for limit, decimals in ((9.995, 2), (99.95, 1)):
        if abs(value) < limit:
            return f"{value:.{decimals}f}"
    return f"{value:.0f}"


def integer(value: int) -> str:
    """An exact count.

    >>> integer(25557032)
    '25,557,032'
    """
    return f"{value:,}"


def count(value: float) -> str:
    """A count with a decimal prefix and two decimals; below 1000 as it is.

    >>> count(25557032), count(224), count(999_999)
    ('25.56 M', '224', '1.00 M')
    """
    if abs(value) < 1000:
        return f"{value:g}"
    number, prefix = _scaled(value, 2)
    return f"{number} {prefix}"


def bytes_(value: float) -> str:
    """Bytes with a decimal prefix.

    >>> bytes_(50048), bytes_(12)
    ('50.05 kB', '12 B')
    """
    if abs(value) < 1000:
        return f"{value:g} B"
    number, prefix = _scaled(value, 2)
    return f"{number} {prefix}B"


def mebibytes(value: float) -> str:
    """Bytes in units of 2**20.

    >>> mebibytes(3 * 2**20)
    '3.00 MiB'
    """
    return f"{value / 2**20:.2f} MiB"


def _rate(value: float, unit: str) -> str:
    number, prefix = _prefixed(value)
    return f"{_significant(number)} {prefix}{unit}"


def _prefixed(value: float) -> tuple[float, str]:
    """The value in units of a prefix, for three significant digits."""
    index = 0
    while abs(value) >= 999.5 and index < len(_PREFIXES) - 1:
        value /= 1000
        index += 1
    return value, _PREFIXES[index]


def flops_rate(value: float) -> str:
    """FLOP/s with three significant digits.

    >>> flops_rate(14e12), flops_rate(9.2928e12), flops_rate(989.4e12), flops_rate(1978.9e12)
    ('14.0 TFLOP/s', '9.29 TFLOP/s', '989 TFLOP/s', '1.98 PFLOP/s')
    """
    return _rate(value, "FLOP/s")


def tick(value: float) -> str:
    """A power of ten on an axis, with its decimal prefix.

    >>> tick(1e13), tick(1e9), tick(0.1)
    ('10 T', '1 G', '0.1')
    """
    number, prefix = _prefixed(value)
    return f"{number:g} {prefix}".strip()


def bandwidth(value: float) -> str:
    """Bytes per second in GB/s, the unit of every data sheet, with at most four significant digits.

    >>> bandwidth(9e11), bandwidth(3.352e12), bandwidth(25.6e9)
    ('900 GB/s', '3352 GB/s', '25.6 GB/s')
    """
    giga = value / 1e9
    return f"{giga:.0f} GB/s" if giga >= 1000 else f"{giga:.4g} GB/s"


def hertz(value: float) -> str:
    """A clock in MHz.

    >>> hertz(1.815e9), hertz(921.6e6)
    ('1815 MHz', '921.6 MHz')
    """
    return f"{value / 1e6:.6g} MHz"


def seconds(value: float) -> str:
    """A time with three significant digits.

    >>> seconds(0.00105), seconds(12.34), seconds(0), seconds(0.0009999)
    ('1.05 ms', '12.3 s', '0 s', '1.00 ms')
    """
    if value == 0:
        return "0 s"
    for scale, unit in _SMALL:
        if abs(value) >= 0.9995 * scale:
            return f"{_significant(value / scale)} {unit}"
    return f"{value * 1e9:.3g} ns"


def ratio(value: float) -> str:
    """A quotient such as an intensity or a ridge point (FLOP/B), with two decimals.

    >>> ratio(14000 / 900)
    '15.56'
    """
    return f"{value:.2f}"


def per_second(value: float) -> str:
    """A rate with three significant digits, without its unit.

    >>> per_second(207.6), per_second(12345.0), per_second(0.512)
    ('208', '12,300', '0.512')
    """
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:g}"


def percent(value: float) -> str:
    """A share of one.

    >>> percent(0.1234)
    '12.3 %'
    """
    return f"{100 * value:.1f} %"


def change(value: float) -> str:
    """A difference as a share of one, with its sign.

    >>> change(0.1234), change(-0.4473), change(0)
    ('+12.3 %', '-44.7 %', '0 %')
    """
    return f"{100 * value:+.1f} %" if value else "0 %"


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
