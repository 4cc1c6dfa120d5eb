"""Any other op: FLOPs at a share of the peak against bytes at a share of the memory's rate.

Unfitted. Contractions that no other family knows (quantised layers, linear algebra, sparse products), resampling, transforms, losses.
"""

from __future__ import annotations

from typing import NamedTuple

from modelstat.cost.record import Cost
from modelstat.predict.kernels.arithmetic import Quantity, overlapped, where
from modelstat.predict.kernels.constants import Constants
from modelstat.predict.kernels.rates import Rates
from modelstat.predict.kernels.timing import Time
from modelstat.records import Op


class Features(NamedTuple):
    """Counted FLOPs, bytes (B) moved, and whether it is a ``contraction``: 1 or 0."""

    flops: Quantity
    size: Quantity
    contraction: Quantity


def features(op: Op, cost: Cost) -> Features:
    """The op's counts."""
    del op
    return Features(float(cost.flops), float(cost.bytes), float(cost.unit == "matmul"))


def seconds(f: Features, rates: Rates, c: Constants) -> Time:
    """Time of one op."""
    compute = where(f.contraction > 0.0, f.flops / (rates.issue * c["contraction_share"]), f.flops / (rates.vector * c["vector_share"]))
    memory = f.size / (rates.memory * c["memory_share"])
    return Time(compute, memory, overlapped(compute, memory, c["overlap"]) + c["latency_s"])
