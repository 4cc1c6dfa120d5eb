"""Gradients: the arithmetic of every formula as a product, and the names and arguments that autograd really uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from modelstat.cost.registry import cost_of, costs
from modelstat.memory.training import backward_start
from modelstat.records import Op
from modelstat.trace.capture import capture
from tests.cost.ops import op, tensor

GRAD, IMAGE, WEIGHT = (2, 6, 8, 8), (2, 4, 8, 8), (6, 4, 3, 3)
CONVOLUTION = 2 * 6 * 64 * 4 * 9
"""MACs of the forward of a Conv2d(4, 6, 3, padding=1) on 2x4x8x8."""


def convolution(mask: list[bool], **arguments: Any) -> Op:
    sizes = [IMAGE if mask[0] else None, WEIGHT if mask[1] else None, (6,) if mask[2] else None]
    outputs = [size for size in sizes if size is not None]
    inputs = {"grad_output": GRAD, "input": IMAGE, "weight": WEIGHT}
    return op("aten::convolution_backward", inputs, *outputs, output_mask=mask, **arguments)


@pytest.mark.parametrize(
    ("mask", "macs", "flops", "outputs", "read"),
    [
        ([True, True, True], 2 * CONVOLUTION, 2 * 6 * 64, 2 * 4 * 64 + 6 * 36, 2 * 6 * 64 + 2 * 4 * 64 + 6 * 36),
        ([False, True, False], CONVOLUTION, 0, 6 * 36, 2 * 6 * 64 + 2 * 4 * 64),
        ([True, False, False], CONVOLUTION, 0, 2 * 4 * 64, 2 * 6 * 64 + 6 * 36),
    ],
)
def test_a_convolution_has_a_gradient_for_each_factor(mask: list[bool], macs: int, flops: int, outputs: int, read: int) -> None:
    cost = cost_of(convolution(mask))
    assert (cost.macs, cost.flops, cost.activations, cost.read) == (macs, 2 * macs + flops, outputs, 4 * read)
    assert cost.madd == cost.flops - outputs
    assert (cost.family, cost.unit) == ("convolution", "matmul")


def test_the_gradient_of_a_bias_alone_is_a_sum() -> None:
    cost = cost_of(convolution([False, False, True]))
    assert (cost.macs, cost.flops, cost.read, cost.unit) == (0, 2 * 6 * 64, 4 * 2 * 6 * 64, "vector")


def test_a_transposed_convolution_multiplies_its_input() -> None:
    inputs = {"grad_output": (1, 6, 11, 11), "input": (1, 4, 5, 5), "weight": (4, 6, 3, 3)}
    cost = cost_of(op("aten::convolution_backward", inputs, (1, 4, 5, 5), (4, 6, 3, 3), output_mask=[True, True, False], transposed=True))
    assert cost.macs == 2 * 4 * 25 * 6 * 9


def attention(**arguments: Any) -> Op:
    heads = {"query": (2, 4, 6, 8), "key": (2, 2, 7, 8), "value": (2, 2, 7, 5)}
    inputs = {"grad_output": (2, 4, 6, 5), **heads, "output": (2, 4, 6, 5), "logsumexp": (2, 4, 6)}
    return op("modelstat::attention_backward", inputs, *heads.values(), **arguments)


def test_attention_is_five_products() -> None:
    cost, pairs = cost_of(attention()), 2 * 4 * 6 * 7
    assert cost.macs == pairs * (3 * 8 + 2 * 5)
    assert cost.flops == 2 * cost.macs + pairs * 6 + 2 * (2 * 4 * 6 * 5)
    assert cost.activations == 2 * pairs + 2 * 4 * 6 * 8 + 2 * 2 * 7 * 8 + 2 * 2 * 7 * 5


def test_causal_attention_by_halves() -> None:
    inputs = dict.fromkeys(("grad_output", "query", "key", "value", "output"), (1, 1, 8, 4))
    causal = op("modelstat::attention_backward", inputs, (1, 1, 8, 4), (1, 1, 8, 4), (1, 1, 8, 4), is_causal=True)
    assert cost_of(causal).macs == 8 * 8 * 5 * 4
    half = op("modelstat::attention_backward", inputs, (1, 1, 8, 4), (1, 1, 8, 4), (1, 1, 8, 4), is_causal=True, causal_half=True)
    assert cost_of(half).macs == 8 * 9 // 2 * 5 * 4


def test_dense_attention_with_heads_after_positions() -> None:
    q, k = (2, 6, 4, 8), (2, 7, 4, 8)
    inputs = {"grad_out": q, "query": q, "key": k, "value": k, "out": q, "logsumexp": (2, 4, 6)}
    assert cost_of(op("aten::_flash_attention_backward", inputs, q, k, k, max_q=6, max_k=7)).macs == 2 * 4 * 6 * 7 * 5 * 8


@pytest.mark.parametrize(
    ("name", "ends"),
    [("torch_attn::_varlen_attn_backward", "cu_seq_q"), ("aten::_flash_attention_backward", "cum_seq_q")],
)
def test_attention_of_packed_sequences(name: str, ends: str) -> None:
    """15, 10 and 5 tokens, four heads of 16 channels: the pairs of each sequence where lengths are known, else the longest one's."""
    packed = dict.fromkeys(("grad_out", "query", "key", "value", "out"), (30, 4, 16))
    inputs = {**packed, ends: tensor((4,), "int32")}
    outputs = [(30, 4, 16)] * 3
    known = op(name, inputs, *outputs, max_q=15, max_k=15, pairs=15**2 + 10**2 + 5**2, causal_pairs=120 + 55 + 15, is_causal=True)
    assert cost_of(known).macs == 4 * (15**2 + 10**2 + 5**2) * 5 * 16
    assert cost_of(op(name, inputs, *outputs, max_q=15, max_k=15)).macs == 4 * 30 * 15 * 5 * 16
    half = msgspec.structs.replace(known, arguments={**known.arguments, "causal_half": True})
    assert cost_of(half).macs == 4 * (120 + 55 + 15) * 5 * 16


