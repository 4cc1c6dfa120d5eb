"""What torch.compile's default backend makes of a trace: fewer kernels that move fewer bytes.

It writes one kernel for a chain of point-wise ops, casts, copies and layout changes, takes a normalisation, softmax or reduction into
the kernel of its neighbours, and leaves contractions to libraries (their epilogue stays a kernel of its own). A fused kernel reads each
value from outside once and writes only what someone outside reads. Inference BatchNorm is point-wise there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from modelstat.cost.record import Cost
from modelstat.records import Op, Trace

Role = Literal["pointwise", "reduction", "opaque", "free"]

POINTWISE = frozenset(("elementwise", "activation", "copy", "random"))
REDUCING = frozenset(("norm", "softmax", "reduction"))


class Kernel(msgspec.Struct, frozen=True):
    """One kernel of the compiled model.

    ``ops`` are the ops it holds (indices into the trace), ``cost`` is that of all of them with the bytes that are left, and ``lead`` is
    the op whose formula times it.
    """

    ops: tuple[int, ...]
    lead: int
    cost: Cost


def role(op: Op, cost: Cost) -> Role:
    """What fusion can do with an op."""
    if cost.known == "free" or op.view:
        return "free"
    if cost.unit == "matmul" or cost.known == "unknown":
        return "opaque"
    if cost.family in REDUCING:
        given = "batch_norm" in op.name and not op.argument("training", False)
        return "pointwise" if given else "reduction"
    return "pointwise" if cost.family in POINTWISE else "opaque"


def fuse(trace: Trace, costs: Sequence[Cost]) -> tuple[Kernel, ...]:
    """The compiled model's kernels, in the order of their last op.

    Greedy along the data flow: an op joins the kernel that wrote its largest input if both can be fused, at most one of their
    reductions is over another shape, and no op that cannot be fused stands between.
    """
    groups: list[list[int]] = []
    group_of: dict[int, int] = {}
    writer: dict[int, int] = {}
    for index, (op, cost) in enumerate(zip(trace.ops, costs, strict=True)):
        kind = role(op, cost)
        if kind == "free":
            continue
        joined: int | None = None
        if kind != "opaque":
            joined = _group_to_join(op, writer, group_of, groups, trace, costs)
        if joined is None:
            joined = len(groups)
            groups.append([])
        groups[joined].append(index)
        group_of[index] = joined
        for spec in op.outputs:
            writer[spec.value] = index
    readers = _readers(trace, costs)
    kernels = [_kernel(members, trace, costs, readers, writer) for members in groups]
    return tuple(sorted(kernels, key=lambda kernel: kernel.ops[-1]))


def _group_to_join(
    op: Op, writer: dict[int, int], group_of: dict[int, int], groups: list[list[int]], trace: Trace, costs: Sequence[Cost]
) -> int | None:
    for spec in sorted(op.inputs, key=lambda spec: -spec.bytes):
        source = writer.get(spec.value)
        if source is None or source not in group_of:
            continue
        group = group_of[source]
        first = groups[group][0]
        if role(trace.ops[first], costs[first]) == "opaque":
            continue
        if _elements(op) * 4 < max(_elements(trace.ops[member]) for member in groups[group]):
            # The op works on what a reduction left: a small kernel of its own.
            continue
        return group
    return None


def _elements(op: Op) -> int:
    return max((spec.elements for spec in (*op.outputs, *op.inputs)), default=0)


def _readers(trace: Trace, costs: Sequence[Cost]) -> dict[int, list[int]]:
    readers: dict[int, list[int]] = {}
    for index, (op, cost) in enumerate(zip(trace.ops, costs, strict=True)):
        if role(op, cost) != "free":
            for spec in op.inputs:
                readers.setdefault(spec.value, []).append(index)
    return readers


def _kernel(members: list[int], trace: Trace, costs: Sequence[Cost], readers: dict[int, list[int]], writer: dict[int, int]) -> Kernel:
    lead = max(members, key=lambda index: (role(trace.ops[index], costs[index]) == "reduction", _elements(trace.ops[index])))
    if len(members) == 1:
        return Kernel(tuple(members), lead, costs[lead])
    inside = set(members)
    made: set[int] = set()
    read: dict[int, int] = {}
    written: dict[int, int] = {}
    for index in members:
        op = trace.ops[index]
        for spec in op.inputs:
            if spec.value not in made:
                read[spec.value] = max(read.get(spec.value, 0), spec.bytes)
        for position, spec in enumerate(op.outputs):
            made.add(spec.value)
            if position in op.unused_outputs:
                continue
            outside = any(reader not in inside for reader in readers.get(spec.value, ()))
            if outside or trace.values[spec.value].output or writer.get(spec.value) not in inside:
                written[spec.value] = max(written.get(spec.value, 0), spec.bytes)
    flops = sum(costs[index].flops for index in members)
    cost = msgspec.structs.replace(costs[lead], flops=flops, madd=flops, read=sum(read.values()), write=sum(written.values()))
    return Kernel(tuple(members), lead, cost)
