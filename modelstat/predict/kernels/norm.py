"""Normalisation over rows: LayerNorm, RMSNorm, GroupNorm, and BatchNorm with its statistics given or computed.

A LayerNorm reads a row for its mean and variance and again to scale it. The second read hits the L2 cache as long as the rows in
flight (one to each resident block of 128 threads) fit there; else it is a third pass over memory, after the read and the write.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from modelstat.cost.record import Cost
from modelstat.predict.kernels.arithmetic import Quantity, ceil, maximum, minimum, overlapped
from modelstat.predict.kernels.constants import Constants
from modelstat.predict.kernels.rates import Rates
from modelstat.predict.kernels.timing import Time
from modelstat.records import Op, TensorSpec

_BLOCK_THREADS = 128.0
_VECTOR = 4.0
"""Elements that a thread loads at once."""


class Features(NamedTuple):
    """``rows`` of ``width`` elements that share their statistics; bytes (B) read and written once; ``again``: the rows are read twice.

    ``relaid`` is 1 where the kernel wants another layout first: GroupNorm on channels-last images, LayerNorm on what is not contiguous.
    """

    rows: Quantity
    width: Quantity
    read: Quantity
    written: Quantity
    again: Quantity
    relaid: Quantity = 0.0


def features(op: Op, cost: Cost) -> Features:
    """LayerNorm: the normalised axes are a row. GroupNorm: a group. BatchNorm: a channel, read once if its statistics are given."""
    data = op.inputs[0]
    elements = float(data.elements)
    name = op.name
    if "batch_norm" in name:
        rows = float(data.shape[1]) if len(data.shape) > 1 else 1.0
        given = not op.argument("training", False) or "no_training" in name or "no_update" in name
        return Features(rows, elements / max(rows, 1.0), float(cost.read), float(cost.write), 0.0 if given else 1.0)
    if "group_norm" in name:
        rows = float(data.shape[0]) * float(op.argument("num_groups", op.argument("group", 1)))
    elif "instance_norm" in name:
        rows = float(prod(data.shape[:2]))
    else:
        shape = op.argument("normalized_shape")
        width = prod(shape) if isinstance(shape, (list, tuple)) and shape else data.shape[-1] if data.shape else 1
        rows = elements / max(float(width), 1.0)
    scattered = "group_norm" in name or "instance_norm" in name
    relaid = data.channels_last if scattered else not _contiguous(data)
    return Features(rows, elements / max(rows, 1.0), float(cost.read), float(cost.write), 1.0, float(relaid))


def _contiguous(data: TensorSpec) -> bool:
    step = 1
    for size, stride in zip(data.shape[::-1], data.strides[::-1], strict=True):
        if size > 1 and stride != step:
            return False
        step *= size
    return True


def seconds(f: Features, rates: Rates, c: Constants) -> Time:
    """Time of one normalisation."""
    blocks = minimum(rates.threads / _BLOCK_THREADS, 16.0)
    flight = minimum(f.rows, blocks * rates.sms) * f.read / maximum(f.rows, 1.0)
    fill = flight / (rates.l2_bytes * c["l2_share"])
    missed = f.again * fill ** c["l2_sharpness"] / (1.0 + fill ** c["l2_sharpness"])
    memory = (f.read * (1.0 + missed + c["relayout_passes"] * f.relaid) + f.written) / rates.memory
    steps = ceil(f.width / (_BLOCK_THREADS * _VECTOR))
    turns = f.again * f.rows / (rates.sms * blocks)
    compute = turns * (c["row_cycles"] + c["step_cycles"] * steps) / rates.clock_hz
    return Time(compute, memory, overlapped(memory, compute, c["overlap"]) + c["latency_s"])
