"""The tree of modules, each with all below it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from modelstat.cost.record import Cost
from modelstat.predict.prediction import Prediction
from modelstat.predict.roofline import Roofline
from modelstat.records import Trace


class Node(msgspec.Struct, frozen=True):
    """One module and all below it: time (s, None where the GPU has no peak for it), FLOPs and bytes.

    ``parent`` is an index into the nodes, -1 the root's.
    """

    path: str
    type: str
    parent: int
    seconds: float | None
    flops: int
    bytes: int


def nodes(trace: Trace, costs: Sequence[Cost], roofline: Roofline, prediction: Prediction) -> tuple[Node, ...]:
    """One node per module that runs something, itself or below, parents first."""
    size = len(trace.modules)
    flops, moved, seconds = [0] * size, [0] * size, [0.0] * size
    known = [True] * size
    for index, (op, cost, time) in enumerate(zip(trace.ops, costs, roofline.ops, strict=True)):
        flops[op.module] += cost.flops
        moved[op.module] += cost.bytes
        mine = prediction.ops[index].total_seconds if prediction.ops else time.ideal_seconds
        known[op.module] = known[op.module] and mine is not None
        seconds[op.module] += mine or 0.0
    for index in range(size - 1, 0, -1):
        parent = trace.modules[index].parent
        flops[parent] += flops[index]
        moved[parent] += moved[index]
        seconds[parent] += seconds[index]
        known[parent] = known[parent] and known[index]
    place: dict[int, int] = {-1: -1}
    found: list[Node] = []
    for index, module in enumerate(trace.modules):
        if index == 0 or flops[index] or moved[index] or seconds[index]:
            place[index] = len(found)
            time_known = seconds[index] if known[index] else None
            found.append(Node(module.path, module.type, place[module.parent], time_known, flops[index], moved[index]))
    return tuple(found)
