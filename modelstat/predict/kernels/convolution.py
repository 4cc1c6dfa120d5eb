"""Convolutions: the sub-case decides the kernel.

Dense ones are matrix products over unrolled patches (implicit GEMM). In fp32, 3 x 3 with stride 1 may also run as Winograd's algorithm:
fused, F(2 x 2), 2.25 times fewer multiplications, or in steps, F(4 x 4), 4 times fewer with 36 smaller products between two transforms; the
library takes the fastest, and so does the formula. Depthwise and grouped ones have little to reuse and are bound by how fast small
groups are fetched. On tensor cores a tensor that is not channels-last is transposed before and after. Where weights are channels-last and
the data is not, PyTorch copies it first.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from modelstat.cost.operands import operand, per_axis
from modelstat.cost.record import Cost
from modelstat.predict.kernels.arithmetic import Quantity, anywhere, ceil, floor, log2, maximum, minimum, overlapped, where
from modelstat.predict.kernels.constants import Constants
from modelstat.predict.kernels.rates import Rates
from modelstat.predict.kernels.stream import resident, traffic_seconds
from modelstat.predict.kernels.tiles import fed, limited_by_power, waves
from modelstat.predict.kernels.timing import Time
from modelstat.records import Op

_NEVER = 1e9
"""Seconds of an algorithm that does not apply."""


class Features(NamedTuple):
    """``m`` output pixels of the whole batch (input pixels if transposed), ``n`` output and ``k`` summed elements of one of ``groups``.

    ``taps`` is the size of the kernel; ``winograd`` 1 for a dense 3 x 3 with stride 1; ``height`` and ``width`` of each of
    ``batch`` outputs; bytes (B) of ``data`` in, ``weights`` and ``result``; ``channels_last``, ``biased``, ``transposed``: 1 or 0;
    ``relaid`` are bytes (B) of data that are copied to the layout of the result first.
    """

    batch: Quantity
    m: Quantity
    n: Quantity
    k: Quantity
    groups: Quantity
    taps: Quantity
    height: Quantity
    width: Quantity
    winograd: Quantity
    data: Quantity
    weights: Quantity
    result: Quantity
    channels_last: Quantity
    biased: Quantity
    transposed: Quantity
    relaid: Quantity = 0.0


def features(op: Op, cost: Cost) -> Features:
    """From data (N, Cin, *), weight (Cout, Cin/groups, *kernel) and output (N, Cout, *)."""
    data, weight, output = operand(op, "input", "self", "X", "x"), operand(op, "weight", "W"), op.outputs[0]
    transposed = bool(op.argument("transposed", "transpose" in op.name))
    groups = max(1, int(op.argument("groups", 1)))
    spatial = max(len(weight.shape) - 2, 1)
    taps = prod(weight.shape[2:])
    pixels = data if transposed else output
    channels = pixels.shape[1] if len(pixels.shape) == spatial + 2 else pixels.shape[0]
    m = pixels.elements / max(channels, 1)
    k = weight.shape[0] / groups if transposed else weight.shape[1] * taps
    n = cost.macs / max(m * k * groups, 1.0)
    unit = all(step == 1 for name in ("stride", "dilation") for step in per_axis(op.argument(name, 1), spatial))
    square = tuple(weight.shape[2:]) == (3, 3)
    batch = float(output.shape[0]) if len(output.shape) == spatial + 2 else 1.0
    height = float(output.shape[-2]) if spatial > 1 else 1.0
    last = data.channels_last or output.channels_last
    return Features(
        batch, m, n, k, float(groups), float(taps), height, float(output.shape[-1]),
        float(square and unit and groups == 1 and not transposed),
        float(data.bytes), float(weight.bytes), float(output.bytes),
        float(last), float(op.tensor("bias") is not None), float(transposed),
        float(data.bytes if last and not data.channels_last and data.shape[1] > 1 else 0.0),
    )  # fmt: skip


def seconds(f: Features, rates: Rates, c: Constants) -> Time:
    """Time of one convolution, with the transposes around it and the addition of a bias behind it."""
    flops = 2.0 * f.groups * f.m * f.n * f.k
    size = f.data + f.weights + f.result
    dram = size * (1.0 - resident(size, rates.l2_bytes * c["l2_share"]))
    memory = traffic_seconds(dram, size, rates, c["port_bytes"])
    direct = limited_by_power(_direct(f, rates, c), flops, rates, c) * where(f.transposed > 0.0, c["transposed"], 1.0)
    direct = direct * where(f.groups > 1.0, where(f.channels_last > 0.0, c["grouped_last"], c["grouped"]), 1.0)
    # Kernels for groups that are channels-last are made for widths of 8, 16, 32, ... channels.
    width = maximum(f.k / f.taps, 1.0)
    odd = (f.groups > 1.0) & (f.channels_last > 0.0) & (2.0 ** floor(log2(width)) < width)
    direct = direct * where(odd, c["grouped_odd_last"], 1.0)
    direct = direct * where((f.taps == 1.0) & (f.groups == 1.0), c["pointwise"], 1.0)
    compute = direct
    dense = overlapped(direct, memory, c["overlap"])
    if "fused_efficiency" in c and anywhere(f.winograd > 0.0):
        fused, steps = _winograd_fused(f, rates, c), _winograd_steps(f, rates, c)
        compute = where(f.winograd > 0.0, minimum(direct, minimum(fused.compute, steps.compute)), direct)
        dense = where(f.winograd > 0.0, minimum(dense, minimum(fused.total, steps.total)), dense)
    thin = where((f.groups > 1.0) & (f.k * f.n <= c["thin_most"] * f.taps), 1.0, 0.0)
    # Depthwise and thin groups: no matrix product, each output sums its few taps on the vector lanes.
    last = f.channels_last > 0.0
    sums = flops / (rates.vector * where(last, c["thin_efficiency_last"], c["thin_efficiency"]))
    # Kernels above 5 x 5 are not unrolled: each tap costs more the more there are.
    growth = maximum(1.0, f.taps / 25.0) ** where(last, c["thin_growth_last"], c["thin_growth"])
    sums = sums * minimum(growth, c["thin_growth_most"])
    # Channels-last: the rows under a kernel hold all channels, and are read again from memory unless the L2 cache keeps them.
    band = f.taps**0.5 * f.data / maximum(f.batch * f.height, 1.0)
    again = where(last, f.data * (1.0 - resident(band * c["bands"], rates.l2_bytes, 2.0)), 0.0)
    thin_memory = (size + again * c["thin_again"]) / (rates.memory * where(last, c["thin_memory_last"], c["thin_memory"]))
    thin_time = overlapped(sums, thin_memory, c["overlap"])
    dense = dense + where((f.groups > 1.0), again * c["grouped_again"] / rates.memory, 0.0)
    layout = where((f.channels_last > 0.0) | (thin > 0.0), 0.0, c["layout_passes"]) * (f.data + f.result) / rates.memory
    bias = f.biased * 2.0 * f.result / rates.memory * c["bias_passes"]
    copied = 2.0 * f.relaid / rates.memory * c["relaid_passes"]
    total = where(thin > 0.0, thin_time, dense) + layout + bias + copied + c["latency_s"]
    return Time(where(thin > 0.0, sums, compute), memory, total)


def _direct(f: Features, rates: Rates, c: Constants) -> Quantity:
    """Implicit GEMM on the best of three tiles; channels are padded to whole vectors, so an image's 3 cost as much as 8 on tensor cores."""
    k = f.taps * c["channel_multiple"] * ceil(f.k / f.taps / c["channel_multiple"]) + c["prologue"] * rates.feed
    best: Quantity = None
    for x, y, loss in ((128.0, 128.0, 1.0), (128.0, 64.0, 0.95), (128.0, 32.0, 0.85)):
        blocks = f.groups * ceil(f.m / x) * ceil(f.n / y)
        turns = waves(blocks, rates.sms, c["direct_tail"]) + c["direct_ramp"]
        time = turns * 2.0 * x * y * k * rates.sms / rates.issue / fed(c["direct_efficiency"] * loss, rates)
        best = time if best is None else minimum(best, time)
    return best


