from __future__ import annotations

from typing import Any

import pytest

from modelstat.cost.registry import cost_of
from tests.cost.ops import op, tensor

# name, inputs, output, arguments, macs, additions of a bias
TABLE: list[tuple[str, dict[str, Any], Any, dict[str, Any], int, int]] = [
    ("aten::mm", {"self": (10, 16), "mat2": (16, 24)}, (10, 24), {}, 10 * 16 * 24, 0),
    ("aten::bmm", {"self": (3, 5, 8), "mat2": (3, 8, 7)}, (3, 5, 7), {}, 3 * 5 * 8 * 7, 0),
    ("aten::addmm", {"self": (24,), "mat1": (10, 16), "mat2": (16, 24)}, (10, 24), {}, 10 * 16 * 24, 240),
    ("aten::addmm", {"self": (24,), "mat1": (10, 16), "mat2": (16, 24)}, (10, 24), {"beta": 0}, 10 * 16 * 24, 0),
    ("aten::baddbmm", {"self": (), "batch1": (3, 5, 8), "batch2": (3, 8, 7)}, (3, 5, 7), {"beta": 0, "alpha": 0.5}, 3 * 5 * 8 * 7, 0),
    ("aten::baddbmm", {"self": (3, 5, 7), "batch1": (3, 5, 8), "batch2": (3, 8, 7)}, (3, 5, 7), {}, 3 * 5 * 8 * 7, 105),
    ("aten::addbmm", {"self": (5, 7), "batch1": (3, 5, 8), "batch2": (3, 8, 7)}, (5, 7), {}, 3 * 5 * 8 * 7, 35),
    ("aten::mv", {"self": (6, 9), "vec": (9,)}, (6,), {}, 6 * 9, 0),
    ("aten::addmv", {"self": (6,), "mat": (6, 9), "vec": (9,)}, (6,), {}, 6 * 9, 6),
    ("aten::dot", {"self": (9,), "tensor": (9,)}, (), {}, 9, 0),
    ("aten::vdot", {"self": (9,), "other": (9,)}, (), {}, 9, 0),
    ("aten::matmul", {"self": (2, 1, 6, 5), "other": (4, 5, 7)}, (2, 4, 6, 7), {}, 2 * 4 * 6 * 7 * 5, 0),
    ("aten::linear", {"input": (2, 3, 16), "weight": (24, 16), "bias": (24,)}, (2, 3, 24), {}, 6 * 16 * 24, 6 * 24),
    ("aten::linear", {"input": (64,), "weight": (32, 64), "bias": None}, (32,), {}, 32 * 64, 0),
    ("aten::_weight_int8pack_mm", {"self": (4, 64), "mat2": tensor((32, 64), "int8"), "scales": (32,)}, (4, 32), {}, 4 * 32 * 64, 0),
    ("aten::_weight_int4pack_mm", {"self": (4, 64), "mat2": tensor((4, 2, 32, 4), "int32"), "q": (2, 32, 2)}, (4, 32), {}, 4 * 32 * 64, 0),
    ("aten::_grouped_mm", {"self": (10, 16), "mat2": (4, 16, 24), "offs": tensor((4,), "int32")}, (10, 24), {}, 10 * 16 * 24, 0),
    ("aten::_grouped_mm", {"self": (5, 30), "mat2": (30, 7), "offs": tensor((3,), "int32")}, (3, 5, 7), {}, 5 * 30 * 7, 0),
    ("aten::_grouped_mm", {"self": (3, 5, 8), "mat2": (3, 8, 7)}, (3, 5, 7), {}, 3 * 5 * 8 * 7, 0),
    # nn.Bilinear: x (5, 3), weight (4, 3, 6), y (5, 6) -> (5, 4)
    (
        "aten::_trilinear", {"i1": (5, 3), "i2": (4, 3, 6), "i3": (5, 6)}, (5, 4),
        {"expand1": [1, 3], "expand2": [0], "expand3": [1, 2], "sumdim": [2, 3]}, 5 * 4 * 3 * 6, 2 * 5 * 4 * 6,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "inputs", "output", "arguments", "macs", "additions"), TABLE)
def test_macs(name: str, inputs: dict[str, Any], output: Any, arguments: dict[str, Any], macs: int, additions: int) -> None:
    cost = cost_of(op(name, inputs, output, **arguments))
    assert (cost.macs, cost.flops, cost.madd) == (macs, 2 * macs + additions, 2 * macs + additions - cost.activations)
    assert (cost.unit, cost.dtype) == ("matmul", "float32")


def test_a_product_of_nothing_to_sum_is_no_contraction() -> None:
    outer = cost_of(op("aten::outer", {"self": (5,), "vec2": (7,)}, (5, 7)))
    plus = cost_of(op("aten::addr", {"self": (5, 7), "vec1": (5,), "vec2": (7,)}, (5, 7)))
    assert (outer.macs, outer.flops, plus.macs, plus.flops) == (0, 35, 0, 70)


def test_a_linear_layers_bytes() -> None:
    cost = cost_of(op("aten::addmm", {"self": (24,), "mat1": (10, 16), "mat2": (16, 24)}, (10, 24)))
    assert (cost.read, cost.write) == (4 * (24 + 160 + 384), 4 * 240)


def test_beta_zero_does_not_read_self() -> None:
    cost = cost_of(op("aten::addmm", {"self": (10, 24), "mat1": (10, 16), "mat2": (16, 24)}, (10, 24), beta=0))
    assert cost.read == 4 * (160 + 384)


def test_a_matrix_with_itself_is_read_once() -> None:
    matrix = tensor((8, 8))
    assert cost_of(op("aten::mm", {"self": matrix, "mat2": matrix}, (8, 8))).read == 4 * 64


def test_few_tokens_do_not_read_all_experts() -> None:
    cost = cost_of(op("aten::_grouped_mm", {"self": (2, 16), "mat2": (8, 16, 24), "offs": tensor((8,), "int32")}, (2, 24)))
    assert cost.read == 4 * 2 * 16 + 4 * 8 + 4 * 2 * 16 * 24


def test_complex_product() -> None:
    cost = cost_of(op("aten::mm", {"self": (5, 12), "mat2": (12, 8)}, (5, 8), dtype="complex64"))
    assert (cost.macs, cost.flops, cost.read) == (5 * 12 * 8, 8 * 480, 8 * (60 + 96))


def test_eight_bit_floats() -> None:
    inputs = {"self": tensor((16, 32), "float8_e4m3fn"), "mat2": tensor((32, 8), "float8_e4m3fn"), "scale_a": (), "scale_b": ()}
    cost = cost_of(op("aten::_scaled_mm", inputs, tensor((16, 8), "bfloat16")))
    assert (cost.macs, cost.dtype, cost.read, cost.write) == (16 * 32 * 8, "float8_e4m3fn", 16 * 32 + 32 * 8 + 8, 2 * 128)


def test_activation_behind_a_product() -> None:
    inputs = {"self": (24,), "mat1": (10, 16), "mat2": (16, 24)}
    gelu = cost_of(op("aten::_addmm_activation", inputs, (10, 24), use_gelu=True))
    relu = cost_of(op("aten::_addmm_activation", inputs, (10, 24)))
    assert (gelu.flops, relu.flops) == (2 * 3840 + 240 + 5 * 240, 2 * 3840 + 240 + 240)
