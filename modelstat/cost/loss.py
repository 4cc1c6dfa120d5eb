"""Losses, for models that return one: operations per element, and 1 for its share of the mean or sum."""

from __future__ import annotations

from modelstat.cost.operands import operand
from modelstat.cost.registry import Work, register
from modelstat.records import Op

PER_ELEMENT = {
    "aten::l1_loss": 2,  # subtract, abs
    "aten::mse_loss": 2,  # subtract, square
    "aten::smooth_l1_loss": 6, "aten::huber_loss": 6,  # subtract, abs, compare, square, scale, subtract
    "aten::binary_cross_entropy": 7,  # 2 log, 2 subtract, 2 multiply, add
    "aten::binary_cross_entropy_with_logits": 8,  # subtract, multiply, and a log_sigmoid of 6
    "aten::soft_margin_loss": 4,  # multiply, exp, log1p, negate
    "aten::kl_div": 4,  # log, subtract, multiply, compare
    "aten::poisson_nll_loss": 3, "aten::multi_margin_loss": 4, "aten::multilabel_margin_loss_forward": 4,
    "aten::hinge_embedding_loss": 3,
}  # fmt: skip
"""FLOPs per element, without the reduction."""


@register("loss", *PER_ELEMENT)
def pointwise_loss(op: Op) -> Work:
    """The table's FLOPs, and 1 per element for the reduction (1 is its default; 0 asks for none)."""
    count = max(spec.elements for spec in op.inputs)
    return Work(flops=count * (PER_ELEMENT[op.name] + (op.argument("reduction", 1) != 0)))


@register("loss", "aten::nll_loss_forward", "aten::nll_loss2d_forward", "aten::nll_loss", "aten::nll_loss2d", "aten::nll_loss_nd")
def negative_log_likelihood(op: Op) -> Work:
    """Picks one log-probability per target, and reads only those: a multiplication by its class weight and an addition each."""
    source, target = operand(op, "self"), operand(op, "target")
    weight = op.tensor("weight")
    picked = round(target.elements * source.item_bytes)
    return Work(flops=2 * target.elements, read=picked + target.bytes + (weight.bytes if weight is not None else 0))


@register("loss", "aten::_ctc_loss", "aten::_cudnn_ctc_loss", "aten::ctc_loss")
def ctc(op: Op) -> Work:
    """log_probs (T, N, classes), targets (N, S): per time step and each of 2 S + 1 states a log-sum of three terms (8) and an addition."""
    time, batch = operand(op, "log_probs").shape[:2]
    targets = operand(op, "targets")
    length = targets.shape[1] if len(targets.shape) > 1 else targets.elements // max(batch, 1)
    return Work(flops=9 * time * batch * (2 * length + 1))
