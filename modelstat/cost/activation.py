"""Activation functions, by the table of :mod:`modelstat.cost.table`."""

from __future__ import annotations

from modelstat.cost.elementwise import per_element, pointwise
from modelstat.cost.registry import Work, register
from modelstat.cost.table import ACTIVATIONS
from modelstat.records import Op

register("activation", *(f"aten::{name}" for name in ACTIVATIONS))(pointwise)


@register("activation", "aten::gelu")
def gelu(op: Op) -> Work:
    """Exact, with erf, or approximated with tanh."""
    return per_element(op, "gelu(tanh)" if op.argument("approximate", "none") == "tanh" else "gelu")


@register("activation", "aten::rrelu_with_noise", "aten::rrelu_with_noise_functional")
def randomized_relu(op: Op) -> Work:
    """A compare and a multiplication by a slope that is drawn in training."""
    return per_element(op, "rrelu")
