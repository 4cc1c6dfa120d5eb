"""Pooling: every output reads its window; neighbours share what they read through the L1 cache.

Unfitted: the memory model with a share of the stream's rate, against the instructions of all windows.
"""

from __future__ import annotations

from typing import NamedTuple

from modelstat.cost.record import Cost
from modelstat.predict.kernels.arithmetic import Quantity, overlapped
from modelstat.predict.kernels.constants import Constants
from modelstat.predict.kernels.rates import Rates
from modelstat.predict.kernels.timing import Time
from modelstat.records import Op


class Features(NamedTuple):
    """Bytes (B) read, and written with all outputs that the kernel has (indices too); counted FLOPs: elements of all windows."""

    read: Quantity
    written: Quantity
    flops: Quantity


def features(op: Op, cost: Cost) -> Features:
    """The op's bytes, unused outputs included, and FLOPs."""
    written = max(float(cost.write), float(sum(spec.bytes for spec in op.outputs)))
    return Features(float(cost.read), written, float(cost.flops))


def seconds(f: Features, rates: Rates, c: Constants) -> Time:
    """Time of one pooling."""
    memory = (f.read + f.written) / (rates.memory * c["memory_share"])
    compute = f.flops * c["instructions_per_flop"] / (rates.vector / 2.0)
    return Time(compute, memory, overlapped(memory, compute, c["overlap"]) + c["latency_s"])
