"""Interpolation.

PyTorch's kernels for weighted interpolation of images in the natural layout give each output pixel one thread, which walks through all
samples and channels one after another: a small image with many channels leaves the GPU empty and takes one memory latency for each
of them. Other kernels (nearest, channels-last, grid sampling) spread over all elements.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from modelstat.cost.record import Cost
from modelstat.predict.kernels.arithmetic import Quantity, ceil, overlapped
from modelstat.predict.kernels.constants import Constants
from modelstat.predict.kernels.rates import Rates
from modelstat.predict.kernels.timing import Time
from modelstat.records import Op

_WALKING = frozenset(("aten::upsample_linear1d", "aten::upsample_bilinear2d", "aten::upsample_trilinear3d", "aten::upsample_bicubic2d"))


class Features(NamedTuple):
    """``size`` in bytes (B) moved, FLOPs; ``planes`` that each thread walks through (0 if it does not) for ``pixels`` of output."""

    size: Quantity
    flops: Quantity
    planes: Quantity
    pixels: Quantity


def features(op: Op, cost: Cost) -> Features:
    """From the output (N, C, *pixels)."""
    output, data = op.outputs[0], op.inputs[0]
    walks = op.name in _WALKING and not data.channels_last and len(output.shape) > 2
    planes = float(prod(output.shape[:2])) if walks else 0.0
    return Features(float(cost.bytes), float(cost.flops), planes, float(prod(output.shape[2:])))


def seconds(f: Features, rates: Rates, c: Constants) -> Time:
    """Time of one interpolation."""
    memory = f.size / (rates.memory * c["memory_share"])
    walk = f.planes * ceil(f.pixels / (rates.sms * rates.threads)) * c["step_cycles"] / rates.clock_hz
    compute = f.flops * c["instructions_per_flop"] / (rates.vector / 2.0)
    return Time(compute, memory, overlapped(overlapped(memory, compute, c["overlap"]), walk, c["overlap"]) + c["latency_s"])
