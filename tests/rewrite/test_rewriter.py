from __future__ import annotations

import contextlib
import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import modelstat
from modelstat.api import trace_source
from modelstat.cost.registry import costs
from modelstat.errors import SwapError
from modelstat.rewrite.plan import plan_of, plans
from modelstat.rewrite.selection import Selection, from_mapping, parse_kernels
from modelstat.rewrite.source import SwappedSource
from modelstat.sources import parse


def test_ghost_resnet50_has_the_numbers_of_its_formula() -> None:
    """GhostNet's paper prints 13.0 M parameters and 2.2 G MACs for a ResNet-50 of ghost modules."""
    pytest.importorskip("torchvision")
    trace = trace_source(SwappedSource(parse("torchvision:resnet50"), plans(["conv=ghost(kernel=3)"])), "3x224x224", cache=False)
    assert sum(each.elements for each in trace.parameters if each.kind == "parameter") == 13_949_096
    assert sum(cost.macs for cost in costs(trace)) == 2_095_629_056
    assert [swap.reason for swap in trace.swaps] == [None] * 53
    assert trace.run == "fake"


def test_the_key_has_the_rules_and_where_they_apply() -> None:
    source = parse("torchvision:resnet18")
    keys = [
        SwappedSource(source, made).key()["swap"]
        for made in (
            plans(["conv=ghost"]), plans(["conv=ghost(ratio=4)"]), plans(["conv=ghost"], Selection(where=("layer1",))),
            plans(["conv=ghost", "act=silu"]), plans(["act=silu", "conv=ghost"]), plans(["conv=ghost"], Selection(skip_stem=True)),
        )
    ]  # fmt: skip
    assert len(set(keys)) == len(keys)
    assert SwappedSource(source, plans(["conv=ghost(ratio=2)"])).key() == SwappedSource(source, plans(["conv=ghost"])).key()


def test_a_second_time_is_read_from_the_cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELSTAT_CACHE_DIR", str(tmp_path))
    source = SwappedSource(parse("torchvision:resnet18"), plans(["conv=grouped"]))
    first = trace_source(source, "3x32x32")
    monkeypatch.setattr(SwappedSource, "build", None)
    assert trace_source(source, "3x32x32") == first
    assert first.swaps


