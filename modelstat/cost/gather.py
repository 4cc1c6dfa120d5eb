"""Gathering and scattering by index: only what the indices touch moves, besides the indices themselves.

A source is never read more than once. Functional scatters also copy their input; in-place ones leave the rest alone.
"""

from __future__ import annotations

from math import prod

from modelstat.cost.operands import operand, total_bytes
from modelstat.cost.registry import Work, register
from modelstat.records import Op, TensorSpec


def _part(spec: TensorSpec, count: int) -> int:
    """Bytes of ``count`` elements of a tensor, at most all of them."""
    return min(round(count * spec.item_bytes), spec.bytes)


@register("gather", "aten::gather", "aten::take", "aten::take_along_dim", "aten::index_select", "aten::index", "aten::_unsafe_index")
def gather(op: Op) -> Work:
    """Reads one element for every element that it yields, and the indices."""
    source = operand(op, "self", "input")
    indices = total_bytes(spec for name, spec in zip(op.names, op.inputs, strict=True) if name in ("index", "indices"))
    return Work(read=_part(source, op.outputs[0].elements) + indices)


@register("gather", "aten::_unsafe_masked_index")
def masked_gather(op: Op) -> Work:
    """A gather that fills in where the mask says no."""
    others = total_bytes(spec for name, spec in zip(op.names, op.inputs, strict=True) if name != "self")
    return Work(read=_part(operand(op, "self"), op.outputs[0].elements) + others)


@register("gather", "aten::masked_select", "aten::nonzero", "aten::nonzero_static", "aten::nonzero_numpy", "aten::argwhere")
def selection(op: Op) -> Work:
    """Reads everything to find what to keep."""
    return Work()


def _scatter(op: Op, touched: int, accumulates: bool, sources: tuple[str, ...]) -> Work:
    """Writes ``touched`` elements of self; accumulating reads them first and adds or compares once for each."""
    target = operand(op, "self")
    given = total_bytes(spec for name, spec in zip(op.names, op.inputs, strict=True) if name in sources)
    flops = touched if accumulates else 0
    if not op.name.endswith("_"):
        return Work(flops=flops, read=target.bytes + given)
    moved = _part(target, touched)
    return Work(flops=flops, read=given + (moved if accumulates else 0), write=moved)


@register("gather", "aten::scatter", "aten::scatter_add", "aten::scatter_reduce")
def scatter(op: Op) -> Work:
    """One element of self for every element of the index. scatter_add and reductions accumulate."""
    accumulates = "add" in op.name or "reduce" in op.name or op.argument("reduce") is not None
    return _scatter(op, operand(op, "index").elements, accumulates, ("index", "src", "value"))


@register("gather", "aten::index_add", "aten::index_copy", "aten::index_fill", "aten::index_reduce")
def index_scatter(op: Op) -> Work:
    """Whole slices of self along ``dim``, one for every entry of the index."""
    target, index = operand(op, "self"), operand(op, "index")
    axis = int(op.argument("dim", 0))
    length = target.shape[axis] if target.shape else 1
    touched = index.elements * target.elements // max(length, 1)
    accumulates = "add" in op.name or "reduce" in op.name
    return _scatter(op, touched, accumulates, ("index", "source", "value"))


@register("gather", "aten::index_put", "aten::_index_put_impl", "aten::_unsafe_index_put", "aten::_unsafe_masked_index_put_accumulate")
def index_put(op: Op) -> Work:
    """self[indices] = values. Indices broadcast together; one array of values per index position, unless values are one scalar.

    How many positions a bool mask picks is a value: all of them, unless the values say.
    """
    target, values, indices = operand(op, "self"), op.tensor("values"), op.tensors("indices")
    positions, axes = 1, 0
    for index in indices:
        positions = max(positions, index.elements)
        axes += len(index.shape) if index.dtype == "bool" else 1
    whole = positions * prod(target.shape[axes:])
    touched = values.elements if values is not None and values.elements > positions else whole
    accumulates = bool(op.argument("accumulate", "accumulate" in op.name))
    return _scatter(op, min(touched, target.elements), accumulates, ("indices", "values", "mask"))


@register("gather", "aten::put")
def put(op: Op) -> Work:
    """One element of self, seen flat, for every element of the index."""
    return _scatter(op, operand(op, "index").elements, bool(op.argument("accumulate", False)), ("index", "source"))


@register("gather", "aten::masked_scatter")
def masked_scatter(op: Op) -> Work:
    """Reads the mask, and at most one source element for each of its places."""
    target, mask, source = operand(op, "self"), operand(op, "mask"), operand(op, "source")
    moved = _part(source, mask.elements)
    if op.name.endswith("_"):
        return Work(read=mask.bytes + moved, write=_part(target, mask.elements))
    return Work(read=target.bytes + mask.bytes + moved)


@register("gather", "aten::slice_scatter", "aten::select_scatter", "aten::diagonal_scatter", "aten::as_strided_scatter")
def window_scatter(op: Op) -> Work:
    """A copy of self with a window replaced: what the window covers of self is not read."""
    target, source = operand(op, "self"), operand(op, "src")
    return Work(read=max(target.bytes - _part(target, source.elements), 0) + source.bytes)
