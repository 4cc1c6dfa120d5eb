"""Dense linear algebra, by the leading terms of Golub and Van Loan, "Matrix Computations", for a batch of n x n (or m x n) matrices.

These are no MACs: a factorisation is not one of the contractions that a network is measured by.
"""

from __future__ import annotations

from math import prod

from modelstat.cost.operands import operand
from modelstat.cost.registry import Work, register
from modelstat.records import Op, TensorSpec


def _matrices(spec: TensorSpec) -> tuple[int, int, int]:
    """Batch, rows, columns."""
    return prod(spec.shape[:-2]), spec.shape[-2], spec.shape[-1]


def _cubic(op: Op, numerator: int, denominator: int = 1) -> Work:
    """Numerator / denominator x n^3 per matrix."""
    batch, rows, columns = _matrices(op.inputs[0])
    return Work(flops=batch * numerator * min(rows, columns) ** 2 * max(rows, columns) // denominator)


@register("linalg", "aten::linalg_cholesky_ex", "aten::linalg_cholesky")
def cholesky(op: Op) -> Work:
    """n^3 / 3."""
    return _cubic(op, 1, 3)


@register(
    "linalg",
    "aten::linalg_lu_factor_ex", "aten::linalg_lu_factor", "aten::linalg_lu", "aten::_lu_with_info", "aten::_linalg_det",
    "aten::_linalg_slogdet", "aten::linalg_det", "aten::linalg_slogdet", "aten::linalg_ldl_factor_ex", "aten::linalg_ldl_factor",
)  # fmt: skip
def lu(op: Op) -> Work:
    """2 n^3 / 3; a determinant is a factorisation."""
    return _cubic(op, 2, 3)


@register("linalg", "aten::linalg_inv_ex", "aten::linalg_inv", "aten::inverse", "aten::cholesky_inverse")
def inverse(op: Op) -> Work:
    """2 n^3."""
    return _cubic(op, 2)


@register("linalg", "aten::_linalg_solve_ex", "aten::linalg_solve_ex", "aten::linalg_solve")
def solve(op: Op) -> Work:
    """Factorisation 2 n^3 / 3, then two triangular solves, 2 n^2 per right-hand side."""
    batch, rows, _ = _matrices(operand(op, "A"))
    return Work(flops=batch * 2 * rows**3 // 3 + 2 * rows * op.outputs[0].elements)


@register("linalg", "aten::linalg_solve_triangular", "aten::triangular_solve")
def solve_triangular(op: Op) -> Work:
    """n^2 per right-hand side."""
    return Work(flops=op.inputs[0].shape[-1] * op.outputs[0].elements)


@register(
    "linalg",
    "aten::linalg_lu_solve", "aten::lu_solve", "aten::cholesky_solve", "aten::_cholesky_solve_helper", "aten::linalg_ldl_solve",
)  # fmt: skip
def solve_factored(op: Op) -> Work:
    """Two triangular solves, 2 n^2 per right-hand side."""
    return Work(flops=2 * op.inputs[0].shape[-1] * op.outputs[0].elements)


@register("linalg", "aten::linalg_qr", "aten::geqrf")
def qr(op: Op) -> Work:
    """2 n^2 (m - n / 3) for R, as much again to form Q (geqrf does not)."""
    batch, rows, columns = _matrices(op.inputs[0])
    long, short = max(rows, columns), min(rows, columns)
    factor = 2 * short**2 * (3 * long - short) // 3
    return Work(flops=batch * factor * (1 if op.name == "aten::geqrf" or op.argument("mode") == "r" else 2))


@register("linalg", "aten::linalg_householder_product", "aten::orgqr", "aten::ormqr")
def householder(op: Op) -> Work:
    """2 n^2 (m - n / 3)."""
    batch, rows, columns = _matrices(op.inputs[0])
    long, short = max(rows, columns), min(rows, columns)
    return Work(flops=batch * 2 * short**2 * (3 * long - short) // 3)


@register("linalg", "aten::_linalg_svd", "aten::linalg_svd", "aten::svd", "aten::linalg_svdvals", "aten::linalg_pinv", "aten::linalg_lstsq")
def svd(op: Op) -> Work:
    """14 m n^2 + 8 n^3 with the singular vectors (R-SVD), 4 m n^2 - 4 n^3 / 3 without."""
    batch, rows, columns = _matrices(op.inputs[0])
    long, short = max(rows, columns), min(rows, columns)
    if op.name == "aten::linalg_svdvals" or not op.argument("compute_uv", True):
        return Work(flops=batch * (12 * long * short**2 - 4 * short**3) // 3)
    return Work(flops=batch * (14 * long * short**2 + 8 * short**3))


@register("linalg", "aten::_linalg_eigh", "aten::linalg_eigh", "aten::linalg_eigvalsh")
def symmetric_eigenvalues(op: Op) -> Work:
    """9 n^3 with eigenvectors, 4 n^3 / 3 without."""
    vectors = op.name != "aten::linalg_eigvalsh" and op.argument("compute_v", True)
    return _cubic(op, 9) if vectors else _cubic(op, 4, 3)


@register("linalg", "aten::linalg_eig", "aten::linalg_eigvals", "aten::_linalg_eigvals")
def eigenvalues(op: Op) -> Work:
    """25 n^3 with eigenvectors, 10 n^3 without."""
    return _cubic(op, 25 if op.name == "aten::linalg_eig" else 10)


@register("linalg", "aten::linalg_matrix_exp", "aten::matrix_exp")
def matrix_exponential(op: Op) -> Work:
    """A Taylor polynomial of degree 18 takes 5 matrix products, 2 n^3 each; squarings depend on the values."""
    return _cubic(op, 10)


@register("linalg", "aten::_compute_linear_combination")
def linear_combination(op: Op) -> Work:
    """coefficients (m, n) times n tensors: a matrix product."""
    return Work(macs=op.outputs[0].elements * operand(op, "coefficients").shape[-1])


def chain_macs(sizes: tuple[int, ...]) -> int:
    """MACs of the cheapest order of a product of matrices (s0, s1) (s1, s2) ..., which is the order that torch takes.

    >>> chain_macs((10, 100, 5, 50)) == 10 * 100 * 5 + 10 * 5 * 50
    True
    """
    count = len(sizes) - 1
    best = [[0] * (count + 1) for _ in range(count + 1)]
    for length in range(2, count + 1):
        for start in range(count - length + 1):
            end = start + length
            best[start][end] = min(
                best[start][middle] + best[middle][end] + sizes[start] * sizes[middle] * sizes[end] for middle in range(start + 1, end)
            )
    return best[0][count]


@register("linalg", "aten::linalg_multi_dot", "aten::chain_matmul")
def chain(op: Op) -> Work:
    """A product of several matrices; a vector may be at either end."""
    shapes = [spec.shape for spec in op.inputs]
    first = shapes[0] if len(shapes[0]) > 1 else (1, *shapes[0])
    sizes = [*first, *(shape[1] if len(shape) > 1 else 1 for shape in shapes[1:])]
    return Work(macs=chain_macs(tuple(sizes)))


@register("linalg", "aten::lu_unpack", "aten::_linalg_check_errors", "aten::linalg_vander", "aten::kron")
def rearranged(op: Op) -> Work:
    """Bytes, and a multiplication per output element of a Kronecker product or a Vandermonde matrix."""
    return Work(flops=op.outputs[0].elements if op.outputs and not op.name.endswith("unpack") else 0)
