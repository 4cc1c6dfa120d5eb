"""Matrix products: every output element is a sum of K products.

Scales alpha and beta ride along in the product's epilogue and are not counted; the addition of ``beta * self`` is a bias.
"""

from __future__ import annotations

from modelstat.cost.operands import GROUPED, groups_met, operand, total_bytes
from modelstat.cost.registry import Work, register
from modelstat.cost.sparse import sparse_product
from modelstat.records import Op, TensorSpec


def _product(op: Op, left: TensorSpec, bias: TensorSpec | None = None, flops: int = 0) -> Work:
    """Outputs x K, with K the last axis of the left factor."""
    outputs = op.outputs[0].elements
    return Work(macs=outputs * left.shape[-1], bias=outputs if bias is not None else 0, flops=flops)


@register(
    "matmul",
    "aten::mm", "aten::bmm", "aten::mv", "aten::dot", "aten::vdot", "aten::matmul", "aten::linalg_matmul", "aten::linalg_vecdot",
    "aten::inner", "aten::_int_mm", "aten::_scaled_mm", "aten::_scaled_mm_v2", "aten::_weight_int8pack_mm", "aten::_weight_int4pack_mm",
    "aten::_weight_int4pack_mm_for_cpu", "aten::_weight_int4pack_mm_with_scales_and_zeros", "aten::_mixed_dtypes_linear",
    "aten::_dyn_quant_matmul_4bit", "aten::mkldnn_linear", "aten::linear", "mkl::_mkl_linear",
)  # fmt: skip
def product(op: Op) -> Work:
    """left (..., M, K) @ right (..., K, N), or linear with weight (N, K); packed weights too: the left factor has K.

    A sparse factor, whose number of non-zeros the trace carries as ``nnz``, does only the products that are there.
    """
    if "nnz" in op.arguments:
        return sparse_product(op)
    return _product(op, op.inputs[0], op.tensor("bias"))


@register("matmul", "aten::addmm", "aten::addmv", "aten::baddbmm")
def product_plus(op: Op) -> Work:
    """beta self + alpha left @ right. With beta = 0, self is neither read nor added."""
    if "nnz" in op.arguments:
        return sparse_product(op)
    left, right = operand(op, "mat1", "batch1", "mat"), operand(op, "mat2", "batch2", "vec")
    if op.argument("beta", 1) == 0:
        work = _product(op, left)
        return Work(macs=work.macs, read=total_bytes((left, right)))
    return _product(op, left, operand(op, "self"))


@register("matmul", "aten::addbmm")
def sum_of_products(op: Op) -> Work:
    """beta self (M, N) + alpha sum over batch of batch1 (B, M, K) @ batch2 (B, K, N)."""
    batch, rows, inner = operand(op, "batch1").shape
    columns = operand(op, "batch2").shape[-1]
    added = op.argument("beta", 1) != 0
    return Work(macs=batch * rows * inner * columns, bias=rows * columns if added else 0)


@register("matmul", "aten::outer", "aten::ger")
def outer(op: Op) -> Work:
    """vec1 (M) times vec2 (N): nothing is summed, so it is a multiplication per element and no contraction."""
    return Work(flops=op.outputs[0].elements)


@register("matmul", "aten::addr")
def outer_plus(op: Op) -> Work:
    """beta self + alpha vec1 x vec2: a multiplication and an addition per element, no contraction."""
    return Work(flops=2 * op.outputs[0].elements)


@register("matmul", "aten::_addmm_activation")
def product_activation(op: Op) -> Work:
    """relu or gelu (erf, 5 per element) of self + mat1 @ mat2."""
    per_element = 5 if op.argument("use_gelu", False) else 1
    return _product(op, operand(op, "mat1"), operand(op, "self"), per_element * op.outputs[0].elements)


@register("matmul", "mkldnn::_linear_pointwise")
def linear_activation(op: Op) -> Work:
    """A linear layer with an activation or an addend fused behind it: 1 per output element."""
    return _product(op, operand(op, "X"), op.tensor("B"), op.outputs[0].elements)


@register("matmul", *GROUPED)
def grouped(op: Op) -> Work:
    """Products of one group of rows each (mixture of experts), bounded by offsets.

    rows (T, K) @ (G, K, N) -> (T, N): every row meets one matrix, and of the others nothing is read, see
    :func:`~modelstat.cost.operands.groups_met`. (M, T) @ (T, N) -> (G, M, N): the T columns are shared out among the groups.
    (G, M, K) with either: each output sums K.
    """
    left, right = operand(op, "self", "input"), operand(op, "mat2", "weight")
    outputs = op.outputs[0].elements
    bias = outputs if op.tensor("bias") is not None else 0
    if len(left.shape) == 2 and len(right.shape) == 2:
        groups = op.outputs[0].shape[0]
        return Work(macs=outputs * left.shape[1] // max(groups, 1), bias=bias)
    read = None
    if len(left.shape) == 2 and (met := groups_met(op)) < right.shape[0]:
        read = total_bytes(spec for spec in op.inputs if spec != right) + round(right.bytes * met / right.shape[0])
    return Work(macs=outputs * left.shape[-1], bias=bias, read=read)


@register("matmul", "aten::_trilinear")
def trilinear(op: Op) -> Work:
    """Sum of products of three tensors, as nn.Bilinear uses it: x (B, I), weight (O, I, J), y (B, J) -> (B, O).

    The first contraction spans the whole index space, B x O x I x J; the second, with J per output, is smaller by I and is counted
    as multiplications and additions outside it.
    """
    i1, i2, i3 = (operand(op, name) for name in ("i1", "i2", "i3"))
    shapes = []
    for spec, expand in zip((i1, i2, i3), ("expand1", "expand2", "expand3"), strict=True):
        shape = list(spec.shape)
        for axis in sorted(op.argument(expand, ())):
            shape.insert(axis, 1)
        shapes.append(shape)
    space = 1
    for sizes in zip(*shapes, strict=True):
        space *= max(sizes)
    summed = op.argument("sumdim", ())
    last = max(shapes[2][axis] for axis in summed) if summed else 1
    return Work(macs=space, flops=2 * op.outputs[0].elements * last)
