"""What the formulas read from an op: tables that a reader can recompute."""

from __future__ import annotations

from typing import Any

import pytest

from modelstat.cost.registry import cost_of
from modelstat.predict.kernels import (
    attention,
    batched_gemm,
    convolution,
    copy,
    embedding,
    gather,
    gemm,
    norm,
    pooling,
    reduction,
    rnn,
    softmax,
)
from modelstat.records import Op, TensorSpec


def tensor(*shape: int, dtype: str = "float32", value: int = 0, order: tuple[int, ...] | None = None) -> TensorSpec:
    """A dense tensor; ``order`` lists the axes from the outermost in memory to the innermost."""
    strides, step = [0] * len(shape), 1
    for axis in reversed(order or range(len(shape))):
        strides[axis], step = step, step * shape[axis]
    return TensorSpec(shape, dtype, tuple(strides), value)


def op(name: str, inputs: dict[str, TensorSpec], output: TensorSpec, **arguments: Any) -> Op:
    return Op(name, "default", tuple(inputs.values()), tuple(inputs), (output,), arguments)


MM = op("aten::mm", {"self": tensor(6, 5), "mat2": tensor(5, 7)}, tensor(6, 7))
ADDMM = op("aten::addmm", {"self": tensor(7), "mat1": tensor(6, 5), "mat2": tensor(5, 7)}, tensor(6, 7))
LINEAR = op("aten::linear", {"input": tensor(2, 3, 5), "weight": tensor(7, 5)}, tensor(2, 3, 7))
NARROW = op("aten::mm", {"self": tensor(6, 5), "mat2": tensor(5, 7, dtype="int8")}, tensor(6, 7))
MV = op("aten::mv", {"self": tensor(6, 5), "vec": tensor(5)}, tensor(6))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (MM, (6, 7, 5, 4, 0, 1)),
        (ADDMM, (6, 7, 5, 4, 4 * 7, 1)),  # the bias
        (LINEAR, (2 * 3, 7, 5, 4, 0, 1)),
        (MV, (6, 1, 5, 4, 0, 1)),
        (NARROW, (6, 7, 5, 4, 0, 1 / 4)),  # a byte a weight, four an activation
    ],
)
def test_gemm(given: Op, expected: tuple[float, ...]) -> None:
    assert gemm.features(given, cost_of(given)) == expected


@pytest.mark.parametrize(
    ("inputs", "output", "choices", "expected"),
    [
        # 60 rows of 20 tokens with 3 choices among 6 matrices: 6 (1 - (1/2)^20) of them are met
        ({"self": tensor(60, 5), "mat2": tensor(6, 5, 7)}, tensor(60, 7), 3, (5.999994, 60 / 5.999994, 7, 5)),
        ({"self": tensor(2, 5), "mat2": tensor(6, 5, 7)}, tensor(2, 7), None, (2, 1, 7, 5)),  # a row each
        ({"self": tensor(6, 4, 5), "mat2": tensor(6, 5, 7)}, tensor(6, 4, 7), None, (6, 4, 7, 5)),
        ({"self": tensor(4, 30), "mat2": tensor(30, 7)}, tensor(3, 4, 7), None, (3, 4, 7, 10)),  # 30 columns shared by 3 groups
        ({"self": tensor(0, 5), "mat2": tensor(6, 5, 7)}, tensor(0, 7), None, (1, 0, 7, 0)),  # no token chose an expert here
        ({"self": tensor(6, 0, 5), "mat2": tensor(6, 5, 7)}, tensor(6, 0, 7), None, (6, 0, 7, 0)),
    ],
)
def test_products_of_routed_experts(
    inputs: dict[str, TensorSpec], output: TensorSpec, choices: int | None, expected: tuple[float, ...]
) -> None:
    given = op("aten::_grouped_mm", inputs, output, **({} if choices is None else {"choices": choices}))
    assert batched_gemm.features(given, cost_of(given))[:4] == pytest.approx(expected, rel=1e-6)


def test_batched_gemm() -> None:
    given = op("aten::bmm", {"self": tensor(8, 6, 5), "mat2": tensor(8, 5, 7)}, tensor(8, 6, 7))
    size = 4 * 8 * (6 * 5 + 5 * 7 + 6 * 7)
    assert batched_gemm.features(given, cost_of(given)) == (8, 6, 7, 5, size)


def test_baddbmm_reads_its_left_factor() -> None:
    inputs = {"self": tensor(8, 6, 7), "batch1": tensor(8, 6, 5), "batch2": tensor(8, 5, 7)}
    given = op("aten::baddbmm", inputs, tensor(8, 6, 7))
    assert batched_gemm.features(given, cost_of(given))[:4] == (8, 6, 7, 5)


