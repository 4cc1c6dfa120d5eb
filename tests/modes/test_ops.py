"""Ops that models take from elsewhere: custom ones, functions of autograd, fused attention, RNNs, vision, FFT."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import modelstat
from modelstat.cost.registry import costs, unregister
from modelstat.trace.capture import capture
from tests.modes.counting import Call, count, parameter, zeros

X = zeros(2, 4)


@pytest.fixture(scope="module")
def product() -> Any:
    """A custom op that torch knows the shape of, and nothing else."""

    @torch.library.custom_op("modelstat_tests::product", mutates_args=())
    def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.numpy() @ w.numpy())

    product.register_fake(lambda x, w: x.new_empty(x.shape[0], w.shape[1]))
    return product


@pytest.fixture
def product_formula() -> Iterator[None]:
    modelstat.formula("modelstat_tests::product")(lambda op: op.inputs[0].elements * op.inputs[1].shape[1])
    yield
    unregister("modelstat_tests::product")


def test_a_custom_op_with_a_formula(product: Any, product_formula: None) -> None:
    counted = count(Call(lambda m, x: product(x, m.w), w=parameter(4, 3)), X)
    assert counted[:3] == (12, 2 * 4 * 3, "fake")
    assert costs(counted.trace)[0].flops == 2 * counted.macs


def test_a_custom_op_without_a_formula_is_listed_with_its_bytes(product: Any) -> None:
    trace = capture(Call(lambda m, x: product(x, m.w) + 1, w=parameter(4, 3)), (X,))
    coverage = modelstat.Analysis.from_trace(trace).document.coverage
    moved, added = (2 * 4 + 4 * 3 + 2 * 3) * 4, 2 * 2 * 3 * 4
    assert [(op.name, op.count, op.bytes) for op in coverage.unknown_ops] == [("modelstat_tests::product", 1, moved)]
    assert coverage.unknown_byte_share == moved / (moved + added)


def test_a_custom_op_without_a_shape_rule_runs_for_real() -> None:
    @torch.library.custom_op("modelstat_tests::shapeless", mutates_args=())
    def shapeless(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    trace = capture(Call(lambda m, x: m.fc(shapeless(x)), fc=nn.Linear(4, 4)), (X,))
    assert trace.run == "real"
    assert sum(cost.macs for cost in costs(trace)) == 32


def test_a_custom_op_made_of_known_ones() -> None:
    library = torch.library.Library("modelstat_tests_composite", "DEF")
    library.define("product(Tensor x, Tensor w) -> Tensor")
    library.impl("product", lambda x, w: x @ w, "CompositeImplicitAutograd")
    assert count(Call(lambda m, x: torch.ops.modelstat_tests_composite.product(x, m.w), w=parameter(4, 4)), X).macs == 32
    library._destroy()


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        x, w = ctx.saved_tensors
        return grads[0] @ w.T, x.T @ grads[0]


def test_an_autograd_function() -> None:
    assert count(Call(lambda m, x: Product.apply(x, m.w), w=parameter(4, 4)), X)[:2] == (16, 32)


def multihead(**options: Any) -> nn.Module:
    return Call(lambda m, q, k, v: m.attention(q, k, v)[0], attention=nn.MultiheadAttention(8, 2, batch_first=True, **options))


B, L, S, D = 2, 5, 7, 8
"""Batch, queries, keys and width of the attention below."""
QUERY = zeros(B, L, D)
ATTENTION: list[tuple[str, Callable[[], nn.Module], tuple[torch.Tensor, ...], int, int]] = [
    # in-projections and out-projection of every token, then 2 x L x S x D; weights of (3 D, D) and (D, D) with biases
    ("plain", multihead, (QUERY, QUERY, QUERY), 4 * D * D + 4 * D, B * L * 4 * D * D + 2 * B * L * L * D),
    (
        "kdim, vdim", lambda: multihead(kdim=6, vdim=10), (QUERY, zeros(B, S, 6), zeros(B, S, 10)), D * (D + 6 + 10 + D) + 4 * D,
        B * (2 * L * D * D + S * 6 * D + S * 10 * D) + 2 * B * L * S * D,
    ),
    (
        "bias_kv, zero_attn: two more keys", lambda: multihead(add_bias_kv=True, add_zero_attn=True), (QUERY, QUERY, QUERY),
        4 * D * D + 4 * D + 2 * D, B * L * 4 * D * D + 2 * B * L * (L + 2) * D,
    ),
    (
        "grouped queries", lambda: Call(lambda m, q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True)),
        (zeros(1, 8, 5, 4), zeros(1, 2, 7, 4), zeros(1, 2, 7, 4)), 0, 2 * 8 * 5 * 7 * 4,
    ),
    (
        "values of another width", lambda: Call(lambda m, q, k, v: F.scaled_dot_product_attention(q, k, v)),
        (zeros(1, 2, 5, 4), zeros(1, 2, 7, 4), zeros(1, 2, 7, 6)), 0, 2 * 5 * 7 * (4 + 6),
    ),
    (
        "encoder layer", lambda: nn.TransformerEncoderLayer(D, 2, 16, batch_first=True), (QUERY,),
        4 * D * D + 4 * D + 2 * 16 * D + 16 + D + 4 * D, B * L * (4 * D * D + 2 * 16 * D) + 2 * B * L * L * D,
    ),
    (
        "decoder layer: attention to itself and to a memory", lambda: nn.TransformerDecoderLayer(D, 2, 16, batch_first=True),
        (QUERY, zeros(B, S, D)), 2 * (4 * D * D + 4 * D) + 2 * 16 * D + 16 + D + 6 * D,
        B * L * (4 * D * D + 2 * D * D + 2 * 16 * D) + B * S * 2 * D * D + 2 * B * L * (L + S) * D,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("build", "inputs", "params", "macs"), [row[1:] for row in ATTENTION], ids=[row[0] for row in ATTENTION])
@pytest.mark.parametrize("training", [False, True])
def test_attention(build: Callable[[], nn.Module], inputs: tuple[torch.Tensor, ...], params: int, macs: int, training: bool) -> None:
    model = build().train(training)
    for frozen in (False, True):  # without gradients, eval takes torch's fast path
        assert count(model.requires_grad_(not frozen), *inputs)[:3] == (params, macs, "fake")


def test_an_encoder_with_a_padding_mask() -> None:
    """The fast path would make a nested tensor of the tokens that are not padded; what a kernel can skip is counted."""
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(D, 2, 16, batch_first=True), 2).eval()
    mask = torch.tensor([[False] * L, [False] * 3 + [True] * (L - 3)])
    assert count(encoder, QUERY, None, mask).macs == 2 * (B * L * (4 * D * D + 2 * 16 * D) + 2 * B * L * L * D)


VISION: list[tuple[str, Any, tuple[torch.Tensor, ...], int]] = [
    ("fft", Call(lambda m, x: torch.fft.irfft2(torch.fft.rfft2(x))), (zeros(1, 1, 8, 8),), 0),
    ("stft", Call(lambda m, x: torch.stft(x, 16, window=torch.hann_window(16), return_complex=True).abs()), (zeros(1, 64),), 0),
    # Every output pixel is a product of (x, y, 1) with a matrix of 2 x 3.
    (
        "affine_grid",
        Call(lambda m, x: F.grid_sample(x, F.affine_grid(m.t, [1, 3, 8, 8], False), align_corners=False), t=parameter(1, 2, 3)),
        (zeros(1, 3, 8, 8),), 64 * 2 * 3,
    ),
    ("embedding bag", nn.EmbeddingBag(10, 4), (torch.zeros(3, 5, dtype=torch.long),), 0),
    ("pixel shuffle", nn.PixelShuffle(2), (zeros(1, 4, 3, 3),), 0),
    ("unfold and fold", Call(lambda m, x: F.fold(F.unfold(x, 3, padding=1), (6, 6), 3, padding=1)), (zeros(1, 4, 6, 6),), 0),
]  # fmt: skip


@pytest.mark.parametrize(("model", "inputs", "macs"), [row[1:] for row in VISION], ids=[row[0] for row in VISION])
def test_ops_that_are_no_layers(model: nn.Module, inputs: tuple[torch.Tensor, ...], macs: int) -> None:
    assert count(model, *inputs).macs == macs


def test_torchvision_ops() -> None:
    ops = pytest.importorskip("torchvision.ops", reason="torchvision has the ops")
    boxes = torch.tensor([[0.0, 0, 4, 4], [0, 0, 4, 4.1], [4, 4, 8, 8]])
    scores = torch.tensor([0.5, 0.6, 0.7])
    assert count(Call(lambda m, x, b: ops.roi_align(x, [b], output_size=3)), zeros(1, 3, 8, 8), boxes).macs == 0
    kept = count(Call(lambda m, b, s: m.fc(b[ops.nms(b, s, 0.5)]), fc=nn.Linear(4, 2)), boxes, scores)
    assert kept.macs == 2 * 4 * 2  # the second box covers the first
    deformed = Call(
        lambda m, x: m.dcn(x, m.offset(x)[:, :18], m.offset(x)[:, 18:].sigmoid()), dcn=ops.DeformConv2d(4, 6, 3, padding=1),
        offset=nn.Conv2d(4, 27, 3, padding=1),
    )  # fmt: skip
    assert count(deformed, zeros(1, 4, 5, 5)).macs == 25 * (6 * 36 + 2 * 27 * 36)
