"""Softmax over rows.

Rows of at most 1024 elements stay in the registers of a warp: one read, one write. Longer ones are read three times, for the maximum,
the sum and the result; the second and third read hit the L2 cache as long as the rows in flight fit there.
"""

from __future__ import annotations

from typing import NamedTuple

from modelstat.cost.record import Cost
from modelstat.predict.kernels.arithmetic import Quantity, ceil, minimum, overlapped, where
from modelstat.predict.kernels.constants import Constants
from modelstat.predict.kernels.rates import Rates
from modelstat.predict.kernels.timing import Time
from modelstat.records import Op

_REGISTERS = 1024.0
"""Longest row that a warp keeps."""


class Features(NamedTuple):
    """``rows`` of ``width`` elements; bytes (B) read and written once."""

    rows: Quantity
    width: Quantity
    read: Quantity
    written: Quantity


def features(op: Op, cost: Cost) -> Features:
    """The softmax axis is a row."""
    data = op.inputs[0]
    axis = op.argument("dim", -1)
    axis = axis[0] if isinstance(axis, (list, tuple)) and axis else axis
    width = float(data.shape[int(axis)]) if data.shape and isinstance(axis, int) else float(data.elements or 1)
    return Features(data.elements / max(width, 1.0), max(width, 1.0), float(cost.read), float(cost.write))


def seconds(f: Features, rates: Rates, c: Constants) -> Time:
    """Time of one softmax."""
    block = where(f.width <= 2048.0, 256.0, 512.0)
    blocks = rates.threads / block
    flight = minimum(f.rows, blocks * rates.sms) * f.read / f.rows
    fill = flight / (rates.l2_bytes * c["l2_share"])
    # The turing half of the cache that misses for LayerNorm's scattered rows still serves the long rows of this kernel.
    fill = where(rates.capability == 7.5, fill / 2.0, fill)
    long = where(f.width > _REGISTERS, 1.0, 0.0)
    missed = 2.0 * long * fill ** c["l2_sharpness"] / (1.0 + fill ** c["l2_sharpness"])
    memory = (f.read * (1.0 + missed) + f.written) / rates.memory
    steps = ceil(f.width / (block * 4.0))
    compute = long * f.rows / (rates.sms * blocks) * (c["row_cycles"] + c["step_cycles"] * steps) / rates.clock_hz
    return Time(compute, memory, overlapped(memory, compute, c["overlap"]) + c["latency_s"])