def _winograd_fused(f: Features, rates: Rates, c: Constants) -> Time:
    """F(2 x 2, 3 x 3): a block makes 8 x 16 pixels of 32 channels, in one kernel after the weights were transformed (9 -> 16)."""
    channels = f.k / f.taps
    blocks = f.batch * ceil(f.n / 32.0) * ceil(f.height / 8.0) * ceil(f.width / 16.0)
    turns = waves(blocks, rates.sms, c["fused_tail"]) + c["fused_ramp"]
    work = 2.0 * 128.0 * 32.0 * 9.0 / 2.25 * (channels + c["prologue"])
    compute = turns * work * rates.sms / rates.issue / c["fused_efficiency"]
    compute = limited_by_power(compute, 2.0 * f.m * f.n * f.k / 2.25, rates, c)
    memory = (f.data + f.result) / rates.memory
    weights = f.weights * (9.0 + 16.0) / 9.0 / rates.memory * c["weight_passes"]
    return Time(compute, memory, overlapped(compute, memory, c["overlap"]) + weights)


def _winograd_steps(f: Features, rates: Rates, c: Constants) -> Time:
    """F(4 x 4, 3 x 3): transform 4 x 4 tiles of the input to 36 planes, multiply (64 x 64 tiles), transform back; weights 9 -> 36."""
    channels = f.k / f.taps
    tiles = f.batch * ceil(f.height / 4.0) * ceil(f.width / 4.0)
    blocks = 36.0 * ceil(tiles / 64.0) * ceil(f.n / 64.0)
    turns = waves(blocks, rates.sms, c["steps_tail"]) + c["steps_ramp"]
    compute = turns * 2.0 * 64.0 * 64.0 * (channels + c["prologue"]) * rates.sms / rates.issue / c["steps_efficiency"]
    compute = limited_by_power(compute, 2.0 * 36.0 * tiles * f.n * channels, rates, c)
    planes = 4.0 * 36.0 * tiles * (channels + f.n)
    weights = f.weights * 36.0 / 9.0
    product = overlapped(compute, (planes + weights) / rates.memory, c["overlap"])
    transforms = (f.data + f.result + planes) / rates.memory * c["transform_passes"]
    weights = f.weights * (9.0 + 36.0) / 9.0 / rates.memory * c["weight_passes"]
    return Time(compute, planes / rates.memory, product + transforms + weights + c["steps_latency_s"])
