"""Routed experts: how many parameters a token meets, and how many experts a batch does.

A router that favours no expert sends each token to ``k`` of ``E`` of them. A batch of ``t`` tokens then meets E (1 - (1 - k/E)^t)
different ones on average: what must be read of their weights.
"""

from __future__ import annotations

from math import prod

import msgspec

from modelstat.cost.operands import GROUPED, touched
from modelstat.records import Op, Trace

CHOICES = "choices"
"""The argument of a grouped product that says how many experts each token meets."""


class Experts(msgspec.Struct, frozen=True):
    """``touched`` of a layer's ``experts`` are met by the batch, ``choices`` by each token. ``touched_bytes`` is over all layers (B)."""

    experts: int
    choices: int
    touched: float
    active_params: int
    """Parameters that one token meets: all that are no experts', and ``choices`` of the experts of each layer."""
    touched_bytes: int


def routed(trace: Trace, tokens: int) -> Trace:
    """The trace with the number of choices written into every product of rows with their experts; ``tokens`` went through the model."""
    return msgspec.structs.replace(trace, ops=tuple(_routed(op, tokens) for op in trace.ops))


def _routed(op: Op, tokens: int) -> Op:
    if op.name not in GROUPED or len(op.inputs[0].shape) != 2 or len(op.inputs[1].shape) != 3:
        return op
    choices, rest = divmod(op.inputs[0].shape[0], tokens)
    if rest or not 0 < choices <= op.inputs[1].shape[0]:
        return op
    return msgspec.structs.replace(op, arguments={**op.arguments, CHOICES: choices})


def experts(trace: Trace) -> Experts | None:
    """The experts of a trace, None for a model that routes nothing. Layers with other numbers than the first count with their own."""
    products = [op for op in trace.ops if CHOICES in op.arguments]
    if not products:
        return None
    active = sum(each.elements for each in trace.parameters if each.kind == "parameter")
    moved = 0.0
    for op in products:
        weight, choices = op.inputs[1], int(op.arguments[CHOICES])
        size = weight.shape[0]
        active -= prod(weight.shape) // size * (size - choices)
        moved += weight.bytes * touched(size, choices, op.inputs[0].shape[0] / choices) / size
    first, choices = products[0], int(products[0].arguments[CHOICES])
    size = first.inputs[1].shape[0]
    return Experts(size, choices, touched(size, choices, first.inputs[0].shape[0] / choices), active, round(moved))
