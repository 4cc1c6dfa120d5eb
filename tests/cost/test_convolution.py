from __future__ import annotations

from typing import Any

import pytest

from modelstat.cost.registry import cost_of
from tests.cost.ops import op

# name, data, weight, bias, output, transposed, macs, bias additions
TABLE: list[tuple[str, Any, Any, Any, Any, bool, int, int]] = [
    # 1 to 3 axes, strides, batches: every output element sums Cin/groups x kernel products
    ("aten::convolution", (1, 1, 801), (16, 1, 9), (16,), (1, 16, 199), False, 199 * 16 * 9, 199 * 16),
    ("aten::convolution", (2, 4, 17, 23), (8, 4, 3, 3), None, (2, 8, 9, 12), False, 2 * 9 * 12 * 8 * 4 * 9, 0),
    ("aten::convolution", (1, 3, 8, 8, 8), (4, 3, 3, 3, 3), None, (1, 4, 6, 6, 6), False, 6**3 * 4 * 3 * 27, 0),
    # without a batch
    ("aten::conv2d", (3, 6, 6), (5, 3, 3, 3), (5,), (5, 4, 4), False, 16 * 5 * 27, 16 * 5),
    # groups; depthwise with a multiplier of 2
    ("aten::convolution", (1, 8, 5, 5), (6, 4, 1, 1), None, (1, 6, 5, 5), False, 25 * 6 * 4, 0),
    ("aten::convolution", (1, 24, 20, 20), (48, 1, 5, 5), None, (1, 48, 20, 20), False, 400 * 48 * 25, 0),
    # transposed: every input element meets a patch of Cout/groups x kernel
    ("aten::convolution", (1, 3, 2, 2), (3, 1, 2, 2), (1,), (1, 1, 4, 4), True, 4 * 3 * 1 * 4, 16),
    ("aten::convolution", (1, 8, 10), (8, 4, 5), (4,), (1, 4, 31), True, 10 * 8 * 4 * 5, 31 * 4),
    ("aten::convolution", (2, 8, 3, 3), (8, 2, 3, 3), None, (2, 4, 7, 7), True, 2 * 9 * 8 * 2 * 9, 0),
    ("aten::mkldnn_convolution", (1, 3, 6, 6), (5, 3, 3, 3), (5,), (1, 5, 4, 4), False, 16 * 5 * 27, 16 * 5),
    ("aten::cudnn_convolution", (1, 3, 6, 6), (5, 3, 3, 3), None, (1, 5, 4, 4), False, 16 * 5 * 27, 0),
    ("aten::slow_conv_transpose2d", (1, 3, 2, 2), (3, 1, 2, 2), None, (1, 1, 4, 4), False, 4 * 3 * 4, 0),
    ("aten::conv_transpose1d", (1, 8, 10), (8, 4, 5), None, (1, 4, 31), False, 10 * 8 * 4 * 5, 0),
]


@pytest.mark.parametrize(("name", "data", "weight", "bias", "output", "transposed", "macs", "additions"), TABLE)
def test_macs(name: str, data: Any, weight: Any, bias: Any, output: Any, transposed: bool, macs: int, additions: int) -> None:
    cost = cost_of(op(name, {"input": data, "weight": weight, "bias": bias}, output, transposed=transposed))
    outputs = cost.activations
    assert (cost.macs, cost.flops, cost.madd) == (macs, 2 * macs + additions, 2 * macs + additions - outputs)
    assert (cost.unit, cost.family) == ("matmul", "convolution")


def test_bytes_in_half_precision() -> None:
    cost = cost_of(op("aten::convolution", {"input": (2, 3, 8, 8), "weight": (4, 3, 1, 1), "bias": (4,)}, (2, 4, 8, 8), dtype="float16"))
    assert (cost.read, cost.write, cost.dtype) == (2 * (2 * 3 * 64 + 12 + 4), 2 * 2 * 4 * 64, "float16")


def test_fused_activations_add_their_flops() -> None:
    inputs = {"self": (1, 3, 6, 6), "weight": (5, 3, 3, 3), "bias": (5,)}
    relu = cost_of(op("aten::cudnn_convolution_relu", inputs, (1, 5, 4, 4)))
    add_relu = cost_of(op("aten::cudnn_convolution_add_relu", {**inputs, "z": (1, 5, 4, 4)}, (1, 5, 4, 4)))
    assert relu.flops == 2 * 80 * 27 + 80 + 80
    assert add_relu.flops == 2 * 80 * 27 + 80 + 2 * 80


def test_time_batch_channel() -> None:
    cost = cost_of(op("aten::conv_tbc", {"self": (10, 2, 6), "weight": (3, 6, 4), "bias": (4,)}, (8, 2, 4)))
    assert (cost.macs, cost.flops) == (8 * 2 * 4 * 3 * 6, 2 * 8 * 2 * 4 * 18 + 64)


def test_causal_depthwise() -> None:
    inputs = {"x": (2, 16, 100), "weight": (16, 4), "bias": (16,)}
    cost = cost_of(op("causal_conv1d::causal_conv1d_fwd", inputs, (2, 16, 100), silu_activation=True))
    assert (cost.macs, cost.flops) == (3200 * 4, 2 * 3200 * 4 + 3200 + 5 * 3200)
