from __future__ import annotations

from typing import Any

import pytest

from modelstat.cost.registry import cost_of
from tests.cost.ops import op, tensor

LINEAR: dict[str, Any] = {"weight_shape": [32, 64], "weight_dtype": "qint8", "weight_bytes": 32 * 64, "bias": True}


def test_dynamic_linear() -> None:
    cost = cost_of(op("quantized::linear_dynamic", {"X": (4, 64)}, (4, 32), **LINEAR))
    assert (cost.macs, cost.flops, cost.dtype, cost.unit) == (4 * 32 * 64, 2 * 4 * 32 * 64 + 4 * 32, "int8", "matmul")
    assert (cost.read, cost.write) == (4 * 256 + 32 * 64 + 4 * 32, 4 * 128)


def test_static_linear_with_relu() -> None:
    cost = cost_of(op("quantized::linear_relu", {"qx": (4, 64)}, (4, 32), dtype="quint8", **LINEAR))
    assert (cost.macs, cost.flops) == (4 * 32 * 64, 2 * 4 * 32 * 64 + 2 * 4 * 32)
    assert (cost.read, cost.write) == (256 + 32 * 64 + 4 * 32, 128)


def test_half_precision_linear() -> None:
    packed: dict[str, Any] = {**LINEAR, "weight_dtype": "float16", "weight_bytes": 2 * 32 * 64}
    assert cost_of(op("quantized::linear_dynamic_fp16", {"X": (4, 64)}, (4, 32), **packed)).dtype == "float16"


def test_convolution() -> None:
    packed: dict[str, Any] = {"weight_shape": [16, 3, 3, 3], "weight_dtype": "qint8", "weight_bytes": 16 * 27, "bias": True, "groups": 1}
    cost = cost_of(op("quantized::conv2d_relu", {"qx": (1, 3, 8, 8)}, (1, 16, 6, 6), dtype="quint8", **packed))
    outputs = 16 * 36
    assert (cost.macs, cost.flops) == (outputs * 27, 2 * outputs * 27 + outputs + outputs)
    assert (cost.read, cost.write) == (3 * 64 + 16 * 27 + 4 * 16, outputs)


def test_transposed_convolution() -> None:
    packed: dict[str, Any] = {"weight_shape": [3, 1, 2, 2], "weight_bytes": 12, "bias": False}
    assert cost_of(op("quantized::conv_transpose2d", {"qx": (1, 3, 2, 2)}, (1, 1, 4, 4), dtype="quint8", **packed)).macs == 4 * 3 * 4


def test_onednn_linear_has_its_weight_as_a_tensor() -> None:
    inputs = {"qx": tensor((4, 64), "uint8"), "qw": tensor((64, 32), "int8"), "w_scale": (32,), "bias": (32,)}
    cost = cost_of(op("onednn::qlinear_pointwise", inputs, tensor((4, 32), "uint8"), post_op_name="relu"))
    assert (cost.macs, cost.flops, cost.read) == (4 * 32 * 64, 2 * 8192 + 128 + 128, 256 + 2048 + 128 + 128)


@pytest.mark.parametrize(("name", "data", "result", "flops"), [
    ("aten::quantize_per_tensor", "float32", "quint8", 5), ("aten::dequantize", "quint8", "float32", 2),
    ("aten::fake_quantize_per_tensor_affine_cachemask", "float32", "float32", 7), ("quantized::add", "quint8", "quint8", 0),
])  # fmt: skip
def test_between_floats_and_integers(name: str, data: str, result: str, flops: int) -> None:
    cost = cost_of(op(name, {"self": tensor((10,), data)}, tensor((10,), result)))
    assert (cost.flops, cost.read, cost.write) == (10 * flops, tensor((10,), data).bytes, tensor((10,), result).bytes)


def test_dynamic_cell() -> None:
    cost = cost_of(op("quantized::quantized_lstm_cell_dynamic", {"input": (2, 6), "hx": [(2, 10), (2, 10)]}, (2, 10), (2, 10)))
    assert (cost.macs, cost.flops) == (2 * 40 * 16, 2 * 1280 + 2 * 80 + 20 * 22)
