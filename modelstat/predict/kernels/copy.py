"""Copies: clones, casts, concatenations, fills, and changes of layout.

Unfitted: the stream's rate where both sides run along memory, a share of it where one side jumps (a transpose).
"""

from __future__ import annotations

from typing import NamedTuple

from modelstat.cost.record import Cost
from modelstat.predict.kernels.arithmetic import Quantity, where
from modelstat.predict.kernels.constants import Constants
from modelstat.predict.kernels.rates import Rates
from modelstat.predict.kernels.stream import resident
from modelstat.predict.kernels.timing import Time
from modelstat.records import Op, TensorSpec


class Features(NamedTuple):
    """Bytes (B) read and written; ``jumps`` 1 where inputs and outputs have different innermost axes."""

    read: Quantity
    written: Quantity
    jumps: Quantity


def features(op: Op, cost: Cost) -> Features:
    """The op's bytes, and whether the layout changes."""
    sources = [spec for spec in op.inputs if len(spec.shape) > 1]
    inner = {_innermost(spec) for spec in (*sources[:1], *op.outputs[:1]) if len(spec.shape) > 1}
    return Features(float(cost.read), float(cost.write), float(len(inner) > 1))


def _innermost(spec: TensorSpec) -> int:
    """The axis that runs along memory, counted from the last one; axes of one element have no direction."""
    steps = [(stride, -axis) for axis, (size, stride) in enumerate(zip(spec.shape[::-1], spec.strides[::-1], strict=False)) if size > 1]
    return min(steps)[1] if steps else 0


def seconds(f: Features, rates: Rates, c: Constants) -> Time:
    """Time of one copy."""
    size = f.read + f.written
    cached = resident(size, rates.l2_bytes * c["l2_share"])
    rate = rates.memory * where(f.jumps > 0.0, c["transpose_share"], 1.0)
    memory = size / rate / (1.0 + (c["l2_gain"] - 1.0) * cached)
    return Time(0.0 * memory, memory, memory + c["latency_s"])
