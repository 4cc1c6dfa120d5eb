from __future__ import annotations

from math import log2

from modelstat.cost.registry import cost_of
from tests.cost.ops import op, tensor


def test_complex_transform() -> None:
    cost = cost_of(op("aten::_fft_c2c", {"self": (3, 64)}, (3, 64), dtype="complex64", dim=[1]))
    assert (cost.flops, cost.dtype, cost.unit, cost.read) == (3 * 5 * 64 * 6, "float32", "vector", 8 * 192)


def test_two_axes() -> None:
    cost = cost_of(op("aten::_fft_c2c", {"self": (3, 16, 32)}, (3, 16, 32), dtype="complex64", dim=[-2, -1]))
    assert cost.flops == 3 * 5 * 512 * 9


def test_real_transforms_are_half() -> None:
    forward = cost_of(op("aten::_fft_r2c", {"self": (3, 64)}, tensor((3, 33), "complex64"), dim=[1], onesided=True))
    backward = cost_of(op("aten::_fft_c2r", {"self": tensor((3, 33), "complex64")}, (3, 64), dim=[1], last_dim_size=64))
    assert forward.flops == backward.flops == 3 * 5 * 64 * 6 // 2
    assert (forward.read, forward.write) == (4 * 192, 8 * 99)


def test_any_length() -> None:
    cost = cost_of(op("aten::_fft_c2c", {"self": (100,)}, (100,), dtype="complex64", dim=[0]))
    assert cost.flops == round(5 * 100 * log2(100))
    assert cost_of(op("aten::_fft_c2c", {"self": (4, 1)}, (4, 1), dtype="complex64", dim=[1])).flops == 0
