"""Pooling: every output element meets every element of its window once.

A maximum over k elements and a mean of them (k - 1 additions, one division) are both counted as k. Adaptive pooling, whose windows
share out the input, is 1 per input element, and 1 per output for the division of a mean.
"""

from __future__ import annotations

from math import prod

from modelstat.cost.operands import per_axis
from modelstat.cost.registry import Work, register
from modelstat.records import Op


def _axes(op: Op) -> int:
    return next((axes for axes in (1, 2, 3) if f"{axes}d" in op.name), 2)


@register(
    "pooling",
    "aten::max_pool1d", "aten::max_pool2d", "aten::max_pool3d", "aten::max_pool1d_with_indices", "aten::max_pool2d_with_indices",
    "aten::max_pool3d_with_indices", "aten::mkldnn_max_pool2d", "aten::mkldnn_max_pool3d", "aten::quantized_max_pool1d",
    "aten::quantized_max_pool2d", "aten::quantized_max_pool3d", "aten::avg_pool1d", "aten::avg_pool2d", "aten::avg_pool3d",
    "aten::fractional_max_pool2d", "aten::fractional_max_pool3d", "quantized::max_pool1d", "quantized::max_pool2d",
)  # fmt: skip
def pool(op: Op) -> Work:
    """kernel elements per output element."""
    return Work(flops=op.outputs[0].elements * prod(per_axis(op.arguments["kernel_size"], _axes(op))))


@register(
    "pooling",
    "aten::_adaptive_avg_pool2d", "aten::_adaptive_avg_pool3d", "aten::adaptive_avg_pool1d", "aten::adaptive_avg_pool2d",
    "aten::adaptive_avg_pool3d", "aten::mkldnn_adaptive_avg_pool2d",
)  # fmt: skip
def adaptive_mean(op: Op) -> Work:
    """1 per input element, 1 per output element."""
    return Work(flops=op.inputs[0].elements + op.outputs[0].elements)


@register("pooling", "aten::adaptive_max_pool1d", "aten::adaptive_max_pool2d", "aten::adaptive_max_pool3d")
def adaptive_maximum(op: Op) -> Work:
    """1 per input element."""
    return Work(flops=op.inputs[0].elements)


@register("pooling", "aten::max_unpool2d", "aten::max_unpool3d")
def unpool(op: Op) -> Work:
    """Writes every value to its place in a field of zeros: bytes only."""
    return Work()
