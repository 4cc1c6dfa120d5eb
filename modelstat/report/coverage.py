"""How much of a model the formulas cover."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from modelstat.cost.record import Cost
from modelstat.records import Trace


class UnknownOp(msgspec.Struct, frozen=True):
    """An op without a formula: how often it ran and the bytes that it moved (B). Its FLOPs are not in the totals."""

    name: str
    count: int
    bytes: int


class Coverage(msgspec.Struct, frozen=True):
    """How much of the model the formulas cover. ``ops`` are the recorded ops that are not views; the share is 0..1 of all bytes."""

    ops: int
    unknown_ops: tuple[UnknownOp, ...]
    unknown_byte_share: float


def coverage(trace: Trace, costs: Sequence[Cost]) -> Coverage:
    """Which ops have no formula, and their share of the bytes."""
    count: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    for op, cost in zip(trace.ops, costs, strict=True):
        if cost.known == "unknown":
            count[op.name] += 1
            moved[op.name] += cost.bytes
    total = sum(cost.bytes for cost in costs)
    names = sorted(count, key=lambda name: (-moved[name], name))
    return Coverage(
        ops=sum(not op.view for op in trace.ops),
        unknown_ops=tuple(UnknownOp(name, count[name], moved[name]) for name in names),
        unknown_byte_share=sum(moved.values()) / total if total else 0.0,
    )
