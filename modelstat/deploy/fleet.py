"""What bears a demand, whatever it is counted in: how many GPUs, their power and their price."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import msgspec

from modelstat.deploy.prices import Prices
from modelstat.hardware.gpu import Gpu

HEADROOM = 0.3
"""Capacity above the demand: the GPUs bear this share more than what arrives."""
BATCHES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
"""Batches that are tried."""


class Out(msgspec.Struct, frozen=True):
    """One GPU that cannot, and why."""

    gpu: Gpu
    reason: str


class Fleet(NamedTuple):
    """``gpus`` of one kind. ``utilisation`` is the share of their capacity that the demand takes.

    ``power_watts`` (W) is a bound: all boards at their TDP. ``cost_per_hour`` is in the prices' currency. None where a figure is not known.
    """

    gpus: int
    utilisation: float
    power_watts: float | None
    cost_per_hour: float | None


def fleet(gpu: Gpu, demand: float, capacity: float, prices: Prices | None, *, together: int = 1) -> Fleet:
    """As many as bear ``demand`` and HEADROOM more, where ``together`` of them bear ``capacity``, in the same unit."""
    # Rounded, so that no binary fraction asks for a GPU: 3 x 1.3 is a little more than 3.9.
    groups = max(1, ceil(round(demand * (1.0 + HEADROOM) / capacity, 9)))
    count = groups * together
    price = prices.hourly.get(gpu.key) if prices else None
    return Fleet(
        gpus=count,
        utilisation=demand / (groups * capacity),
        power_watts=None if gpu.tdp_w is None else gpu.tdp_w * count,
        cost_per_hour=None if price is None else price * count,
    )


def rank(cost_per_hour: float | None, gpus: int, power_watts: float | None, seconds: float) -> tuple[float, ...]:
    """Cheapest first, then fewest, then least power, then fastest; what is not known comes last."""
    unknown = float("inf")
    # Three boards at 0.60 and one at 1.80 cost the same: rounding off binary fractions lets the number of GPUs decide.
    cost = unknown if cost_per_hour is None else round(cost_per_hour, 9)
    return (cost, gpus, unknown if power_watts is None else power_watts, seconds)


def short(reason: str) -> str:
    """The first half of a missing peak's sentence: what is missing, without what to choose instead."""
    return reason.partition("; it has")[0].partition(" has ")[2] or reason