class Net(nn.Module):
    """A stem, two blocks, and a head whose weight is that of the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 7, padding=3)
        self.blocks = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.Conv2d(16, 32, 1), nn.Conv2d(32, 32, (1, 3), padding=(0, 1)))
        self.again = self.blocks[0]
        self.unused = nn.Conv2d(3, 16, 3)
        self.embedding, self.head = nn.Linear(32, 32, bias=False), nn.Linear(32, 32)
        self.head.weight = self.embedding.weight

    def forward(self, image: Tensor) -> Tensor:
        features = self.blocks(self.again(self.stem(image)))
        scores: Tensor = self.head(self.embedding(features.mean((2, 3))))
        return scores


def taken(*rules: str, **selection: Any) -> set[str]:
    new = modelstat.swap(Net(), *rules, inputs="3x16x16", **selection)
    kinds = ("GhostModule", "SeparableConv", "LowRankConv", "LowRankLinear", "AtPrecision")
    return {path for path, module in new.named_modules(remove_duplicate=False) if type(module).__name__ in kinds}


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ({}, {"stem", "blocks.0", "again", "blocks.1", "blocks.2"}),
        ({"where": "blocks.*"}, {"blocks.0", "again", "blocks.1", "blocks.2"}),
        ({"where": "blocks"}, {"blocks.0", "again", "blocks.1", "blocks.2"}),
        ({"where": ["stem", "blocks.1"]}, {"stem", "blocks.1"}),
        ({"where": "again"}, {"blocks.0", "again"}),
        ({"skip_stem": True}, {"blocks.0", "again", "blocks.1", "blocks.2"}),
        ({"kernel": 3}, {"blocks.0", "again"}),
        ({"kernel": ["1x3", 7]}, {"stem", "blocks.2"}),
        ({"min_channels": 32}, {"blocks.2"}),
        ({"min_channels": 16, "kernel": 3}, {"blocks.0", "again"}),
    ],
)
def test_selections(selection: dict[str, Any], expected: set[str]) -> None:
    assert taken("conv=ghost(norm=none,act=none,kernel=1)", **selection) == expected


def test_a_shared_layer_is_swapped_at_all_its_paths() -> None:
    new = modelstat.swap(Net(), "conv=ghost", where="again", inputs="3x16x16")
    assert new.get_submodule("blocks.0") is new.get_submodule("again")


def test_layers_are_left_with_a_reason() -> None:
    from modelstat.rewrite.flow import TraceFlow
    from modelstat.rewrite.source import apply
    from modelstat.trace.capture import capture

    image = (torch.zeros(1, 3, 16, 16),)
    selection = Selection(skip_stem=True, kernels=((1,), (7,), (1, 3)))
    _, swaps = apply(Net(), plans(["precision=fp16"], selection), lambda each: TraceFlow(capture(each, image)))
    assert {swap.path: swap.reason for swap in swaps} == {
        "stem": "it is the stem",
        "blocks.0": "its kernel is 3x3, not 1 or 7 or 1x3",
        "blocks.1": None,
        "blocks.2": None,
        "unused": "its kernel is 3x3, not 1 or 7 or 1x3",
        "embedding": "its weight is also that of head",
        "head": "its weight is also that of embedding",
    }
    with pytest.raises(SwapError, match="unused: it is never called, at most its weight is used"):
        modelstat.swap(Net(), "conv=ghost", where="unused", inputs="3x16x16")


def test_weights_that_are_used_without_a_call_stay() -> None:
    model = nn.TransformerEncoderLayer(16, 4, 32).eval()
    new = modelstat.swap(model, "linear=lowrank", inputs=(torch.rand(5, 2, 16),))
    assert [type(new.get_submodule(path)).__name__ for path in ("linear1", "linear2")] == ["LowRankLinear"] * 2
    assert type(new.get_submodule("self_attn.out_proj")) is type(model.self_attn.out_proj)


@pytest.mark.parametrize(
    ("rule", "selection", "message"),
    [
        ("conv=ghost", {"where": "block.*"}, "conv=ghost: 'block.*' matches no convolution: paths of such layers are blocks."),
        ("norm=fold", {}, "norm=fold: the model has no normalisation"),
        ("act=relu", {}, "act=relu: the model has no activation"),
        ("conv=ghost", {"min_channels": 99}, "no convolution takes this swap: stem and 4 more: fewer than 99 channels"),
        ("conv=ghost", {"kernel": "big"}, "kernel 'big': write a size such as 3, or 1x7"),
        ("conv=ghost", {"min_channels": 0}, "min_channels is a whole number of at least 1, not 0"),
        ("conv=gost", {}, "did you mean conv=ghost"),
    ],
)  # fmt: skip
def test_a_selection_that_matches_nothing(rule: str, selection: dict[str, Any], message: str) -> None:
    with pytest.raises(SwapError, match=re.escape(message)):
        modelstat.swap(Net(), rule, inputs="3x16x16", **selection)


class Relu(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.act = nn.Conv2d(3, 8, 3), nn.SiLU()

    def forward(self, image: Tensor) -> Tensor:
        return torch.relu(self.act(self.conv(image)))


def test_functions_are_listed_where_activations_are_swapped() -> None:
    from modelstat.rewrite.graph import GraphFlow
    from modelstat.rewrite.source import apply

    _, swaps = apply(Relu(), plans(["act=gelu"]), GraphFlow)
    assert [(swap.path, swap.before, swap.after, swap.reason) for swap in swaps] == [
        ("act", "SiLU", "GELU", None),
        ("", "relu function", None, "it runs as a function in a forward: only modules can be swapped"),
    ]


def test_rules_are_applied_one_after_another() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).eval()
    new = modelstat.swap(model, "norm=fold", "conv=ghost", "act=hardswish")
    kinds = [type(module).__name__ for module in new.modules()]
    # the fold left a bare convolution, the ghost brought two norms, and its two ReLUs were swapped again
    assert (kinds.count("BatchNorm2d"), kinds.count("Hardswish"), kinds.count("ReLU")) == (2, 2, 0)


def test_a_model_that_is_the_layer() -> None:
    new = modelstat.swap(nn.Conv2d(3, 8, 3), "conv=separable")
    assert new(torch.rand(1, 3, 8, 8)).shape == (1, 8, 6, 6)


def test_a_swapped_model_copies_pickles_and_trains() -> None:
    torch.manual_seed(0)
    model = modelstat.swap(nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 2)), "conv=ghost", "linear=lowrank")
    again = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    again.load_state_dict(model.state_dict())
    image, target = torch.rand(8, 3, 8, 8), torch.tensor([0, 1] * 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(12):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(image), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


RULES = st.sampled_from(
    ["conv=ghost", "conv=separable", "conv=grouped(groups=2)", "conv=lowrank", "act=gelu", "norm=fold", "precision=bf16"]
)
LAYERS = st.sampled_from(["conv", "norm", "relu", "silu", "linear_of_channels"])


@settings(max_examples=30, deadline=None)
@given(st.lists(LAYERS, min_size=1, max_size=5), RULES, st.booleans())
def test_any_chain_keeps_its_shape_and_the_original(chain: list[str], rule: str, training: bool) -> None:
    made: dict[str, Callable[[], nn.Module]] = {
        "conv": lambda: nn.Conv2d(8, 8, 3, padding=1), "norm": lambda: nn.BatchNorm2d(8), "relu": lambda: nn.ReLU(inplace=True),
        "silu": nn.SiLU, "linear_of_channels": lambda: nn.Conv2d(8, 8, 1),
    }  # fmt: skip
    model = nn.Sequential(nn.Conv2d(4, 8, 3), *(made[name]() for name in chain), nn.SiLU()).train(training)
    state = copy.deepcopy(model.state_dict())
    text = str(model)
    # no convolution right before a norm, or no norm at all
    with contextlib.suppress(SwapError):
        new = modelstat.swap(model, rule)
        image = torch.rand(2, 4, 9, 9)
        assert new(image).shape == copy.deepcopy(model)(image).shape
        assert str(new) != text
    assert str(model) == text
    assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())


def test_layers_of_another_precision_cast_what_goes_in_and_out() -> None:
    new = modelstat.swap(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2)), "precision=fp16")
    analysis = modelstat.analyze(new, torch.zeros(3, 4))
    assert [op.name for op in analysis.trace.ops].count("aten::_to_copy") == 4
    # fp32 in and out of each, fp16 inside: 3 x (4 + 8) and 3 x (8 + 2) elements are cast, 2 and 4 bytes read or written for each
    casts = sum(cost.bytes for op, cost in zip(analysis.trace.ops, analysis.costs, strict=True) if op.name == "aten::_to_copy")
    assert casts == 6 * 3 * (4 + 8 + 8 + 2)


def test_plain_data_makes_a_plan() -> None:
    plan = plan_of({"rule": "conv=ghost", "where": ["layer1", "layer2.*"], "skip_stem": True, "kernel": [3, "1x7"], "min_channels": 64})
    assert plan.selection == Selection(("layer1", "layer2.*"), True, ((3,), (1, 7)), 64)
    assert plan.text == "conv=ghost (where layer1 or layer2.*, without the stem, kernel 3 or 1x7, at least 64 channels)"
    assert plan_of("conv=ghost").selection == Selection() == from_mapping({})
    assert parse_kernels(["3x3"]) == ((3, 3),)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (3, "a swap is a text such as conv=ghost, or a mapping with a rule, not 3"),
        ({"where": "a"}, "a swap is a text such as conv=ghost, or a mapping with a rule"),
        ({"rule": "conv=ghost", "were": "a"}, "a swap has no 'were': it has rule, where, skip_stem, kernel, min_channels"),
        ({"rule": "conv=ghost", "where": {"a": 1}}, "where is a text or a list of texts"),
        ({"rule": "conv=ghost", "skip_stem": "yes"}, "skip_stem is true or false, not 'yes'"),
        ({"rule": "conv=ghost", "kernel": "0"}, "kernel '0': write a size such as 3, or 1x7"),
    ],
)
def test_plain_data_that_is_wrong(entry: Any, message: str) -> None:
    with pytest.raises(SwapError, match=re.escape(message)):
        plan_of(entry)
