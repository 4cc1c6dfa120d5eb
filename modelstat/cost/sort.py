"""Sorting and searching, in compares. Sorting a row of n: n ceil(log2 n). Integers do not count, as everywhere."""

from __future__ import annotations

from modelstat.cost.operands import operand
from modelstat.cost.registry import Work, register
from modelstat.records import Op


def steps(n: int) -> int:
    """ceil(log2 n), 0 for n <= 1: the compares of a binary search.

    >>> [steps(n) for n in (0, 1, 2, 3, 8, 9)]
    [0, 0, 1, 2, 3, 4]
    """
    return max(n - 1, 0).bit_length()


def _length(op: Op) -> int:
    """Length of the rows: of the axis ``dim`` (default: last), of everything when flattened."""
    shape = op.inputs[0].shape
    return shape[int(op.argument("dim", -1))] if shape else 1


@register("sort", "aten::sort", "aten::argsort", "aten::msort")
def sort(op: Op) -> Work:
    """N ceil(log2 n) per row; msort's rows are along the first axis."""
    shape = op.inputs[0].shape
    length = shape[0] if op.name == "aten::msort" and shape else _length(op)
    return Work(flops=op.inputs[0].elements * steps(length))


@register("sort", "aten::topk")
def topk(op: Op) -> Work:
    """One pass over the row of n, then sorting the k that are left: n + k ceil(log2 k)."""
    k = int(op.argument("k", 1))
    rows = op.inputs[0].elements // max(_length(op), 1)
    ordering = k * steps(k) if op.argument("sorted", True) else 0
    return Work(flops=op.inputs[0].elements + rows * ordering)


@register("sort", "aten::kthvalue", "aten::median", "aten::nanmedian", "aten::mode")
def selection(op: Op) -> Work:
    """One pass: 1 per element, like a reduction."""
    return Work(flops=op.inputs[0].elements)


@register("sort", "aten::quantile", "aten::nanquantile")
def quantile(op: Op) -> Work:
    """Sorts its rows."""
    return Work(flops=op.inputs[0].elements * steps(_length(op) if op.argument("dim") is not None else op.inputs[0].elements))


@register("sort", "aten::_unique", "aten::_unique2", "aten::unique_dim")
def unique(op: Op) -> Work:
    """Sorts everything, then compares neighbours."""
    count = op.inputs[0].elements
    return Work(flops=count * (steps(count) + 1))


@register("sort", "aten::unique_consecutive", "aten::unique_dim_consecutive")
def unique_consecutive(op: Op) -> Work:
    """Compares neighbours."""
    return Work(flops=op.inputs[0].elements)


@register("sort", "aten::searchsorted", "aten::bucketize")
def search(op: Op) -> Work:
    """A binary search for every value among n boundaries."""
    boundaries = operand(op, "sorted_sequence", "boundaries")
    length = boundaries.shape[-1] if boundaries.shape else 1
    return Work(flops=op.outputs[0].elements * steps(length))


@register("sort", "aten::isin")
def membership(op: Op) -> Work:
    """Sorts the test elements and searches each element among them."""
    tests = op.tensor("test_elements") or op.tensor("test_element")
    count = tests.elements if tests is not None else 1
    return Work(flops=(count + op.outputs[0].elements) * steps(count) or op.outputs[0].elements)
