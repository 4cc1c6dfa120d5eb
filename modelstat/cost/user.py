"""Formulas that users register for their own ops."""

from __future__ import annotations

from collections.abc import Callable

from modelstat.cost.record import Cost
from modelstat.cost.registry import FORMULAS, USER_FORMULAS, UserFormula, cost_of, load_families
from modelstat.errors import CostError
from modelstat.records import Op


def formula(name: str, *, override: bool = False) -> Callable[[UserFormula], UserFormula]:
    """Decorator that registers the formula of an op, such as ``my::op``.

    The formula takes the :class:`~modelstat.records.Op` (shapes, dtypes and arguments; never values) and returns its MACs as an
    integer, a :class:`~modelstat.cost.registry.Work`, or None for an op that is known to cost nothing. One line is enough::

        formula("my::op")(lambda op: op.inputs[0].elements * 8)

    A second registration of one name replaces the first, so that a notebook cell can be run again. Raises CostError for an op that
    modelstat has a formula for, unless ``override``, and for a name without a namespace.
    """
    if "::" not in name:
        raise CostError(f"op name {name!r} has no namespace: write it as in the report, for example my::op")
    load_families()
    if name in FORMULAS and not override:
        raise CostError(f"op {name} has a formula already ({FORMULAS[name][0]}): pass override=True to replace it")

    def add(function: UserFormula) -> UserFormula:
        USER_FORMULAS[name] = function
        return function

    return add


def evaluate(op: Op) -> dict[str, int] | None:
    """What a user's formula says of an op, as the fields that :attr:`Op.cost` stores; None for an op without a user's formula.

    Raises CostError if the formula fails.
    """
    if op.name not in USER_FORMULAS:
        return None
    cost: Cost = cost_of(op)
    return {
        "macs": cost.macs,
        "flops": cost.flops,
        "madd": cost.madd,
        "activations": cost.activations,
        "read": cost.read,
        "write": cost.write,
    }
