"""Fourier transforms: 5 N log2 N real operations for N complex points, half of that where the input or the output is real.

That is the count of Cooley and Tukey's algorithm, as FFTW's benchmarks use it. N is the product of the transformed axes.
"""

from __future__ import annotations

from math import log2, prod

from modelstat.cost.operands import operand
from modelstat.cost.registry import Work, register
from modelstat.cost.table import REAL_DTYPE
from modelstat.records import Op, TensorSpec


def fft_flops(points: int, transforms: int, real: bool) -> int:
    """Real operations of ``transforms`` transforms of ``points`` points.

    >>> fft_flops(8, 2, real=False) == 2 * 5 * 8 * 3
    True
    """
    if points < 2:
        return 0
    return round((2.5 if real else 5.0) * points * log2(points) * transforms)


def _work(op: Op, signal: TensorSpec, real: bool) -> Work:
    """``signal`` is the full-length side: the real one of a real transform."""
    points = prod(signal.shape[axis] for axis in op.arguments["dim"])
    dtype = REAL_DTYPE.get(signal.dtype, signal.dtype)
    return Work(flops=fft_flops(points, signal.elements // max(points, 1), real), dtype=dtype)


@register("fft", "aten::_fft_c2c")
def complex_transform(op: Op) -> Work:
    """Complex to complex."""
    return _work(op, operand(op, "self"), real=False)


@register("fft", "aten::_fft_r2c")
def real_transform(op: Op) -> Work:
    """Real to complex."""
    return _work(op, operand(op, "self"), real=True)


@register("fft", "aten::_fft_c2r")
def inverse_real_transform(op: Op) -> Work:
    """Complex to real."""
    return _work(op, op.outputs[0], real=True)


@register("fft", "aten::fft_fftshift", "aten::fft_ifftshift")
def shift(op: Op) -> Work:
    """Moves: bytes only."""
    return Work()
