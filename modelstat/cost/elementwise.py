"""Point-wise arithmetic, by the table of :mod:`modelstat.cost.table`."""

from __future__ import annotations

from modelstat.cost.operands import produced
from modelstat.cost.registry import Work, arithmetic_dtype, register
from modelstat.cost.table import ACTIVATIONS, COMPLEX_PER_ELEMENT, FOREACH, PER_ELEMENT, REAL_DTYPE
from modelstat.records import Op

SCALED = ("add", "sub", "subtract", "rsub", "_add_relu")
"""Ops with a factor ``alpha`` on the second operand: one more multiplication where it is not 1."""

OWN_FORMULA = ("gelu", "gelu(tanh)", "clamp", "clip", "where")
"""In the table, but with an argument that decides."""


def table_name(op: Op) -> str:
    """The name under which the table has the op: ``aten::_foreach_add_`` is ``add``."""
    name = op.name.removeprefix("aten::").removeprefix("_foreach_")
    return name if name in PER_ELEMENT else name.removesuffix("_")


def per_element(op: Op, name: str, extra: int = 0) -> Work:
    """The table's FLOPs for every element that the op yields, plus ``extra`` for each."""
    dtype = arithmetic_dtype(op, contraction=False)
    if dtype in REAL_DTYPE:
        flops = COMPLEX_PER_ELEMENT.get(name, 2 * PER_ELEMENT[name]) + 2 * extra
        return Work(flops=flops * produced(op), dtype=REAL_DTYPE[dtype])
    return Work(flops=(PER_ELEMENT[name] + extra) * produced(op))


@register(
    "elementwise",
    *(f"aten::{name}" for name in PER_ELEMENT if name not in ACTIVATIONS and name not in OWN_FORMULA),
    *(f"aten::_foreach_{name}" for name in FOREACH),
)
def pointwise(op: Op) -> Work:
    """The table's FLOPs, plus a multiplication by ``alpha`` or ``value`` where that is not 1."""
    name = table_name(op)
    factor = op.argument("alpha" if name in SCALED else "value", 1) if name in (*SCALED, "addcmul", "addcdiv") else 1
    return per_element(op, name, extra=0 if factor in (1, None) else 1)


@register("elementwise", "aten::clamp", "aten::clip")
def clamp(op: Op) -> Work:
    """One compare a side that is given: an argument or a tensor ``min``, ``max``."""
    sides = sum(op.argument(side) is not None or op.tensor(side) is not None for side in ("min", "max"))
    return Work(flops=sides * produced(op))


@register("elementwise", "aten::where")
def where(op: Op) -> Work:
    """Chooses, and calculates nothing. With the condition alone it is nonzero."""
    return Work()


@register("elementwise", "prims::convert_element_type", "prims::device_put")
def conversion(op: Op) -> Work:
    """Another dtype or device: bytes only."""
    return Work()


@register("elementwise", "aten::linalg_cross", "aten::cross")
def cross(op: Op) -> Work:
    """Per element two products and their difference."""
    return Work(flops=3 * op.outputs[0].elements)
