"""Sums, means, maxima and their kin over some axes: the input is read once, and little is written.

Unfitted: the memory model with a share of the stream's rate. Where outputs are few, the input is split among blocks and a second stage
adds their parts up.
"""

from __future__ import annotations

from typing import NamedTuple

from modelstat.cost.record import Cost
from modelstat.predict.kernels.arithmetic import Quantity, overlapped, where
from modelstat.predict.kernels.constants import Constants
from modelstat.predict.kernels.rates import Rates
from modelstat.predict.kernels.stream import resident
from modelstat.predict.kernels.timing import Time
from modelstat.records import Op


class Features(NamedTuple):
    """Bytes (B) read and written, counted FLOPs, and ``outputs`` elements."""

    read: Quantity
    written: Quantity
    flops: Quantity
    outputs: Quantity


def features(op: Op, cost: Cost) -> Features:
    """The op's bytes, FLOPs and outputs."""
    outputs = float(op.outputs[0].elements) if op.outputs else 1.0
    return Features(float(cost.read), float(cost.write), float(cost.flops), max(outputs, 1.0))


def seconds(f: Features, rates: Rates, c: Constants) -> Time:
    """Time of one reduction."""
    size = f.read + f.written
    cached = resident(size, rates.l2_bytes * c["l2_share"])
    memory = size / (rates.memory * c["memory_share"]) / (1.0 + (c["l2_gain"] - 1.0) * cached)
    compute = f.flops * c["instructions_per_flop"] / (rates.vector / 2.0)
    two_stages = where(f.outputs < rates.sms * c["outputs_per_sm"], c["second_stage_s"], 0.0)
    return Time(compute, memory, overlapped(memory, compute, c["overlap"]) + c["latency_s"] + two_stages)
