"""Each rule: the shape of the output stays, params and MACs are a product that can be recomputed, and every weight trains."""

from __future__ import annotations

import copy
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

import modelstat
from modelstat.errors import SwapError


class Case(NamedTuple):
    """A rule, a small model and its input, and the params and MACs after the swap."""

    name: str
    rule: str
    model: nn.Module
    shape: tuple[int, ...]
    params: int
    macs: int


def bare(*layers: nn.Module) -> nn.Sequential:
    return nn.Sequential(*layers)


HW = 6 * 6
CASES = [
    # primary: 8 of 16 channels from 3x3x4, cheap: 8 depthwise 3x3; two scales and shifts of 8 channels each
    Case("ghost", "conv=ghost", bare(nn.Conv2d(4, 16, 3, padding=1)), (2, 4, 6, 6), 8 * 36 + 8 * 9 + 4 * 8, 2 * HW * (8 * 36 + 8 * 9)),
    Case("ghost of a conv with its norm and activation", "conv=ghost",
         bare(nn.Conv2d(4, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.SiLU()), (2, 4, 6, 6),
         8 * 36 + 8 * 9 + 4 * 8, 2 * HW * (8 * 36 + 8 * 9)),
    # ceil(15 / 4) = 4 primary channels, 4 x 3 cheap ones of 5x5: 16, cut to 15
    Case("ghost that is cut", "conv=ghost(ratio=4,kernel=5)", bare(nn.Conv2d(16, 15, 3, padding=1)), (1, 16, 6, 6),
         4 * 144 + 12 * 25 + 2 * 4 + 2 * 12, HW * (4 * 144 + 12 * 25)),
    Case("ghost alone", "conv=ghost(norm=none,act=none)", bare(nn.Conv2d(4, 16, 3, padding=1), nn.BatchNorm2d(16)), (2, 4, 6, 6),
         8 * 36 + 8 + 8 * 9 + 8 + 2 * 16, 2 * HW * (8 * 36 + 8 * 9)),
    Case("ghost of a group norm", "conv=ghost", bare(nn.Conv2d(4, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.GELU()), (2, 4, 6, 6),
         8 * 36 + 8 * 9 + 4 * 8, 2 * HW * (8 * 36 + 8 * 9)),
    Case("ghost of groups", "conv=ghost", bare(nn.Conv2d(8, 16, 3, padding=1, groups=2)), (1, 8, 6, 6),
         8 * 36 + 8 * 9 + 4 * 8, HW * (8 * 36 + 8 * 9)),
    Case("ghost of a strided 1-d conv", "conv=ghost", bare(nn.Conv1d(4, 16, 5, stride=2, padding=2)), (2, 4, 11),
         8 * 20 + 8 * 3 + 4 * 8, 2 * 6 * (8 * 20 + 8 * 3)),
    Case("ghost of a 3-d conv", "conv=ghost", bare(nn.Conv3d(4, 16, 3, padding=1)), (2, 4, 3, 3, 3),
         8 * 108 + 8 * 27 + 4 * 8, 2 * 27 * (8 * 108 + 8 * 27)),
    Case("separable", "conv=separable", bare(nn.Conv2d(4, 16, 3, padding=1)), (2, 4, 6, 6), 4 * 9 + 4 * 16 + 16, 2 * HW * (4 * 9 + 4 * 16)),
    Case("separable as MobileNet", "conv=separable(norm=batch,act=relu6)", bare(nn.Conv2d(4, 16, 3, padding=1, bias=False)), (2, 4, 6, 6),
         4 * 9 + 2 * 4 + 4 * 16, 2 * HW * (4 * 9 + 4 * 16)),
    Case("separable of a dilated, strided conv", "conv=separable", bare(nn.Conv2d(4, 16, 3, stride=2, padding=2, dilation=2)), (1, 4, 6, 6),
         4 * 9 + 4 * 16 + 16, 9 * (4 * 9 + 4 * 16)),
    Case("grouped", "conv=grouped", bare(nn.Conv2d(8, 16, 3, padding=1)), (2, 8, 6, 6), 16 * 2 * 9 + 16, 2 * HW * 16 * 2 * 9),
    Case("grouped by two", "conv=grouped(groups=2)", bare(nn.Conv2d(8, 16, 3, padding=1)), (2, 8, 6, 6), 16 * 4 * 9 + 16,
         2 * HW * 16 * 4 * 9),
    # min(8 x 9, 16) / 4 = 4
    Case("low rank conv", "conv=lowrank", bare(nn.Conv2d(8, 16, 3, padding=1)), (2, 8, 6, 6), 4 * 72 + 16 * 4 + 16,
         2 * HW * (4 * 72 + 16 * 4)),
    Case("low rank conv of a given rank", "conv=lowrank(rank=2)", bare(nn.Conv2d(8, 16, 3, stride=2)), (1, 8, 7, 7), 2 * 72 + 16 * 2 + 16,
         9 * (2 * 72 + 16 * 2)),
    Case("low rank linear", "linear=lowrank", bare(nn.Linear(32, 20)), (3, 32), 5 * (32 + 20) + 20, 3 * 5 * (32 + 20)),
    Case("low rank linear of a given rank", "linear=lowrank(rank=2)", bare(nn.Linear(32, 20, bias=False)), (3, 7, 32), 2 * 52, 21 * 2 * 52),
    Case("activation", "act=hardswish", bare(nn.Conv2d(4, 8, 1), nn.ReLU(inplace=True)), (2, 4, 6, 6), 40, 2 * HW * 32),
    Case("activation with a parameter", "act=leaky_relu(negative_slope=0.2)", bare(nn.Linear(4, 8), nn.GELU()), (2, 4), 40, 64),
    Case("activation that has weights", "act=prelu(num_parameters=8)", bare(nn.Linear(4, 8), nn.GELU()), (2, 4), 48, 64),
    # 2 x 8 scales and shifts become 8 biases
    Case("folded norm", "norm=fold", bare(nn.Conv2d(4, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU()).eval(), (2, 4, 8, 8),
         8 * 36 + 8, 2 * HW * 8 * 36),
    Case("folded into a linear", "norm=fold", bare(nn.Linear(4, 8), nn.BatchNorm1d(8)).eval(), (2, 4), 40, 64),
    Case("folded into a transposed conv", "norm=fold", bare(nn.ConvTranspose2d(4, 8, 2, stride=2), nn.BatchNorm2d(8)).eval(), (1, 4, 3, 3),
         4 * 8 * 4 + 8, 9 * 4 * 8 * 4),
    Case("root mean square", "norm=rms", bare(nn.Linear(4, 8), nn.LayerNorm(8)), (2, 4), 40 + 8, 64),
    Case("half precision", "precision=bf16", bare(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), (3, 4), 40 + 18, 3 * (32 + 16)),
    Case("half precision of a conv", "precision=fp16", bare(nn.Conv2d(4, 8, 3, padding=1)), (2, 4, 6, 6), 8 * 36 + 8, 2 * HW * 8 * 36),
]  # fmt: skip


def swapped(case: Case) -> nn.Module:
    return modelstat.swap(copy.deepcopy(case.model), case.rule)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
class TestRules:
    def test_params_and_macs_are_the_products(self, case: Case) -> None:
        model = swapped(case).eval()
        analysis = modelstat.analyze(model, torch.zeros(case.shape))
        assert (analysis.totals.params, analysis.totals.macs) == (case.params, case.macs)
        assert sum(parameter.numel() for parameter in model.parameters()) == case.params

    def test_the_output_keeps_its_shape_and_type(self, case: Case) -> None:
        image = torch.rand(case.shape)
        before, after = case.model(image), swapped(case)(image)
        assert (before.shape, before.dtype) == (after.shape, after.dtype)

    def test_every_weight_gets_a_gradient(self, case: Case) -> None:
        model = swapped(case)
        model(torch.rand(case.shape)).float().square().sum().backward()
        assert all(parameter.grad is not None and torch.isfinite(parameter.grad).all() for parameter in model.parameters())

    def test_the_model_itself_stays_as_it_was(self, case: Case) -> None:
        state = {name: tensor.clone() for name, tensor in case.model.state_dict().items()}
        types = [type(module) for module in case.model.modules()]
        new = modelstat.swap(case.model, case.rule)
        assert [type(module) for module in case.model.modules()] == types
        assert all(torch.equal(tensor, state[name]) for name, tensor in case.model.state_dict().items())
        assert not {id(tensor) for tensor in case.model.parameters()} & {id(tensor) for tensor in new.parameters()}

    def test_nothing_is_allocated_where_nothing_was(self, case: Case) -> None:
        model = modelstat.swap(copy.deepcopy(case.model).to("meta"), case.rule)
        large = [tensor for name, tensor in model.named_parameters() if not name.endswith("1.weight") or tensor.dim() > 1]
        assert all(tensor.is_meta for tensor in large if tensor.dim() > 1)
        assert model(torch.empty(case.shape, device="meta")).shape == case.model(torch.rand(case.shape)).shape

    def test_it_takes_the_mode_of_what_it_replaces(self, case: Case) -> None:
        for training in (True, False):
            model = modelstat.swap(copy.deepcopy(case.model).train(training), case.rule)
            assert {module.training for module in model.modules()} == {training}


def test_a_fold_changes_no_output() -> None:
    torch.manual_seed(0)
    conv, norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
    for tensor in (norm.running_mean, norm.running_var, norm.weight.data, norm.bias.data):
        assert tensor is not None
        tensor.uniform_(0.5, 2.0)
    model, image = nn.Sequential(conv, norm, nn.ReLU()).eval(), torch.rand(2, 3, 9, 9)
    folded = modelstat.swap(model, "norm=fold")
    assert isinstance(folded.get_submodule("1"), nn.Identity)
    torch.testing.assert_close(folded(image), model(image))


@pytest.mark.parametrize(
    ("model", "shape", "reason"),
    [
        # (N, L, C): the norm goes over axis 1, which is no axis of the layer's outputs.
        (nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16)), (2, 16, 8), "another axis than the features"),
        (nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(5)), (2, 5, 8), "another axis than the features"),
        (nn.Sequential(nn.ConvTranspose2d(8, 8, 2, groups=2), nn.BatchNorm2d(8)), (1, 8, 4, 4), "in groups is not folded"),
    ],
)
def test_a_fold_that_would_change_outputs_is_skipped(model: nn.Module, shape: tuple[int, ...], reason: str) -> None:
    with pytest.raises(SwapError, match=reason):
        modelstat.swap(model.eval(), "norm=fold", inputs=(torch.rand(shape),))


