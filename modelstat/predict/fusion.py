"""What torch.compile's default backend makes of a trace: fewer kernels that move fewer bytes.

It writes one kernel for a chain of point-wise ops, casts, copies, layout changes and small windows (pooling, interpolation), takes a
normalisation, softmax or reduction into the kernel of its neighbours, and leaves contractions to libraries (their epilogue stays a
kernel of its own). A fused kernel reads each value from outside once and writes only what someone outside reads. Inference BatchNorm is
point-wise there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from modelstat.cost.record import Cost
from modelstat.records import Op, Trace

Role = Literal["pointwise", "reduction", "opaque", "free"]

POINTWISE = frozenset(("elementwise", "activation", "copy", "random", "pooling", "resample"))
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
    readers = _readers(trace, costs)
    groups: list[list[int]] = []
    group_of: dict[int, int] = {}
    writer: dict[int, int] = {}
    # Ops that cannot be fused on the longest way to a value: what has more of them than a kernel's others would wait for itself there.
    passed: dict[int, int] = {}
    level_of: list[int] = []
    for index, (op, cost) in enumerate(zip(trace.ops, costs, strict=True)):
        kind = role(op, cost)
        if kind == "free" or _casts_weight(op, trace):
            continue
        level = max((passed.get(spec.value, 0) for spec in op.inputs), default=0)
        joined: int | None = None
        if kind != "opaque":
            sources = [group_of.get(writer.get(spec.value, -1)) for spec in sorted(op.inputs, key=lambda spec: -spec.bytes)]
            joined = _group_to_join(
                op, [group for group in sources if group is not None and level_of[group] == level], groups, trace, costs
            )
        if joined is None:
            joined = len(groups)
            groups.append([])
            level_of.append(level)
        groups[joined].append(index)
        group_of[index] = joined
        if kind != "opaque":
            for spec in op.inputs:
                source = group_of.get(writer.get(spec.value, -1), joined)
                if source != joined and _only_for(groups[source], groups[joined], trace, costs, readers):
                    # A point-wise chain that only this kernel reads is computed where it is read.
                    groups[joined] = groups[source] + groups[joined]
                    group_of.update(dict.fromkeys(groups[source], joined))
                    groups[source] = []
        for spec in op.outputs:
            writer[spec.value] = index
            passed[spec.value] = level + (kind == "opaque")
    kernels = [_kernel(members, trace, costs, readers, writer) for members in groups if members]
    return tuple(sorted(kernels, key=lambda kernel: kernel.ops[-1]))


def _group_to_join(op: Op, sources: Sequence[int], groups: list[list[int]], trace: Trace, costs: Sequence[Cost]) -> int | None:
    """The first of the kernels that wrote the op's inputs, largest input first, that it can be part of."""
    for group in sources:
        first = groups[group][0]
        if role(trace.ops[first], costs[first]) == "opaque":
            continue
        if _elements(op) * 4 < max(_elements(trace.ops[member]) for member in groups[group]):
            # The op works on what a reduction left: a small kernel of its own.
            continue
        return group
    return None


def _only_for(source: list[int], reader: list[int], trace: Trace, costs: Sequence[Cost], readers: dict[int, list[int]]) -> bool:
    """Whether a kernel is point-wise and everything it writes is read by itself and by ``reader`` alone."""
    inside = {*source, *reader}
    for index in source:
        op = trace.ops[index]
        if role(op, costs[index]) != "pointwise":
            return False
        for spec in op.outputs:
            if trace.values[spec.value].output or any(one not in inside for one in readers.get(spec.value, ())):
                return False
    return True


def library_call(op: Op) -> Op:
    """An op that cannot be fused, as the compiled model calls it: the addition of a convolution's bias goes into the next kernel."""
    if op.name != "aten::convolution" or "bias" not in op.names:
        return op
    kept = [index for index, name in enumerate(op.names) if name != "bias"]
    return msgspec.structs.replace(
        op, inputs=tuple(op.inputs[index] for index in kept), names=tuple(op.names[index] for index in kept)
    )


def _casts_weight(op: Op, trace: Trace) -> bool:
    """Autocast's copy of a weight: compiled, it is part of what reads it or done once."""
    return op.name == "aten::_to_copy" and trace.values[op.inputs[0].value].kind == "parameter"


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
    kind = role(trace.ops[lead], costs[lead])
    # Generated point-wise code streams, whatever the library's own kernel for the op does.
    family = "elementwise" if kind == "pointwise" else costs[lead].family
    if len(members) == 1:
        return Kernel(tuple(members), lead, msgspec.structs.replace(costs[lead], family=family))
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
    moved = {"read": sum(read.values()), "write": sum(written.values())}
    cost = msgspec.structs.replace(costs[lead], flops=flops, madd=flops, family=family, **moved)
    return Kernel(tuple(members), lead, cost)
