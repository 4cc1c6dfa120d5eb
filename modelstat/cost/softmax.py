"""The softmax family, in FLOPs per input element: maximum 1, subtraction 1, exponential 1, sum 1, division (or log's subtraction) 1."""

from __future__ import annotations

from modelstat.cost.registry import Work, register
from modelstat.records import Op

SOFTMAX = 5


@register(
    "softmax",
    "aten::_softmax", "aten::_log_softmax", "aten::_safe_softmax", "aten::softmax", "aten::log_softmax", "aten::special_softmax",
    "aten::special_log_softmax", "aten::_nested_tensor_softmax_with_shape", "quantized::softmax",
)  # fmt: skip
def softmax(op: Op) -> Work:
    """5 per element."""
    return Work(flops=SOFTMAX * op.inputs[0].elements)


@register("softmax", "aten::_masked_softmax")
def masked_softmax(op: Op) -> Work:
    """5 per element, and 1 for the addition of the mask."""
    return Work(flops=(SOFTMAX + 1) * op.inputs[0].elements)


@register("softmax", "aten::logsumexp", "aten::special_logsumexp")
def logsumexp(op: Op) -> Work:
    """Maximum, subtraction, exponential and sum: 4 per element, and a logarithm and an addition per output."""
    return Work(flops=4 * op.inputs[0].elements + 2 * op.outputs[0].elements)


@register("softmax", "aten::logcumsumexp", "aten::_logcumsumexp")
def logcumsumexp(op: Op) -> Work:
    """A stable log(exp(a) + exp(b)) per element: maximum, 2 subtractions, 2 exponentials, sum, logarithm, addition."""
    return Work(flops=8 * op.inputs[0].elements)
