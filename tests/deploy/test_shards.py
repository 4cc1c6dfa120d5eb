"""Tensor parallelism in numbers: shares and exchanges of published models against what Megatron-LM's plan gives by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
import torch
import torchvision
from torch import nn
from torch.nn import functional

from modelstat.cost.registry import costs as costs_of
from modelstat.deploy import contraction
from modelstat.deploy.collectives import Collective
from modelstat.deploy.plan import Plan, Rule
from modelstat.deploy.quantized import planned
from modelstat.deploy.shards import Shards, shards
from modelstat.errors import UsageError
from modelstat.records import Op, TensorSpec, Trace
from modelstat.trace.capture import capture
from tests.deploy.test_parallel import HIDDEN, ROWS, WIDTH, block
from tests.predict.sample import Writer


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_two_products_are_one_all_reduce(gpus: int) -> None:
    trace = block()
    costs = costs_of(trace)
    found = shards(trace, costs, gpus)
    norm, first, relu, second, add = found.costs
    # Columns of the first weight, rows of the second: an N-th of both, and of what is between them.
    assert (first.macs, second.macs) == (costs[1].macs // gpus, costs[3].macs // gpus)
    assert first.read == 4 * (ROWS * WIDTH + WIDTH * HIDDEN // gpus)
    assert first.write == 4 * ROWS * HIDDEN // gpus
    assert relu.read == relu.write == 4 * ROWS * HIDDEN // gpus
    assert second.read == 4 * (ROWS * HIDDEN // gpus + HIDDEN * WIDTH // gpus)
    assert second.write == 4 * ROWS * WIDTH
    # The norm and the sum see whole tensors.
    assert (norm, add) == (costs[0], costs[4])
    assert found.collectives == (Collective("all-reduce", 4 * ROWS * WIDTH, gpus, 3),)
    assert found.split_share == 1.0
    weights = sum(one.bytes for one in found.trace.parameters)
    assert weights == 4 * (2 * WIDTH * HIDDEN // gpus + WIDTH)


def alone(features: int, *, normed: bool = False) -> tuple[Trace, Shards]:
    """One product, and a norm over its result: on four GPUs."""
    net = Writer(ROWS, WIDTH)
    made = net.linear(net.input, features)
    if normed:
        made = net.op("native_layer_norm", made, names=("input",), normalized_shape=[features])
    trace, costs = net.trace(made)
    return trace, shards(trace, costs, 4)


LARGE = contraction.SMALL // WIDTH
"""Columns from which on a weight is split although its result is gathered at once."""


def test_a_norm_over_split_features_gathers_them() -> None:
    trace, found = alone(LARGE, normed=True)
    assert found.collectives == (Collective("all-gather", 4 * ROWS * LARGE, 4, 1),)
    assert found.costs[0].macs == ROWS * WIDTH * LARGE // 4
    assert found.costs[1] == costs_of(trace)[1]


def test_what_the_model_returns_is_gathered() -> None:
    assert alone(LARGE)[1].collectives == (Collective("all-gather", 4 * ROWS * LARGE, 4, 0),)


@pytest.mark.parametrize("normed", [True, False])
def test_small_weights_are_not_split_to_be_gathered(normed: bool) -> None:
    trace, found = alone(LARGE - 4, normed=normed)
    assert (found.costs, found.collectives, found.split_share) == (costs_of(trace), (), 0.0)


def test_columns_that_do_not_divide_stay_whole() -> None:
    trace, found = alone(LARGE + 2)
    assert (found.costs, found.collectives, found.split_share) == (costs_of(trace), (), 0.0)


def attention(heads: int, shared: int | None = None) -> Trace:
    """Attention whose query comes from a product, (2, heads, 8, 16), on as many heads of keys and values or on ``shared``."""
    net = Writer(2 * 8, WIDTH)
    made = net.specs[net.linear(net.input, heads * 16)]
    query = TensorSpec((2, heads, 8, 16), "float32", (8 * heads * 16, 16, heads * 16, 1), made.value)
    result = net.value("activation", 2, heads, 8, 16)
    keys = query if shared is None else net.specs[net.value("activation", 2, shared, 8, 16)]
    net.ops.append(Op("modelstat::attention", "default", (query, keys, keys), ("query", "key", "value"), (net.specs[result],)))
    return net.trace(result)[0]


def test_attention_is_split_by_heads() -> None:
    trace = attention(12)
    costs = costs_of(trace)
    assert shards(trace, costs, 4).costs[-1].macs == costs[-1].macs // 4
    with pytest.raises(UsageError, match="--tensor-parallel 8: Net has 12 heads, which 8 does not divide: choose from 2, 3, 4, 6, 12"):
        shards(trace, costs, 8)
    with pytest.raises(UsageError, match="--tensor-parallel 5: Net has 12 heads"):
        shards(trace, costs, 5)  # which does not divide the 192 columns before it either
    single = attention(1)
    assert shards(single, costs_of(single), 4).costs[-1] == costs_of(single)[-1]
    grouped = attention(12, 3)
    assert shards(grouped, costs_of(grouped), 6).costs[-1].macs == costs_of(grouped)[-1].macs // 6, "two GPUs share a head of keys"
    with pytest.raises(UsageError, match="Net has 3 heads of keys and values, which 4 does not divide: choose from 3"):
        shards(grouped, costs_of(grouped), 4)


BATCH, LENGTH, FEATURES, HEADS = 2, 48, 64, 8
ROWS_OF = BATCH * LENGTH * FEATURES * 4
"""Bytes of the residual stream (fp32)."""


class FusedLayer(nn.Module):
    """A pre-norm layer with a fused projection: GPT-2's, or with ``gated`` the one of Phi-4, whose gate and up are one product."""

    def __init__(self, features: int = FEATURES, *, gated: bool = False, shared: int = HEADS) -> None:
        super().__init__()
        self.gated, self.shared, self.size = gated, shared, features // HEADS
        self.first, self.second = nn.LayerNorm(features), nn.LayerNorm(features)
        self.qkv, self.out = nn.Linear(features, (HEADS + 2 * shared) * self.size), nn.Linear(features, features)
        self.up, self.down = nn.Linear(features, 8 * features if gated else 4 * features), nn.Linear(4 * features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        width, narrow = HEADS * self.size, self.shared * self.size
        parts = self.qkv(self.first(x)).split((width, narrow, narrow), -1)
        q, k, v = (part.unflatten(-1, (-1, self.size)).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        wide = self.up(self.second(x))
        if self.gated:
            gate, wide = wide.chunk(2, -1)
            return x + self.down(functional.silu(gate) * wide)
        return x + self.down(functional.gelu(wide))


def stack(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(*layers).eval()


def encoder() -> nn.Module:
    return nn.TransformerEncoderLayer(FEATURES, HEADS, 4 * FEATURES, batch_first=True)


@pytest.mark.parametrize("gpus", [2, 4])
@pytest.mark.parametrize(
    ("build", "length"),
    [
        (lambda: stack(FusedLayer(), FusedLayer()), LENGTH),
        (lambda: stack(FusedLayer(gated=True), FusedLayer(gated=True)), LENGTH),
        (lambda: stack(FusedLayer(shared=HEADS // 2, gated=True), FusedLayer(shared=HEADS // 2)), LENGTH),
        (lambda: stack(FusedLayer(), FusedLayer(gated=True)), FEATURES),
        (lambda: stack(encoder(), encoder()), LENGTH),
        (lambda: stack(encoder(), encoder()), FEATURES),
    ],
    ids=["gpt-2", "gated", "grouped-queries", "length-is-width", "encoder-layer", "encoder-layer-length-is-width"],
)
def test_two_all_reduces_a_layer(build: Callable[[], nn.Module], length: int, gpus: int) -> None:
    """Megatron-LM: behind attention and behind the net, of the residual stream, and nothing else."""
    trace = capture(build(), (torch.empty(BATCH, length, FEATURES, device="meta"),))
    costs = costs_of(trace)
    found = shards(trace, costs, gpus)
    stream = BATCH * length * FEATURES * 4
    assert [(one.kind, one.bytes, one.gpus) for one in found.collectives] == [("all-reduce", stream, gpus)] * 4
    assert found.split_share == 1.0
    shared = any("shared" in one.name for one in trace.parameters)
    for cost, mine in zip(costs, found.costs, strict=True):
        assert mine.macs * gpus == cost.macs or (mine.macs * gpus > cost.macs and not shared)


def test_shares_of_a_fused_layer() -> None:
    """Bytes and operations of each op on one of four GPUs."""
    trace = capture(stack(FusedLayer()), (torch.empty(BATCH, LENGTH, FEATURES, device="meta"),))
    found = shards(trace, costs_of(trace), 4)
    rows, part = BATCH * LENGTH, FEATURES // 4
    products = [cost for cost in found.costs if cost.family == "matmul"]
    assert [cost.macs for cost in products] == [rows * FEATURES * 3 * part, rows * part * FEATURES, rows * FEATURES * 4 * part,
                                                rows * 4 * part * FEATURES]  # fmt: skip
    # the rows, a fourth of the weight and of the bias; where rows of the weight are split, the whole bias
    assert [cost.read for cost in products] == [
        4 * (rows * FEATURES + FEATURES * 3 * part + 3 * part), 4 * (rows * part + part * FEATURES + FEATURES),
        4 * (rows * FEATURES + FEATURES * 4 * part + 4 * part), 4 * (rows * 4 * part + 4 * part * FEATURES + FEATURES),
    ]  # fmt: skip
    assert [cost.write for cost in products] == [4 * rows * size for size in (3 * part, FEATURES, 4 * part, FEATURES)]
    (attended,) = (cost for cost in found.costs if cost.family == "attention")
    assert attended.macs == BATCH * 2 * LENGTH * LENGTH * 2 * (FEATURES // HEADS), "two of eight heads, two contractions"
    weights = FEATURES * (3 + 1 + 4 + 4) * part + (3 + 4) * part  # split; biases of column-split products with them
    assert sum(one.bytes for one in found.trace.parameters) == 4 * (weights + 2 * FEATURES + 4 * FEATURES), "two biases, two norms whole"


def test_a_vision_transformer() -> None:
    """Two all-reduces of 197 tokens a layer; the patch embedding and the head of a thousand classes are whole."""
    trace = capture(torchvision.models.vit_b_16().eval(), (torch.empty(1, 3, 224, 224, device="meta"),))
    found = shards(trace, costs_of(trace), 4)
    assert Counter((one.kind, one.bytes) for one in found.collectives) == {("all-reduce", 197 * 768 * 4): 2 * 12}


def test_a_residual_network() -> None:
    """resnet50 by hand: a convolution of a whole image leaves a split one, one of a split image all-reduces what it leaves.

    A residual that is split makes a split sum.
    """
    expected: Counter[int] = Counter()

    def convolution(split: bool, channels: int, side: int) -> bool:
        if split:
            expected[4 * channels * side * side] += 1
        return not split

    split, side = convolution(False, 64, 112), 56
    for number, (width, depth) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for layer in range(depth):
            before, shrinks = side, number > 0 and layer == 0
            side = side // 2 if shrinks else side
            inner = convolution(split, width, before)
            inner = convolution(inner, width, side)
            inner = convolution(inner, 4 * width, side)
            kept = convolution(split, 4 * width, side) if layer == 0 else split
            split = inner or kept
    if split:
        expected[4 * 1000] += 1
    trace = capture(torchvision.models.resnet50().eval(), (torch.empty(1, 3, 224, 224, device="meta"),))
    found = shards(trace, costs_of(trace), 4)
    assert {one.kind for one in found.collectives} == {"all-reduce"}
    assert Counter(one.bytes for one in found.collectives) == expected


class Recast(nn.Module):
    """What some views do to a split result, before something needs all of it or not."""

    def __init__(self, view: Callable[[torch.Tensor], torch.Tensor], features: int = 24) -> None:
        super().__init__()
        self.wide, self.view = nn.Linear(8, features), view

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.view(self.wide(x))


@pytest.mark.parametrize(
    ("view", "exchanges"),
    [
        (lambda y: y.sum(-1), [("all-reduce", 2 * 3 * 4)]),  # over the split features: a part of each sum
        (lambda y: y.softmax(1).sum(-1), [("all-reduce", 2 * 3 * 4)]),  # over the length: each feature by itself
        (lambda y: y.softmax(-1), [("all-gather", 2 * 3 * 24 * 4)]),  # over the split features
        (lambda y: y.unflatten(-1, (4, 6)).softmax(-1).sum((2, 3)), [("all-reduce", 2 * 3 * 4)]),  # inside of each head
        (lambda y: y.unflatten(-1, (4, 6)).softmax(2).sum((2, 3)), [("all-gather", 2 * 3 * 24 * 4)]),  # over the heads
        (lambda y: y.reshape(-1).relu().sum(), [("all-reduce", 4)]),  # flat, each GPU with its elements
        (lambda y: y.unflatten(-1, (3, 8)).relu().sum((2, 3)), [("all-reduce", 2 * 3 * 4)]),  # thirds, each shared out
        (lambda y: y[..., :12].relu() + y[..., 12:].sum(1, keepdim=True), [("all-gather", 2 * 3 * 12 * 4)]),  # halves
        (lambda y: y[..., 5].relu(), [("all-gather", 2 * 3 * 24 * 4)]),  # one feature
        (lambda y: y.roll(1, 1).sum(-1), [("all-reduce", 2 * 3 * 4)]),  # along the length
        (lambda y: y.roll(1, 2).sum(-1), [("all-gather", 2 * 3 * 24 * 4)]),  # along the features
        (lambda y: functional.pad(y, (1, -1)).sum(-1), [("all-gather", 2 * 3 * 24 * 4)]),
        (lambda y: y.sort(1)[0].sum(-1), [("all-reduce", 2 * 3 * 4)]),
        (lambda y: y.topk(2, -1)[0], [("all-gather", 2 * 3 * 24 * 4)]),
        (lambda y: y.argmax(-1), [("all-gather", 2 * 3 * 24 * 4)]),
        (lambda y: y.transpose(0, 1).contiguous().sum((0, 2)), [("all-reduce", 2 * 4)]),
        (lambda y: torch.stack((y, y.relu()), 1).sum(-1), [("all-reduce", 2 * 2 * 3 * 4)]),
        (lambda y: y @ y.transpose(1, 2), [("all-reduce", 2 * 3 * 3 * 4)]),  # both split where they are summed
        (lambda y: (y.transpose(1, 2) @ y).sum((1, 2)), [("all-gather", 2 * 3 * 24 * 4), ("all-reduce", 2 * 4)]),  # one of both is whole
    ],
)  # fmt: skip
def test_views_and_reductions(
    view: Callable[[torch.Tensor], torch.Tensor], exchanges: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """(2, 3, 24) whose features are on four GPUs, fp32."""
    monkeypatch.setattr(contraction, "SMALL", 0)
    trace = capture(Recast(view), (torch.empty(2, 3, 8, device="meta"),))
    found = shards(trace, costs_of(trace), 4)
    assert [(one.kind, one.bytes) for one in found.collectives] == exchanges


def test_a_sum_waits_while_what_follows_is_linear() -> None:
    """Two nets side by side: their results are added, and then added up, once."""

    class Beside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.nets = nn.ModuleList(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)) for _ in range(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + (self.nets[0](x) + 0.5 * self.nets[1](x))

    trace = capture(Beside(), (torch.empty(5, 64, device="meta"),))
    found = shards(trace, costs_of(trace), 2)
    assert [(one.kind, one.bytes) for one in found.collectives] == [("all-reduce", 5 * 64 * 4)]


def test_casts_of_weights_are_split_too() -> None:
    """Under autocast each forward casts the weights: a GPU casts its part."""
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    trace = capture(model, (torch.empty(5, 64, device="meta"),), precision_name="amp-fp16")
    costs = costs_of(trace)
    found = shards(trace, costs, 2)
    assert [one.bytes for one in found.collectives] == [5 * 64 * 2]
    casts = [(cost, mine) for op, cost, mine in zip(trace.ops, costs, found.costs, strict=True) if op.inputs[0].elements == 256 * 64]
    assert casts
    assert all(mine.read * 2 == cost.read and mine.write * 2 == cost.write for cost, mine in casts if cost.family == "copy")
    assert found.split_share == 1.0


@pytest.mark.parametrize(
    ("weights", "group", "scales"),
    [
        ("int8", None, (2 * HIDDEN // 4, 2 * WIDTH)),  # one an output: a fourth of the columns' outputs; all outputs where rows are split
        ("int4", 64, (4 * WIDTH * HIDDEN // 64 // 4, 4 * WIDTH * HIDDEN // 64 // 4)),  # one a group: a fourth of the groups
    ],
)
def test_scales_of_quantised_weights_are_split_with_their_groups(weights: str, group: int | None, scales: tuple[int, int]) -> None:
    trace = planned(block(), Plan(Rule(weights, group=group)))
    found = shards(trace, costs_of(trace), 4)
    first, second = (cost for cost in found.costs if cost.macs)
    part = WIDTH * HIDDEN // 4 // (1 if weights == "int8" else 2)
    assert first.read == 4 * ROWS * WIDTH + part + scales[0]
    assert second.read == 4 * ROWS * HIDDEN // 4 + part + scales[1]
