"""Products with sparse matrices: work follows the number of non-zeros, which the trace carries as the argument ``nnz``."""

from __future__ import annotations

from modelstat.cost.operands import operand
from modelstat.cost.registry import Work, register
from modelstat.records import Op, TensorSpec

INDEX_BYTES = 8
"""torch's sparse indices are int64."""


def sparse_bytes(matrix: TensorSpec, nnz: int) -> int:
    """Bytes of a sparse matrix in coordinates: its values, and one index per axis for each of them."""
    return round(nnz * (matrix.item_bytes + len(matrix.shape) * INDEX_BYTES))


def _factors(op: Op) -> tuple[TensorSpec, TensorSpec]:
    for left, right in (("mat1", "mat2"), ("sparse", "dense"), ("self", "mat2"), ("self", "other"), ("self", "vec"), ("mat", "vec")):
        first, second = op.tensor(left), op.tensor(right)
        if first is not None and second is not None:
            return first, second
    raise LookupError(f"no pair of factors among {', '.join(op.names)}")


@register("sparse", "aten::_sparse_mm", "aten::_sparse_addmm", "aten::sspaddmm", "aten::hspmm", "aten::smm", "aten::_sparse_mm_reduce_impl")
def sparse_product(op: Op) -> Work:
    """sparse (M, K) with nnz non-zeros @ dense (K, N): nnz x N MACs. An addend is a bias, unless beta is 0."""
    left, right = _factors(op)
    nnz = int(op.arguments["nnz"])
    columns = right.shape[-1] if len(right.shape) > 1 else 1
    addend = op.tensor("self") if op.tensor("mat1") is not None or op.tensor("mat") is not None else None
    added = addend is not None and op.argument("beta", 1) != 0
    return Work(
        macs=nnz * columns,
        bias=op.outputs[0].elements if added else 0,
        read=sparse_bytes(left, nnz) + right.bytes + (addend.bytes if addend is not None and added else 0),
    )


@register("sparse", "aten::sparse_sampled_addmm")
def sampled_product(op: Op) -> Work:
    """self + mat1 (M, K) @ mat2 (K, N), only where the sparse self has one of its nnz entries: nnz x K MACs."""
    matrix, left, right = operand(op, "self"), operand(op, "mat1"), operand(op, "mat2")
    nnz = int(op.arguments["nnz"])
    moved = sparse_bytes(matrix, nnz)
    return Work(macs=nnz * left.shape[-1], bias=nnz, outputs=nnz, read=moved + left.bytes + right.bytes, write=moved)


@register("sparse", "aten::_sparse_sparse_matmul")
def sparse_sparse_product(op: Op) -> Work:
    """sparse (M, K) with nnz entries @ sparse (K, N) with ``nnz_other``: each of the first meets the mean row of the second."""
    left, right = _factors(op)
    nnz, other = int(op.arguments["nnz"]), int(op.argument("nnz_other", op.arguments["nnz"]))
    return Work(macs=nnz * other // max(left.shape[-1], 1), read=sparse_bytes(left, nnz) + sparse_bytes(right, other))


@register(
    "sparse",
    "aten::_sparse_semi_structured_linear", "aten::_sparse_semi_structured_mm", "aten::_sparse_semi_structured_addmm",
    "aten::_cslt_sparse_mm",
)  # fmt: skip
def two_of_four(op: Op) -> Work:
    """2:4 sparsity: the compressed factor (N, K/2) holds half of the K products of every output, and only those are done."""
    compressed = operand(op, "weight", "mat1", "compressed_A")
    outputs = op.outputs[0].elements
    added = op.tensor("bias") is not None or op.name.endswith("_addmm")
    return Work(macs=outputs * compressed.shape[-1], bias=outputs if added else 0)


@register("sparse", "aten::_sparse_softmax", "aten::_sparse_log_softmax")
def sparse_softmax(op: Op) -> Work:
    """5 per non-zero."""
    return Work(flops=5 * int(op.argument("nnz", op.inputs[0].elements)))


@register("sparse", "aten::_sparse_sum", "aten::_sparse_csr_sum", "aten::_sparse_csr_prod")
def sparse_reduction(op: Op) -> Work:
    """1 per non-zero."""
    return Work(flops=int(op.argument("nnz", op.inputs[0].elements)))


@register(
    "sparse",
    "aten::_coalesce", "aten::coalesce", "aten::_to_dense", "aten::to_dense", "aten::_to_sparse", "aten::_to_sparse_csr",
    "aten::_to_sparse_csc", "aten::_to_sparse_bsr", "aten::_to_sparse_bsc", "aten::to_sparse", "aten::to_sparse_csr", "aten::sparse_mask",
    "aten::_sparse_coo_tensor_with_dims_and_tensors", "aten::_sparse_coo_tensor_with_dims", "aten::_sparse_coo_tensor_unsafe",
    "aten::sparse_coo_tensor", "aten::sparse_csr_tensor", "aten::_sparse_csr_tensor_unsafe", "aten::sparse_compressed_tensor",
    "aten::_sparse_compressed_tensor_unsafe", "aten::copy_sparse_to_sparse", "aten::_convert_indices_from_coo_to_csr",
    "aten::_convert_indices_from_csr_to_coo", "aten::_sparse_mask_projection", "aten::_spdiags",
)  # fmt: skip
def sparse_layout(op: Op) -> Work:
    """Another layout of the same numbers: bytes only."""
    return Work()
