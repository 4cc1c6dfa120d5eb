"""Point-wise kernels, and whatever else streams its inputs in and its outputs out once.

Time = latency + max-like(bytes / memory rate, operations / vector rate). A working set that fits the L2 cache was left there by the
kernel before and is read faster than DRAM gives it.
"""

from __future__ import annotations

from typing import NamedTuple

from modelstat.cost.record import Cost
from modelstat.predict.kernels.arithmetic import Quantity, overlapped
from modelstat.predict.kernels.constants import Constants
from modelstat.predict.kernels.rates import Rates
from modelstat.predict.kernels.stream import resident
from modelstat.predict.kernels.timing import Time
from modelstat.records import Op


class Features(NamedTuple):
    """``read`` and ``written`` in bytes (B); ``flops`` as counted."""

    read: Quantity
    written: Quantity
    flops: Quantity


def features(op: Op, cost: Cost) -> Features:
    """The op's bytes and FLOPs."""
    return Features(float(cost.read), float(cost.write), float(cost.flops))


def seconds(f: Features, rates: Rates, c: Constants) -> Time:
    """Time of one streaming kernel."""
    size = f.read + f.written
    cached = resident(size, rates.l2_bytes * c["l2_share"])
    memory = size / rates.memory / (1.0 + (c["l2_gain"] - 1.0) * cached)
    compute = f.flops * c["instructions_per_flop"] / (rates.vector / 2.0)
    return Time(compute, memory, overlapped(memory, compute, c["overlap"]) + c["latency_s"])
