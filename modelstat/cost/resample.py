"""Interpolation: products and sums per output element.

A weighted sum of t taps is t multiplications and t - 1 additions: linear 3, bilinear 7, trilinear 15, bicubic 31; nearest 0. Weights of
a regular grid are the same for every row and channel and are not counted; those of grid_sample belong to each point and are.
"""

from __future__ import annotations

from math import ceil, prod

from modelstat.cost.operands import operand
from modelstat.cost.registry import Work, register
from modelstat.records import Op


def taps_flops(taps: int) -> int:
    """FLOPs of a weighted sum of ``taps`` elements."""
    return 2 * taps - 1


@register(
    "resample",
    "aten::upsample_nearest1d", "aten::upsample_nearest2d", "aten::upsample_nearest3d", "aten::_upsample_nearest_exact1d",
    "aten::_upsample_nearest_exact2d", "aten::_upsample_nearest_exact3d",
)  # fmt: skip
def nearest(op: Op) -> Work:
    """Copies: bytes only."""
    return Work()


TAPS = {
    "aten::upsample_linear1d": 2,
    "aten::upsample_bilinear2d": 4,
    "aten::upsample_trilinear3d": 8,
    "aten::upsample_bicubic2d": 16,
}


@register("resample", *TAPS)
def weighted(op: Op) -> Work:
    """2 taps - 1 per output element."""
    return Work(flops=op.outputs[0].elements * taps_flops(TAPS[op.name]))


ANTIALIASED_SUPPORT = {"aten::_upsample_bilinear2d_aa": 2, "aten::_upsample_bicubic2d_aa": 4, "aten::_upsample_lanczos2d_aa": 6}
"""Width of the filter in output pixels when shrinking, in input pixels when enlarging."""


def antialiased_taps(name: str, size: tuple[int, int], new_size: tuple[int, int]) -> tuple[int, ...]:
    """Taps along the height and along the width, from one (H, W) to another: the filter widens by the factor of shrinking."""
    return tuple(ceil(ANTIALIASED_SUPPORT[name] * max(1.0, old / new)) for old, new in zip(size, new_size, strict=True))


@register("resample", *ANTIALIASED_SUPPORT)
def antialiased(op: Op) -> Work:
    """(N, C, H, W) -> (N, C, H', W') in two passes, first along the width."""
    *outer, height, width = op.inputs[0].shape
    new_height, new_width = op.outputs[0].shape[-2:]
    down, across = antialiased_taps(op.name, (height, width), (new_height, new_width))
    return Work(flops=prod(outer) * (height * new_width * taps_flops(across) + new_height * new_width * taps_flops(down)))


POINT = {
    # (axes, mode): operations per grid point, and taps per element
    (2, 0): (6 + 8, 4),  # scale 2 x 3; 4 differences and 4 products of weights
    (2, 1): (6 + 2, 1),  # scale, round
    (2, 2): (6 + 40, 16),  # scale, 8 cubic weights of 5
    (3, 0): (9 + 22, 8),  # scale 3 x 3; 6 differences and 16 products of weights
    (3, 1): (9 + 3, 1),
}
"""grid_sample: mode 0 is bilinear, 1 nearest, 2 bicubic."""


@register("resample", "aten::grid_sampler_2d", "aten::grid_sampler_3d", "aten::grid_sampler", "aten::cudnn_grid_sampler",
          "aten::_grid_sampler_2d_cpu_fallback")  # fmt: skip
def grid_sample(op: Op) -> Work:
    """input (N, C, *in), grid (N, *out, axes) -> (N, C, *out)."""
    grid = operand(op, "grid")
    axes = grid.shape[-1]
    per_point, taps = POINT[axes, int(op.argument("interpolation_mode", 0))]
    sampled = op.outputs[0].elements * taps_flops(taps) if taps > 1 else 0
    return Work(flops=grid.elements // axes * per_point + sampled)


@register("resample", "aten::affine_grid_generator", "aten::cudnn_affine_grid_generator")
def affine_grid(op: Op) -> Work:
    """theta (N, axes, axes + 1) times homogeneous coordinates of every output pixel -> (N, *out, axes): a matrix product."""
    theta = operand(op, "theta")
    return Work(macs=op.outputs[0].elements * theta.shape[-1])