@pytest.mark.parametrize(("name", "gates", "pointwise"), [("lstm", 4, 23), ("gru", 3, 17), ("rnn", 1, 4)])
def test_rnn_layers(name: str, gates: int, pointwise: int) -> None:
    weights = {"weight_ih": (gates * 6, 5), "weight_hh": (gates * 6, 6), "bias_ih": (gates * 6,), "bias_hh": (gates * 6,)}
    layer = op(f"modelstat::{name}_layer_backward", {"input": (7, 2, 5), **weights}, (7, 2, 5), steps=14, hidden=6, gates=gates)
    cost = cost_of(layer)
    assert cost.macs == 2 * 14 * gates * 6 * (5 + 6)
    assert cost.flops == 2 * cost.macs + 14 * (6 * pointwise + 2 * gates * 6)


ELEMENTS = 2 * 4 * 64
PER_ELEMENT: list[tuple[str, dict[str, Any], dict[str, Any], int]] = [
    ("native_batch_norm_backward", {"grad_out": IMAGE, "input": IMAGE}, {"train": True}, 9 * ELEMENTS),
    ("native_batch_norm_backward", {"grad_out": IMAGE, "input": IMAGE}, {"train": True, "output_mask": [False, True, True]}, 5 * ELEMENTS),
    ("native_batch_norm_backward", {"grad_out": IMAGE, "input": IMAGE}, {"train": False, "output_mask": [True, False, False]}, ELEMENTS),
    ("native_layer_norm_backward", {"grad_out": IMAGE, "input": IMAGE, "weight": (8, 8)}, {}, 13 * ELEMENTS),
    ("native_layer_norm_backward", {"grad_out": IMAGE, "input": IMAGE}, {"output_mask": [True, False, False]}, 9 * ELEMENTS),
    ("_fused_rms_norm_backward", {"grad_out": IMAGE, "input": IMAGE, "weight": (8,)}, {}, 9 * ELEMENTS),
    ("_softmax_backward_data", {"grad_output": IMAGE, "output": IMAGE}, {}, 4 * ELEMENTS),
    ("_log_softmax_backward_data", {"grad_output": IMAGE, "output": IMAGE}, {}, 4 * ELEMENTS),
    ("threshold_backward", {"grad_output": IMAGE, "self": IMAGE}, {}, ELEMENTS),
    ("hardswish_backward", {"grad_output": IMAGE, "self": IMAGE}, {}, 5 * ELEMENTS),
    ("upsample_nearest2d_backward", {"grad_output": (2, 4, 16, 16)}, {}, 4 * ELEMENTS),
    ("upsample_bilinear2d_backward", {"grad_output": (2, 4, 16, 16)}, {}, 8 * 4 * ELEMENTS),
    ("reflection_pad2d_backward", {"grad_output": (2, 4, 10, 10), "self": IMAGE}, {}, 2 * 4 * 100),
    ("select_backward", {"grad_output": (2, 4, 8)}, {}, 0),
]


@pytest.mark.parametrize(("name", "inputs", "arguments", "flops"), PER_ELEMENT)
def test_operations_per_element(name: str, inputs: dict[str, Any], arguments: dict[str, Any], flops: int) -> None:
    cost = cost_of(op(f"aten::{name}", inputs, IMAGE, **arguments))
    assert (cost.macs, cost.flops, cost.known) == (0, flops, "formula")


