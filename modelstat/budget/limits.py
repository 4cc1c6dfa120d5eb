"""The limits that a budget may set: how each is written, what it is held against, and which way is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from modelstat import quantities, units
from modelstat.errors import UsageError
from modelstat.report.columns import nearest
from modelstat.report.document import Document
from modelstat.report.timing import GpuEntry


class Quantity(msgspec.Struct, frozen=True):
    """One thing that is measured. ``layer`` is the field of a layer whose growth explains it."""

    name: str
    label: str
    measure: Callable[[Document, GpuEntry | None], float | None]
    show: Callable[[float], str]
    layer: str
    timed: bool = False
    """There is no value without a GPU."""


def _seconds(field: str) -> Callable[[Document, GpuEntry | None], float | None]:
    def measure(document: Document, gpu: GpuEntry | None) -> float | None:
        found: float | None = getattr(gpu, field, None)
        return None if found is None else found / 1e3

    return measure


def _exact(value: float) -> str:
    return units.integer(int(value))


QUANTITIES: dict[str, Quantity] = {
    each.name: each
    for each in (
        Quantity("params", "params", lambda document, gpu: document.totals.params, _exact, "params"),
        Quantity("macs", "MACs", lambda document, gpu: document.totals.macs, units.count, "macs"),
        Quantity("flops", "FLOPs", lambda document, gpu: document.totals.flops, units.count, "flops"),
        Quantity(
            "bytes",
            "MemR+W",
            lambda document, gpu: document.totals.mem_read_bytes + document.totals.mem_write_bytes,
            units.bytes_,
            "mem_bytes",
        ),
        # What is held at once is mostly what the layers write.
        Quantity("peak_memory", "peak memory", lambda document, gpu: document.totals.peak_memory_bytes, units.bytes_, "mem_write_bytes"),
        Quantity("ideal", "ideal", _seconds("ideal_ms"), units.seconds, "ideal_ms", timed=True),
        Quantity("predicted", "predicted", _seconds("predicted_ms"), units.seconds, "predicted_ms", timed=True),
        Quantity(
            "intensity",
            "intensity",
            lambda document, gpu: document.totals.intensity,
            lambda value: f"{units.ratio(value)} FLOP/B",
            "mem_bytes",
        ),
    )
}
REGRESSING = tuple(name for name in QUANTITIES if name != "intensity")
"""What ``max_regression`` holds against the baseline: more of each costs more."""


class Limit(msgspec.Struct, frozen=True):
    """One key of a budget. ``read`` turns what the file says into SI units, and raises UsageError."""

    name: str
    quantity: str
    read: Callable[[Any], float]
    least: bool = False
    """The value must not be below; elsewhere it must not be above."""


def _text(parse: Callable[[str], float], example: str) -> Callable[[Any], float]:
    """Reads a text with a unit."""

    def read(value: Any) -> float:
        if not isinstance(value, str):
            raise UsageError(f"{value!r} has no unit: write it like {example!r}")
        return parse(value)

    return read


def _number(parse: Callable[[str], float], example: str) -> Callable[[Any], float]:
    """Reads a number, or a text."""

    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise UsageError(f"{value!r} is not a number: write it like {example}")
        return parse(value if isinstance(value, str) else f"{value:.15g}" if isinstance(value, float) else str(value))

    return read


LIMITS: dict[str, Limit] = {
    each.name: each
    for each in (
        Limit("max_params", "params", _number(quantities.parse_count, '"5M"')),
        Limit("max_macs", "macs", _number(quantities.parse_count, '"4.1G"')),
        Limit("max_flops", "flops", _number(quantities.parse_count, '"8.2G"')),
        Limit("max_peak_memory", "peak_memory", _text(quantities.parse_bytes, "2GB")),
        Limit("max_ideal", "ideal", _text(quantities.parse_seconds, "3ms")),
        Limit("max_predicted", "predicted", _text(quantities.parse_seconds, "3ms")),
        Limit("min_intensity", "intensity", _number(quantities.parse_intensity, "20"), least=True),
    )
}


def read_regression(value: Any) -> dict[str, float]:
    """How much each quantity may grow over the baseline, as a share of one: from one text for all, or a table of some.

    Raises UsageError.

    >>> read_regression({"predicted": "5%", "params": "0%"})
    {'predicted': 0.05, 'params': 0.0}
    """
    read = _text(quantities.parse_percent, "5%")
    if not isinstance(value, dict):
        return dict.fromkeys(REGRESSING, read(value))
    if not value:
        raise UsageError("an empty table limits nothing")
    for name in value:
        if name not in REGRESSING:
            raise UsageError(f"{name!r} is not a quantity{nearest(name, REGRESSING)}")
    return {name: read(share) for name, share in value.items()}