def conv(data: TensorSpec, weight: TensorSpec, output: TensorSpec, **arguments: Any) -> convolution.Features:
    given = op("aten::convolution", {"input": data, "weight": weight}, output, **arguments)
    return convolution.features(given, cost_of(given))


def test_a_dense_convolution() -> None:
    found = conv(tensor(2, 8, 14, 14), tensor(16, 8, 3, 3), tensor(2, 16, 14, 14), stride=[1, 1], padding=[1, 1], dilation=[1, 1], groups=1)
    assert found[:9] == (2, 2 * 14 * 14, 16, 8 * 9, 1, 9, 14, 14, 1)
    assert found[9:] == (4 * 2 * 8 * 196, 4 * 16 * 72, 4 * 2 * 16 * 196, 0, 0, 0, 0)


def test_a_stride_rules_winograd_out() -> None:
    found = conv(tensor(2, 8, 14, 14), tensor(16, 8, 3, 3), tensor(2, 16, 7, 7), stride=[2, 2], padding=[1, 1], groups=1)
    assert found.winograd == 0


def test_a_depthwise_convolution() -> None:
    found = conv(tensor(2, 8, 14, 14), tensor(8, 1, 3, 3), tensor(2, 8, 14, 14), stride=[1, 1], groups=8)
    assert (found.groups, found.m, found.n, found.k, found.winograd) == (8, 2 * 196, 1, 9, 0)


def test_a_transposed_convolution_counts_input_pixels() -> None:
    # (2, 8, 7, 7) with a weight (8, 16, 2, 2), stride 2: every input pixel is multiplied into 16 x 2 x 2.
    found = conv(tensor(2, 8, 7, 7), tensor(8, 16, 2, 2), tensor(2, 16, 14, 14), stride=[2, 2], transposed=True, groups=1)
    assert (found.m, found.n, found.k, found.transposed) == (2 * 49, 16 * 4, 8, 1)


def test_channels_last_is_seen_in_the_strides() -> None:
    data = tensor(2, 8, 14, 14, order=(0, 2, 3, 1))
    assert conv(data, tensor(16, 8, 1, 1), tensor(2, 16, 14, 14), groups=1).channels_last == 1
    assert conv(tensor(2, 8, 14, 14), tensor(16, 8, 1, 1), tensor(2, 16, 14, 14), groups=1).channels_last == 0


def test_data_in_another_layout_than_the_result_is_copied_first() -> None:
    natural, last = tensor(2, 8, 14, 14), tensor(2, 8, 14, 14, order=(0, 2, 3, 1))
    result = tensor(2, 16, 14, 14, order=(0, 2, 3, 1))
    weight = tensor(16, 8, 1, 1)
    copied = conv(natural, weight, result, groups=1)
    assert (copied.channels_last, copied.relaid) == (1, 4 * 2 * 8 * 196)
    assert conv(last, weight, result, groups=1).relaid == 0


def test_attention() -> None:
    query, key = tensor(2, 12, 197, 64, dtype="float16"), tensor(2, 4, 77, 64, dtype="float16", value=1)
    given = op("modelstat::attention", {"query": query, "key": key, "value": key}, query, is_causal=True, enable_gqa=True)
    assert attention.features(given, cost_of(given)) == (2, 12, 4, 197, 77, 64, 2, 1, 1, 1, 0, 0, 1)


def test_attention_with_a_mask_is_not_flash() -> None:
    query = tensor(2, 12, 197, 64, dtype="float16")
    inputs = {"query": query, "key": query, "value": query, "attn_mask": tensor(197, 197, dtype="float16", value=1)}
    given = op("modelstat::attention", inputs, query)
    found = attention.features(given, cost_of(given))
    # 197 keys are no whole number of vectors of 8: the mask is copied to longer rows.
    assert (found.flash, found.mask, found.padded) == (0, 2 * 197 * 197, 2 * 197 * 197)


def test_a_mask_of_whole_vectors_is_read_as_it_is() -> None:
    query = tensor(2, 12, 64, 32, dtype="float16")
    inputs = {"query": query, "key": query, "value": query, "attn_mask": tensor(12, 64, 64, dtype="float16", value=1)}
    given = op("modelstat::attention", inputs, query)
    assert attention.features(given, cost_of(given))[-3:] == (2 * 12 * 64 * 64, 0, 1)


@pytest.mark.parametrize(("shape", "fused"), [((2, 3, 8, 16), 1), ((3, 8, 16), 0), ((2, 4, 3, 8, 16), 0)])
def test_fused_kernels_take_four_axes(shape: tuple[int, ...], fused: int) -> None:
    query = tensor(*shape, dtype="float16")
    given = op("modelstat::attention", {"query": query, "key": query, "value": query}, query)
    assert attention.features(given, cost_of(given)).fused == fused