def test_what_lends_its_shape_is_not_read() -> None:
    small, big = (2, 4, 4, 4), IMAGE
    largest = op(
        "aten::max_pool2d_with_indices_backward", {"grad_output": small, "self": big, "indices": tensor(small, "int64")}, big, kernel_size=2
    )
    assert (cost_of(largest).flops, cost_of(largest).read, cost_of(largest).write) == (2 * 4 * 16, 2 * 4 * 16 * (4 + 8), 4 * ELEMENTS)
    mean = cost_of(op("aten::avg_pool2d_backward", {"grad_output": small, "self": big}, big, kernel_size=[2, 2]))
    assert (mean.flops, mean.read) == (2 * 4 * 16 * (4 + 1), 4 * 2 * 4 * 16)


def test_an_embedding_adds_rows_to_a_table_of_zeros() -> None:
    cost = cost_of(op("aten::embedding_dense_backward", {"grad_output": (2, 5, 8), "indices": tensor((2, 5), "int64")}, (100, 8)))
    assert (cost.flops, cost.read, cost.write) == (10 * 8, 4 * 10 * 8 + 8 * 10, 4 * 100 * 8)


LAYERS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    name: getattr(F, name)
    for name in (
        "relu", "relu6", "leaky_relu", "elu", "celu", "selu", "gelu", "silu", "mish", "hardswish", "hardsigmoid", "hardtanh", "softplus",
        "logsigmoid", "softshrink", "hardshrink", "tanhshrink", "softsign", "glu", "sigmoid", "tanh", "rrelu",
    )
} | {
    "max_pool": lambda x: F.max_pool2d(x, 2),
    "avg_pool": lambda x: F.avg_pool2d(x, 2),
    "adaptive_max": lambda x: F.adaptive_max_pool2d(x, 3),
    "adaptive_avg": lambda x: F.adaptive_avg_pool2d(x, 3),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(1),
    "layer_norm": lambda x: F.layer_norm(x, (8,)),
    "group_norm": lambda x: F.group_norm(x, 2),
    "instance_norm": lambda x: F.instance_norm(x),
    "rms_norm": lambda x: F.rms_norm(x, (8,)),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "bicubic": lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"),
    "antialiased": lambda x: F.interpolate(x, size=(4, 4), mode="bilinear", antialias=True),
    "reflect": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    "replicate": lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate"),
    "constant": lambda x: F.pad(x, (1, 1)),
    "unfold": lambda x: F.fold(F.unfold(x, 2), (8, 8), 2),
    "windows": lambda x: x.unfold(2, 2, 2),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "index": lambda x: x[:, [0, 2], 1:, ::2],
    "gather": lambda x: x.gather(3, torch.zeros(2, 4, 8, 2, dtype=torch.long)),
    "select": lambda x: x.select(1, 0) + x[:, 1],
    "cat": lambda x: torch.cat([x, x.roll(1, 2)], 1),
    "max": lambda x: x.max(1).values + x.amax(1) + x.median(1).values,
    "sums": lambda x: x.sum(1) + x.mean(1) + x.std(1) + x.norm(dim=1) + x.logsumexp(1) + x.prod(1),
    "running": lambda x: x.cumsum(1),
    "grid_sample": lambda x: F.grid_sample(x, x[:, :2].permute(0, 2, 3, 1), align_corners=False),
    "cdist": lambda x: torch.cdist(x[0], x[1]),
    "einsum": lambda x: torch.einsum("bchw,bdhw->bcd", x, x),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "where": lambda x: torch.where(x > 0, x.exp(), x.abs()),
    "minmax": lambda x: torch.maximum(x, -x).clamp(0, 1),
    "normalize": lambda x: F.normalize(x),
    "dropout": lambda x: F.dropout(x, 0.1),
    "mse": lambda x: F.mse_loss(x, torch.ones_like(x)) + F.smooth_l1_loss(x, torch.zeros_like(x)) + F.huber_loss(x, torch.zeros_like(x)),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.zeros(2, 8, 8, dtype=torch.long)),
    "bce": lambda x: F.binary_cross_entropy_with_logits(x, torch.ones_like(x)) + F.binary_cross_entropy(x.sigmoid(), torch.ones_like(x)),
    "fft": lambda x: torch.fft.rfft2(x).abs(),
}  # fmt: skip


class Layer(nn.Module):
    """Something to train in front of a function."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.conv, self.function = nn.Conv2d(4, 4, 1), function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(self.conv(x))


@pytest.mark.parametrize("name", LAYERS)
def test_every_gradient_has_a_formula(name: str) -> None:
    trace = capture(Layer(LAYERS[name]), (torch.rand(IMAGE),), training=True)
    found = costs(trace)
    assert [op.name for op, cost in zip(trace.ops, found, strict=True) if cost.known == "unknown"] == []
    assert any(cost.bytes for cost in found[backward_start(trace) :])
