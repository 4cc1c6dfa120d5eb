"""Why other counters differ: one table, whose rows are the only differences that a crosscheck accepts.

A row of ``EXTRA`` names an op that a counter counts as flops and that has no MACs. A row of ``MISSING`` names ops of ours that a counter
has no formula for; ``sign`` narrows it down to modules in which the counter itself reports that op as one it does not know. A row of
``OTHER`` names an op that a counter counts by another rule, so that its number is not zero but another one. Our products of sparse
matrices have ``(sparse)`` after their name.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple


class Extra(NamedTuple):
    """``counter`` counts the op ``op`` (its own name for it), which has no MACs."""

    counter: str
    op: str
    text: str


class Missing(NamedTuple):
    """``counter`` counts 0 for our ops that match ``ours``, which it calls something that matches ``sign``, if it reports it at all."""

    counter: str
    ours: str
    text: str
    sign: str = ""


class Other(NamedTuple):
    """``counter`` counts our ops that match ``ours`` (none, if it is empty) by another rule, which always gives more, or always fewer MACs.

    ``op`` is its own name for them.
    """

    counter: str
    ours: str
    op: str
    more: bool
    text: str


FVCORE, TORCH = "fvcore", "FlopCounterMode"

EXTRA = (
    Extra(FVCORE, "batch_norm", "fvcore counts batch norm, 2 flops per element (5 in training): no MACs"),
    Extra(FVCORE, "layer_norm", "fvcore counts layer norm, 5 flops per element: no MACs"),
    Extra(FVCORE, "group_norm", "fvcore counts group norm, 5 flops per element: no MACs"),
    Extra(FVCORE, "instance_norm", "fvcore counts instance norm, 5 flops per element: no MACs"),
    Extra(FVCORE, "adaptive_avg_pool2d", "fvcore counts adaptive average pooling, 1 flop per element: no MACs"),
    Extra(FVCORE, "upsample_*", "fvcore counts interpolation, 1 or 4 flops per element: no MACs"),
    Extra(FVCORE, "grid_sampler", "fvcore counts grid sampling, 4 flops per element: no MACs"),
)

MISSING = (
    Missing(FVCORE, "modelstat::attention", "fvcore knows no attention", "aten::scaled_dot_product_attention"),
    Missing(FVCORE, "*", "fvcore does not look into autograd functions", "prim::PythonOp*"),
    Missing(FVCORE, "modelstat::*_layer", "fvcore knows no RNN", "aten::[lgr]*"),
    Missing(FVCORE, "aten::baddbmm", "fvcore knows no baddbmm", "aten::baddbmm*"),
    Missing(FVCORE, "aten::mv", "fvcore knows no matrix-vector product", "aten::mv"),
    Missing(FVCORE, "aten::dot", "fvcore knows no dot product", "aten::dot"),
    Missing(FVCORE, "aten::addmv", "fvcore knows no addmv", "aten::addmv*"),
    Missing(FVCORE, "torchvision::deform_conv2d", "fvcore knows no deformable convolution", "torchvision::deform_conv2d"),
    Missing(FVCORE, "quantized::*", "fvcore knows no quantised layers", "quantized::*"),
    Missing(FVCORE, "aten::addbmm", "fvcore knows no addbmm", "aten::addbmm*"),
    Missing(FVCORE, "aten::affine_grid_generator", "fvcore knows no affine_grid", "aten::affine_grid_generator"),
    Missing(FVCORE, "aten::_trilinear", "fvcore knows no bilinear layer", "aten::bilinear"),
    Missing(FVCORE, "aten::convolution", "fvcore knows no convolution with its padding in words", "aten::_convolution_mode"),
    Missing(FVCORE, "aten::*mm (sparse)", "fvcore knows no sparse matrix product", "aten::*"),
    Missing(FVCORE, "aten::_euclidean_dist", "fvcore knows no distances between points", "aten::cdist"),
    Missing(FVCORE, "aten::*mm", "fvcore knows no tensordot", "aten::tensordot"),
    Missing(FVCORE, "aten::*mm", "fvcore knows no inner product", "aten::inner"),
    Missing(FVCORE, "aten::*mm", "fvcore knows no covariance", "aten::cov"),
    Missing(FVCORE, "aten::*mm", "fvcore knows no chain of matrix products", "aten::linalg_multi_dot"),
    Missing(FVCORE, "aten::*mm", "fvcore knows no power of a matrix", "aten::linalg_matrix_power"),
    Missing(TORCH, "modelstat::attention", "FlopCounterMode has no formula for the CPU's attention kernel"),
    Missing(TORCH, "modelstat::varlen_attention", "FlopCounterMode has no formula for nested attention"),
    Missing(TORCH, "modelstat::*_layer", "FlopCounterMode has no formula for RNNs"),
    Missing(TORCH, "aten::*mm (sparse)", "FlopCounterMode has no formula for sparse matrix products"),
    Missing(TORCH, "aten::mv", "FlopCounterMode has no formula for mv"),
    Missing(TORCH, "aten::dot", "FlopCounterMode has no formula for dot"),
    Missing(TORCH, "aten::addmv", "FlopCounterMode has no formula for addmv"),
    Missing(TORCH, "aten::_trilinear", "FlopCounterMode has no formula for trilinear"),
    Missing(TORCH, "aten::addbmm", "FlopCounterMode has no formula for addbmm"),
    Missing(TORCH, "aten::affine_grid_generator", "FlopCounterMode has no formula for affine_grid"),
    Missing(TORCH, "aten::_euclidean_dist", "FlopCounterMode has no formula for distances between points"),
    Missing(TORCH, "torchvision::deform_conv2d", "FlopCounterMode has no formula for deformable convolution"),
    Missing(TORCH, "quantized::*", "FlopCounterMode has no formula for quantised layers"),
)

OTHER = (
    Other(FVCORE, "aten::*mm", "matmul", False, "fvcore's matmul leaves out the axes along which a factor is broadcast"),
    Other(FVCORE, "", "einsum", True, "fvcore counts half a flop per element of an einsum that sums nothing up"),
    Other(FVCORE, "aten::*mm", "einsum", False, "fvcore counts an einsum in the cheapest order of its operands, torch runs another one"),
    Other(TORCH, "aten::*mm (sparse)", "mm", True, "FlopCounterMode counts a sparse matrix product as a dense one"),
    Other(TORCH, "aten::*mm (sparse)", "addmm", True, "FlopCounterMode counts a sparse matrix product as a dense one"),
)


def extras(counter: str, op: str) -> str | None:
    """Why a counter counts an op without MACs, None if it should not.

    >>> extras("fvcore", "upsample_nearest2d")
    'fvcore counts interpolation, 1 or 4 flops per element: no MACs'
    """
    return next((row.text for row in EXTRA if row.counter == counter and fnmatchcase(op, row.op)), None)