def test_attention_with_heads_behind_positions() -> None:
    query = tensor(2, 197, 12, 64, dtype="float16")
    given = op("aten::_flash_attention_forward", {"query": query, "key": query, "value": query}, query)
    assert attention.features(given, cost_of(given))[:6] == (2, 12, 12, 197, 197, 64)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("aten::native_layer_norm", {"normalized_shape": [14, 14]}, (2 * 8, 196, 1)),
        ("aten::native_group_norm", {"group": 4}, (2 * 4, 2 * 196, 1)),
        ("aten::native_batch_norm", {"training": False}, (8, 2 * 196, 0)),
        ("aten::native_batch_norm", {"training": True}, (8, 2 * 196, 1)),
        ("aten::_native_batch_norm_legit_no_training", {}, (8, 2 * 196, 0)),
    ],
)
def test_norm(name: str, arguments: dict[str, Any], expected: tuple[float, ...]) -> None:
    given = op(name, {"input": tensor(2, 8, 14, 14)}, tensor(2, 8, 14, 14, value=1), **arguments)
    found = norm.features(given, cost_of(given))
    assert (found.rows, found.width, found.again) == expected
    assert found.read == found.written == 4 * 2 * 8 * 196


@pytest.mark.parametrize(("order", "relaid"), [((0, 1, 2), 0), ((0, 2, 1), 1)])
def test_rows_of_a_layer_norm_are_made_contiguous_first(order: tuple[int, ...], relaid: int) -> None:
    given = op("aten::native_layer_norm", {"input": tensor(2, 8, 14, order=order)}, tensor(2, 8, 14, value=1), normalized_shape=[14])
    assert norm.features(given, cost_of(given)).relaid == relaid


def test_softmax() -> None:
    given = op("aten::_softmax", {"self": tensor(2, 12, 5, 7)}, tensor(2, 12, 5, 7, value=1), dim=-1)
    assert softmax.features(given, cost_of(given)) == (2 * 12 * 5, 7, 4 * 840, 4 * 840)


def test_pooling_writes_indices_that_nobody_reads() -> None:
    outputs = (tensor(1, 8, 7, 7, value=1), tensor(1, 8, 7, 7, dtype="int64", value=2))
    inputs, names = (tensor(1, 8, 14, 14),), ("self",)
    given = Op("aten::max_pool2d_with_indices", "default", inputs, names, outputs, {"kernel_size": [2, 2]}, unused_outputs=(1,))
    assert pooling.features(given, cost_of(given)) == (4 * 8 * 196, (4 + 8) * 8 * 49, 8 * 49 * 4)


def test_a_copy_to_another_layout_jumps() -> None:
    inputs = {"self": tensor(2, 8, 14, 14)}
    same = op("aten::clone", inputs, tensor(2, 8, 14, 14, value=1))
    other = op("aten::clone", inputs, tensor(2, 8, 14, 14, value=1, order=(0, 2, 3, 1)))
    assert copy.features(same, cost_of(same)).jumps == 0
    assert copy.features(other, cost_of(other)).jumps == 1


def test_rows_of_tables() -> None:
    given = op("aten::embedding", {"weight": tensor(100, 16), "indices": tensor(4, dtype="int64", value=1)}, tensor(4, 16, value=2))
    assert embedding.features(given, cost_of(given)) == (4 * 8 + 4 * 16 * 4, 4 * 16 * 4, 16 * 4)
    picked = op("aten::gather", {"self": tensor(4, 16), "index": tensor(4, 3, dtype="int64", value=1)}, tensor(4, 3, value=2), dim=1)
    assert gather.features(picked, cost_of(picked)).row == 4  # along the last axis: single elements


def test_reduction_and_rnn() -> None:
    mean = op("aten::mean", {"self": tensor(2, 8, 14, 14)}, tensor(2, 8, value=1), dim=[2, 3])
    assert reduction.features(mean, cost_of(mean)) == (4 * 2 * 8 * 196, 4 * 16, 2 * 8 * 196, 16)
    inputs = {"input": tensor(35, 4, 8), "weight_ih": tensor(64, 8, value=1), "weight_hh": tensor(64, 16, value=2)}
    layer = op("modelstat::lstm_layer", inputs, tensor(35, 4, 16, value=3), steps=35 * 4, gates=4, hidden=16, batch=4, kind="lstm")
    found = rnn.features(layer, cost_of(layer))
    assert (found.steps, found.weights) == (35, 4 * 64 * 16)
