"""Tensor parallelism: what one of N GPUs computes, reads and holds, and what it must exchange.

The trace is followed along its data flow. A value is whole on every GPU, or split, or each GPU has a part of a sum. A contraction splits
the columns of its weight where its input is whole, and leaves a split result; where its input is split it splits the rows, and the parts
are summed: one all-reduce for two contractions, as Megatron-LM has it. The sum waits as long as what follows is linear. Other ops work on
the part that they are given, and gather what they need whole (a LayerNorm over split features, an op without a rule).

How a value is split is exact: :mod:`~modelstat.deploy.cut` keeps which places of its storage each GPU has, so every view of it knows
whether one of its axes carries the split. Which columns of a weight a GPU gets is free: the first walk shares them out in one block each;
what then does not fit (the thirds of a fused projection, two halves of a gated one, fewer heads of keys and values than GPUs) is wished
for, and the trace is walked again with that layout, until a walk wishes for nothing else. What is still gathered is counted.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from modelstat.cost.record import Cost
from modelstat.cost.registry import cost_of, halved
from modelstat.deploy.collectives import Collective
from modelstat.deploy.heads import check_heads
from modelstat.deploy.splitter import Splitter
from modelstat.deploy.wishes import Wishes
from modelstat.records import Op, Trace

WALKS = 12
"""A layout is handed on by one op a walk; after so many the last one counts, which is as valid as any."""


class Shards(msgspec.Struct, frozen=True):
    """One of ``gpus`` GPUs: the costs of its part of each op, the exchanges in order, and the trace with the tensors and bytes that it has.

    ``split_share`` is the share of the MACs that is split at all.
    """

    gpus: int
    trace: Trace
    costs: tuple[Cost, ...]
    collectives: tuple[Collective, ...]
    split_share: float


def shards(trace: Trace, costs: Sequence[Cost], gpus: int) -> Shards:
    """The part of one of ``gpus`` GPUs. Raises UsageError where attention has a number of heads that ``gpus`` does not divide."""
    if gpus == 1:
        return Shards(1, trace, tuple(costs), (), 0.0)
    for op, cost in zip(trace.ops, costs, strict=True):
        # Also where its heads would stay whole because the columns of the layers before do: nobody asks for such a layout.
        if cost.family == "attention":
            check_heads(op, gpus, trace.modules[op.module].path or trace.modules[op.module].type)
    splitter, ops = _walked(trace, costs, gpus)
    local = tuple(
        cost if mine is op else _cost(op, mine, cost) for op, mine, cost in zip(trace.ops, ops, costs, strict=True)
    )
    macs = sum(cost.macs for cost in costs)
    whole = sum(cost.macs for cost, mine in zip(costs, local, strict=True) if mine.macs == cost.macs)
    ways = {value: split.ways for value, split in splitter.splits.items()}
    ways.update((value, split.ways) for value, split in splitter.held.items() if value not in splitter.needed)
    parameters = tuple(
        one if one.value not in ways else msgspec.structs.replace(one, bytes=-(-one.bytes // ways[one.value])) for one in trace.parameters
    )
    values = tuple(
        msgspec.structs.replace(value, bytes=-(-value.bytes // ways[index])) if index in ways else value
        for index, value in enumerate(trace.values)
    )
    mine = msgspec.structs.replace(trace, parameters=parameters, values=values, ops=ops)
    return Shards(gpus, mine, local, tuple(splitter.collectives), 1.0 - whole / macs if macs else 0.0)


def _walked(trace: Trace, costs: Sequence[Cost], gpus: int) -> tuple[Splitter, tuple[Op, ...]]:
    """Walks until a walk wishes for nothing else."""
    wishes = Wishes()
    for _ in range(WALKS):
        splitter = Splitter(trace, costs, gpus, wishes)
        ops = splitter.walk()
        wished = splitter.wished()
        if wished == wishes:
            break
        wishes = wished
    return splitter, ops


def _cost(op: Op, mine: Op, cost: Cost) -> Cost:
    """The cost of a part, counted as the whole op was."""
    half = bool(op.argument("is_causal")) and cost.macs != cost_of(op).macs
    return cost_of(halved(mine) if half else mine)