@pytest.mark.parametrize(
    ("rule", "layer", "shape"),
    [("conv=lowrank(rank=3)", nn.Conv2d(4, 12, 3), (2, 4, 6, 6)), ("linear=lowrank(rank=3)", nn.Linear(12, 20), (2, 12))],
)
def test_a_weight_of_that_rank_is_kept(rule: str, layer: nn.Module, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    weight = layer.weight
    assert isinstance(weight, nn.Parameter)
    rows, columns = weight.shape[0], weight[0].numel()
    weight.data = (torch.rand(rows, 3) @ torch.rand(3, columns)).reshape(weight.shape)
    model, example = nn.Sequential(layer), torch.rand(shape)
    torch.testing.assert_close(modelstat.swap(model, rule)(example), model(example))


class Attending(nn.Module):
    """Self-attention; ``weights``: its weights are an output of the model."""

    def __init__(self, weights: bool = False) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)
        self.weights = weights

    def forward(self, tokens: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        mixed, weights = self.attention(tokens, tokens, tokens)
        return (mixed, weights) if self.weights else mixed


def test_attention_is_fused() -> None:
    model, tokens = Attending(), torch.rand(2, 5, 16)
    new = modelstat.swap(model, "attention=fused", inputs=(tokens,))
    torch.testing.assert_close(new(tokens), model(tokens))
    before, after = (modelstat.analyze(each, (tokens,)) for each in (model, new))
    # three projections and one after them, scores and values: 4 x 16 x 16 per token, 2 x 5 x 16 per token
    assert before.totals.macs == after.totals.macs == 2 * 5 * (4 * 256 + 2 * 5 * 16)
    assert before.totals.params == after.totals.params == 4 * (256 + 16)
    assert "modelstat::attention" in {op.name for op in after.trace.ops}
    assert "modelstat::attention" not in {op.name for op in before.trace.ops}
    new(tokens).sum().backward()
    assert all(parameter.grad is not None for parameter in new.parameters())


def test_attention_whose_weights_are_read_cannot_be_fused() -> None:
    with pytest.raises(SwapError, match="something reads its attention weights"):
        modelstat.swap(Attending(weights=True), "attention=fused", inputs=(torch.rand(2, 5, 16),))


def test_attention_of_timm_and_transformers() -> None:
    timm = pytest.importorskip("timm")
    model = timm.create_model("vit_tiny_patch16_224", img_size=32, depth=2).eval()
    for block in model.blocks:
        block.attn.fused_attn = False
    image = torch.rand(1, 3, 32, 32)
    new = modelstat.swap(model, "attention=fused", inputs=(image,))
    assert [block.attn.fused_attn for block in model.blocks] == [False, False]
    assert [block.attn.fused_attn for block in new.blocks] == [True, True]  # type: ignore[union-attr]
    torch.testing.assert_close(new(image), model(image), atol=1e-4, rtol=1e-4)
    with pytest.raises(SwapError, match=r"blocks\.0\.attn and 1 more: it is fused already"):
        modelstat.swap(new, "attention=fused", inputs=(image,))


SKIPPED = [
    ("conv=ghost", nn.Conv2d(8, 8, 3, groups=8), "it is depthwise already"),
    ("conv=ghost", nn.Conv2d(4, 8, 1), r"it would grow, from 32 weights to 52"),  # 4 x 4 + 4 x 9
    ("conv=ghost", nn.Conv2d(12, 6, 3, groups=2), "its 2 groups do not divide 3 primary channels"),
    ("conv=separable", nn.Conv2d(8, 8, 3, groups=8), "it is depthwise already"),
    ("conv=separable", nn.Conv2d(8, 8, 1), "a 1x1 kernel is pointwise already"),
    ("conv=separable", nn.Conv2d(8, 1, 3), r"it would grow, from 72 weights to 80"),  # 8 x 9 + 8 x 1
    ("conv=grouped", nn.Conv2d(6, 8, 3), "4 groups do not divide 6 and 8 channels"),
    ("conv=grouped", nn.Conv2d(8, 8, 3, groups=4), "it has 4 groups already"),
    ("conv=lowrank", nn.Conv2d(8, 8, 3, groups=2), "it has 2 groups"),
    ("linear=lowrank(rank=4)", nn.Linear(8, 8), r"it would grow, from 64 weights to 64 at rank 4"),
    ("act=relu", nn.ReLU(), "it is relu already"),
    ("act=leaky_relu", nn.LeakyReLU(), "it is leaky_relu already"),
    ("norm=fold", nn.LayerNorm(8), "LayerNorm depends on its input"),
    ("norm=fold", nn.BatchNorm2d(8), "no convolution or linear layer runs right before it"),
    ("norm=fold", nn.BatchNorm2d(8, track_running_stats=False), "it keeps no running statistics"),
    ("norm=rms", nn.BatchNorm2d(8), "BatchNorm2d is no layer normalisation over the last axes"),
    ("precision=fp32", nn.Linear(8, 8), "it is fp32 already"),
]


@pytest.mark.parametrize(("rule", "layer", "reason"), SKIPPED)
def test_a_layer_that_a_rule_does_not_take_is_named_with_the_reason(rule: str, layer: nn.Module, reason: str) -> None:
    with pytest.raises(SwapError, match=reason) as caught:
        modelstat.swap(nn.Sequential(layer), rule)
    assert "takes this swap: 0: " in str(caught.value)
