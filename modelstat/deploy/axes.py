"""Tensor parallelism of ops that treat one axis apart: reductions, softmax and sort, pooling, look-ups by an index."""

from __future__ import annotations

from modelstat.deploy.elements import pointwise
from modelstat.deploy.placement import Operands, Placement, axis_of, data_alone


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
