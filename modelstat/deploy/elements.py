"""Tensor parallelism of ops that leave every element at its index, or one after another: point-wise ops, copies, concatenations."""

from __future__ import annotations

from modelstat.deploy.cut import Cut, cut_of, even
from modelstat.deploy.placement import Operands, Placement, axis_of, data_alone, nothing
from modelstat.records import Op, TensorSpec


def pointwise(known: Operands) -> Placement | None:
    """Inputs broadcast against each other, element by element."""
    op = known.op
    lead = known.largest()
    if not op.outputs:
        return None
    out = op.outputs[0]
    rank = len(out.shape)
    if lead is None:
        target = known.wanted
    else:
        cut, spec = known.cuts[lead], op.inputs[lead]
        assert cut is not None
        target = cut.on(cut.axis + rank - len(spec.shape))
        if target.axis < 0 or spec.shape[cut.axis] != out.shape[target.axis]:
            return None
        shift = [(one, one.axis + rank - len(other.shape)) for one, other in _split(known)]
        full = [one for one, other in zip(known.cuts, op.inputs, strict=True) if other.shape == out.shape]
        if spec.bytes < out.bytes and None in full:
            return None  # a gate or a shift is gathered, rather than what it is applied to split
        target = target.on(target.axis, max(one.ways for one, axis in shift if axis == target.axis and one.like(target)))
        asks = _sections(known, target, rank)
        if asks:
            return nothing(known, *asks)
    if target is None:
        return None
    inputs: list[Cut | None] = []
    for spec in op.inputs:
        axis = target.axis - rank + len(spec.shape)
        if axis < 0 or spec.shape[axis] == 1:
            inputs.append(None)
        elif spec.shape[axis] == out.shape[target.axis]:
            inputs.append(target.on(axis))
        else:
            return None
    return Placement(tuple(inputs), tuple(target if spec.shape == out.shape else None for spec in op.outputs))


def _sections(known: Operands, target: Cut, rank: int) -> tuple[tuple[int, Cut], ...]:
    """The inputs that are split along the same axis in other sections, and the sections of all of them."""
    size = known.op.outputs[0].shape[target.axis]
    same = {
        index: cut
        for index, (cut, spec) in enumerate(zip(known.cuts, known.op.inputs, strict=True))
        if cut is not None and cut.axis + rank - len(spec.shape) == target.axis and spec.shape[cut.axis] == size
    }
    every = cut_of(target.axis, (bound for cut in same.values() for bound in cut.sections(size)), target.ways)
    if every is None:
        return ()
    return tuple((index, every.on(cut.axis)) for index, cut in same.items() if not cut.like(every))


def _split(known: Operands) -> list[tuple[Cut, TensorSpec]]:
    return [(cut, spec) for cut, spec in zip(known.cuts, known.op.inputs, strict=True) if cut is not None]


COPIES = frozenset((
    "_to_copy", "clone", "contiguous", "copy", "copy_", "repeat", "expand_copy", "fill", "zero", "tril", "triu",
    "full_like", "zeros_like", "ones_like", "empty_like", "alias_copy", "detach_copy", "lift_fresh_copy", "type_as", "to",
))  # fmt: skip
"""Copies and fills that leave every element at its index, as far as its axis keeps its length."""


def lends(op: Op) -> bool:
    """Whether a tensor among the inputs lends its dtype alone, to a fill or an allocation."""
    return op.name.startswith(("aten::new_", "aten::full", "aten::zeros", "aten::ones", "aten::empty")) and not op.name.endswith("_like")


def copies(known: Operands) -> Placement | None:
    """Concatenations, and copies that leave every element at its index."""
    name = known.op.name.removeprefix("aten::")
    if name in ("cat", "concat"):
        return concatenation(known)
    if name == "stack":
        return stacked(known)
    if lends(known.op):
        return None if known.wanted is None else Placement((None,) * len(known.op.inputs), (known.wanted,))
    if name not in COPIES | MOVED and name.removesuffix("_") not in COPIES:
        return None
    placed = pointwise(known)
    return None if placed is None or (name in MOVED and placed.outputs[0] and _moved(known.op, placed.outputs[0].axis)) else placed


MOVED = frozenset(("constant_pad_nd", "roll", "flip"))
"""Copies that move elements along some axes."""


def _moved(op: Op, axis: int) -> bool:
    """Whether elements change their index on an axis."""
    if op.name == "aten::constant_pad_nd":
        last = len(op.outputs[0].shape) - 1 - axis  # padding is listed from the last axis on
        return any(op.argument("pad", ())[2 * last : 2 * last + 2])
    rank = len(op.outputs[0].shape)
    axes = op.argument("dims", ())
    return not axes or axis in [one % rank for one in axes]


def concatenation(known: Operands) -> Placement | None:
    """Tensors one after another along an axis. Along the split one, every GPU has its part of each: sections of the result."""
    op, along = known.op, axis_of(known.op, default=0)
    lead = known.largest()
    if lead is None or along is None:
        return None
    cut = known.cuts[lead]
    assert cut is not None
    if cut.axis != along:
        if any(len(spec.shape) != len(op.outputs[0].shape) for spec in op.inputs):
            return None
        ways = max(one.ways for one, _ in _split(known) if one.axis == cut.axis and one.like(cut))
        return Placement((cut.on(cut.axis, ways),) * len(op.inputs), (cut.on(cut.axis, ways),))
    ways = max(one.ways for one, _ in _split(known))
    inputs, bounds, end = [], [0], 0
    for spec, one in zip(op.inputs, known.cuts, strict=True):
        size = spec.shape[along]
        mine = one if one is not None and one.axis == along else even(along, size, ways)
        found = cut_of(along, mine.sections(size), ways)
        if found is None:
            return None
        inputs.append(found)
        bounds.extend(end + bound for bound in found.sections(size)[1:])
        end += size
    made = cut_of(along, bounds, ways)
    return None if made is None else Placement(tuple(inputs), (made,))


def stacked(known: Operands) -> Placement | None:
    """Tensors side by side along an axis of its own."""
    lead, along = known.largest(), known.op.argument("dim", 0)
    if lead is None or len(known.op.outputs) != 1:
        return None
    cut = known.cuts[lead]
    assert cut is not None
    along %= len(known.op.outputs[0].shape)
    return Placement((cut,) * len(known.op.inputs), (cut.on(cut.axis + (along <= cut.axis)),))


def gated(known: Operands) -> Placement | None:
    """glu: the first half of an axis times a function of the second half. Each GPU needs the same part of both."""
    cut, along = known.cuts[0], axis_of(known.op, default=-1)
    if cut is None or along is None:
        return None
    if cut.axis != along:
        return data_alone(known, cut)
    size = known.op.inputs[0].shape[along]
    bounds = cut.sections(size)
    first, second = (tuple(bound - start for bound in bounds if start <= bound <= start + size // 2) for start in (0, size // 2))
    if first != second or first[0]:
        return nothing(known, (0, Cut(along, size, (0, size // 2, size), cut.ways)))
    made = cut_of(along, first, cut.ways)
    return None if made is None else Placement((cut,), (made,))
