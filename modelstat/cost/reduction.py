"""Reductions and running sums: 1 per input element, whatever is accumulated. Distances: their parts."""

from __future__ import annotations

from math import prod

from modelstat.cost.operands import elements, operand, produced
from modelstat.cost.registry import Work, register
from modelstat.records import Op


@register(
    "reduction",
    "aten::sum", "aten::nansum", "aten::mean", "aten::nanmean", "aten::prod", "aten::amax", "aten::amin", "aten::aminmax", "aten::_aminmax",
    "aten::argmax", "aten::argmin", "aten::all", "aten::any", "aten::_is_all_true", "aten::_is_any_true", "aten::allclose", "aten::std",
    "aten::var", "aten::std_mean", "aten::var_mean", "aten::norm", "aten::native_norm", "aten::frobenius_norm", "aten::nuclear_norm",
    "aten::linalg_norm", "aten::linalg_vector_norm", "aten::linalg_matrix_norm", "aten::linalg__powsum", "aten::norm_except_dim",
    "aten::count_nonzero", "aten::cumsum", "aten::cumprod", "aten::cummax", "aten::cummin", "aten::_cummax_helper",
    "aten::_cummin_helper", "aten::histc", "aten::bincount", "aten::segment_reduce", "aten::sum_to_size", "aten::hash_tensor",
    "prims::sum", "prims::amax", "prims::amin", "prims::var",
)  # fmt: skip
def reduction(op: Op) -> Work:
    """1 per element of the input."""
    return Work(flops=op.inputs[0].elements)


@register("reduction", "aten::_foreach_norm", "aten::_foreach_max", "aten::_foreach_powsum")
def foreach_reduction(op: Op) -> Work:
    """1 per element of all tensors in the list."""
    return Work(flops=elements(op.tensors("self")))


@register("reduction", "aten::max", "aten::min")
def extremum(op: Op) -> Work:
    """Of one tensor: 1 per input element. Of two, element by element: 1 per output element."""
    return Work(flops=produced(op) if op.tensor("other") is not None else op.inputs[0].elements)


@register("reduction", "aten::trace")
def trace(op: Op) -> Work:
    """Only the diagonal is read and added."""
    matrix = op.inputs[0]
    diagonal = min(matrix.shape[-2:])
    return Work(flops=diagonal, read=round(diagonal * matrix.item_bytes))


@register("reduction", "aten::dist", "aten::pairwise_distance")
def distance(op: Op) -> Work:
    """Subtract, power, add: 3 per element."""
    return Work(flops=3 * op.inputs[0].elements)


@register("reduction", "aten::_cdist_forward", "aten::cdist")
def pairwise_distances(op: Op) -> Work:
    """x1 (..., P, M), x2 (..., R, M) -> (..., P, R): subtract, power and add for every pair and each of M coordinates."""
    return Work(flops=3 * op.outputs[0].elements * operand(op, "x1").shape[-1])


@register("reduction", "aten::_euclidean_dist")
def euclidean_distances(op: Op) -> Work:
    """The same by a matrix product of width M + 2: |a|^2 - 2 a b + |b|^2; then a clamp and a square root."""
    x1, x2 = operand(op, "x1"), operand(op, "x2")
    pairs = op.outputs[0].elements
    return Work(macs=pairs * (x1.shape[-1] + 2), flops=2 * pairs + 2 * (x1.elements + x2.elements))


@register("reduction", "aten::_pdist_forward", "aten::pdist")
def pairs_of_one(op: Op) -> Work:
    """x (N, M): N (N - 1) / 2 distances over M coordinates, 3 each."""
    return Work(flops=3 * op.outputs[0].elements * prod(op.inputs[0].shape[-1:]))


@register("reduction", "aten::cosine_similarity")
def cosine_similarity(op: Op) -> Work:
    """Three sums of products over the input, 2 each per element."""
    return Work(flops=6 * max(spec.elements for spec in op.inputs))
