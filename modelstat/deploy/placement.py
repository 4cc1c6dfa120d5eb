"""How the operands of one op lie on the GPUs: the rules, one function a kind of op.

A rule sees which axis of each operand is split already, if any, and says how the op runs: which axis of each operand a GPU works on, and
which axis of each result it has. An operand that is whole everywhere may be worked on in parts for nothing; one that is split otherwise
than the rule wants, or that it wants whole, is gathered first. None: every GPU does all of it.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from modelstat.deploy.cut import Cut, cut_of, even
from modelstat.records import Op, TensorSpec

Cuts = tuple[Cut | None, ...]


class Operands(msgspec.Struct, frozen=True):
    """What a rule knows of an op: the cut of each input, and which inputs are weights (parameters and casts of them).

    ``wanted``: how the first result had better be split; ``whole``: that it had better be whole.
    """

    op: Op
    cuts: Cuts
    weights: tuple[bool, ...]
    wanted: Cut | None
    whole: bool
    gpus: int

    def named(self, *names: str) -> int | None:
        """Index of the first input that has one of these names."""
        return next((index for index, name in enumerate(self.op.names) if name in names), None)

    def largest(self) -> int | None:
        """Index of the largest input that is split."""
        split = [index for index, cut in enumerate(self.cuts) if cut is not None]
        return max(split, key=lambda index: self.op.inputs[index].bytes, default=None)


class Placement(msgspec.Struct, frozen=True):
    """The cut of each input that a GPU works on, and of each result. ``partial``: a GPU has a part of each sum, in so many ways.

    ``arguments`` replace those of the op; ``asks`` are inputs that must be split so first (1 way: whole).
    """

    inputs: Cuts
    outputs: Cuts
    partial: int = 0
    arguments: dict[str, int] = {}
    asks: tuple[tuple[int, Cut], ...] = ()


Rule = Callable[[Operands], Placement | None]


def nothing(known: Operands, *asks: tuple[int, Cut]) -> Placement | None:
    """Whole on every GPU."""
    return Placement((None,) * len(known.op.inputs), (None,) * len(known.op.outputs), asks=asks) if asks else None


def data_alone(known: Operands, cut: Cut) -> Placement:
    """The first input and all results of its rank share a cut; the other inputs are whole."""
    shape = known.op.inputs[0].shape
    outputs = tuple(cut if _has(spec, cut.axis, shape[cut.axis]) else None for spec in known.op.outputs)
    return Placement((cut, *(None,) * (len(known.op.inputs) - 1)), outputs)


def _has(spec: TensorSpec, axis: int, size: int) -> bool:
    return 0 <= axis < len(spec.shape) and spec.shape[axis] == size


def axis_of(op: Op, name: str = "dim", default: int | None = None) -> int | None:
    """An axis among the arguments, counted from the front of the first input."""
    given = op.argument(name, default)
    rank = len(op.inputs[0].shape)
    return given % rank if type(given) is int and rank else None


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
    "_to_copy", "clone", "contiguous", "copy", "copy_", "repeat", "expand_copy", "constant_pad_nd", "fill", "zero", "tril", "triu",
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
    return pointwise(known) if name in COPIES or name.removesuffix("_") in COPIES else None


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


def indexed(known: Operands) -> Placement | None:
    """Rows by their index, whose other axes stay where they are."""
    op, name = known.op, known.op.name.removeprefix("aten::").removesuffix("_")
    source, cut = op.inputs[0], known.cuts[0]
    if name in ("index_copy", "index_add"):
        along, value = axis_of(op, default=0), known.named("source")
        if value is None or along is None:
            return None
        cut = known.cuts[value] or cut
        if cut is None or cut.axis == along:
            return None
        return Placement(tuple(cut if index in (0, value) else None for index in range(len(op.inputs))), (cut,) * len(op.outputs))
    if cut is None or any(known.cuts[1:]):
        return None
    out = op.outputs[0]
    if name == "index_select":
        return data_alone(known, cut) if cut.axis != axis_of(op, default=0) else None
    if name not in ("index", "_unsafe_index"):
        return None
    rows = max((spec.shape for spec in op.inputs[1:]), key=len, default=())
    count = len(op.inputs) - 1
    # Which axes the indices stand for is not recorded: those from ``first`` on that explain the result's shape.
    first = next(
        (at for at in range(len(source.shape)) if source.shape[:at] + rows + source.shape[at + count :] == out.shape), None
    )
    if first is None or first <= cut.axis < first + count:
        return None
    made = cut if cut.axis < first else cut.on(cut.axis + len(rows) - count)
    return Placement((cut, *(None,) * count), (made,))


def along_others(known: Operands) -> Placement | None:
    """Softmax, sort and their like: all of one axis, each of the others by itself."""
    cut = known.cuts[0]
    along = axis_of(known.op, default=-1)
    if cut is None or along is None or cut.axis == along or any(known.cuts[1:]):
        return None
    return data_alone(known, cut)


def spatial(known: Operands) -> Placement | None:
    """Pooling and resampling: each image and channel by itself."""
    cut = known.cuts[0]
    axes = next((count for count in (1, 2, 3) if f"{count}d" in known.op.name), 2)
    if cut is None or cut.axis >= len(known.op.inputs[0].shape) - axes or any(known.cuts[1:]):
        return None
    return data_alone(known, cut)


SUMS = frozenset(("sum", "nansum", "mean", "amax", "amin", "prod", "all", "any", "count_nonzero"))
"""Reductions of parts that are reduced once more."""
ALONG = frozenset((
    "cumsum", "cumprod", "cummax", "cummin", "argmax", "argmin", "max", "min", "std", "var", "var_mean", "std_mean", "linalg_vector_norm",
    "norm",
))  # fmt: skip
"""Reductions that need all of an axis."""


def reduction(known: Operands) -> Placement | None:
    """Over other axes than the split one each GPU has its part of the result; over the split one a sum, largest or mean of its part."""
    op, name, cut = known.op, known.op.name.removeprefix("aten::"), known.cuts[0]
    if op.tensor("other") is not None:
        return pointwise(known)
    if cut is None or name not in SUMS | ALONG or any(known.cuts[1:]):
        return None
    shape = op.inputs[0].shape
    given = op.argument("dim")
    chosen = given if isinstance(given, list) and given else [given] if type(given) is int else list(range(len(shape)))
    axes = [axis % len(shape) for axis in chosen]
    if cut.axis in axes:
        if name not in SUMS:
            return None
        return Placement((cut,), (None,) * len(op.outputs), partial=cut.ways)
    stays = op.argument("keepdim") or name.startswith("cum")
    made = cut if stays else cut.on(cut.axis - sum(axis < cut.axis for axis in axes))
    return Placement((cut,), (made,) * len(op.outputs))
