"""Quantities as text: the only place that prints them. (:mod:`modelstat.quantities` reads them.)

Values are in SI base units everywhere else: seconds, bytes, FLOP/s, hertz. Prefixes are decimal (GB/s = 1e9 B/s); binary ones
appear only where the unit says so (MiB, GiB).
"""

from __future__ import annotations

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
