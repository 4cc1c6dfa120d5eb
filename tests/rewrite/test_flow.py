"""What runs right after a layer: the same from a trace as from torch.fx, and right where names say nothing."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import modelstat
from modelstat.errors import SwapError
from modelstat.records import Swap
from modelstat.rewrite.flow import Flow, TraceFlow
from modelstat.rewrite.graph import GraphFlow
from modelstat.rewrite.plan import plans
from modelstat.rewrite.source import apply
from modelstat.rewrite.targets import is_conv
from modelstat.trace.capture import capture

IMAGE = (torch.zeros(1, 3, 32, 32),)


def trace_flow(model: nn.Module) -> Flow:
    return TraceFlow(capture(model, IMAGE))


def swaps(model: nn.Module, rule: str = "conv=ghost", *, traced: bool = True) -> tuple[nn.Module, dict[str, Swap]]:
    import copy

    new, done = apply(copy.deepcopy(model), plans([rule]), trace_flow if traced else GraphFlow)
    return new, {swap.path: swap for swap in done}


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2", "densenet121", "squeezenet1_1"])
def test_a_trace_and_a_graph_agree(name: str) -> None:
    torchvision = pytest.importorskip("torchvision")
    with torch.device("meta"):
        model = getattr(torchvision.models, name)().eval()
    flows = [TraceFlow(capture(model, (torch.empty(1, 3, 64, 64, device="meta"),))), GraphFlow(model)]
    for path, layer in model.named_modules():
        if is_conv(layer):
            found = [flow.after(path) for flow in flows]
            assert len({each.path for each in found if each}) == 1, path
            assert len({each.alone for each in found if each}) == 1, path
            assert len({flow.calls(path) for flow in flows}) == 1


class Named(nn.Module):
    """Registered in another order than they run, and named for something else."""

    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.BatchNorm2d(8)
        self.bn1 = nn.Conv2d(3, 8, 3)
        self.conv = nn.Hardswish()

    def forward(self, image: Tensor) -> Tensor:
        activated: Tensor = self.conv(self.relu(self.bn1(image)))
        return activated


class Functional(nn.Module):
    """ResNet as most people write it: the activation is a function."""

    def __init__(self, activation: str = "relu") -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
        self.activation = getattr(F, activation)

    def forward(self, image: Tensor) -> Tensor:
        activated: Tensor = self.activation(self.bn(self.conv(image)))
        return activated


class Shared(nn.Module):
    """One activation module for two convolutions."""

    def __init__(self, act: nn.Module) -> None:
        super().__init__()
        self.first, self.second, self.act = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), act

    def forward(self, image: Tensor) -> Tensor:
        activated: Tensor = self.act(self.second(self.act(self.first(image))))
        return activated


class Branching(nn.Module):
    """What the convolution gives goes into a normalisation, and past it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)

    def forward(self, image: Tensor) -> Tensor:
        features = self.conv(image)
        both: Tensor = features + self.bn(features)
        return both


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn, self.act = nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(inplace=True)

    def forward(self, image: Tensor) -> Tensor:
        activated: Tensor = self.act(self.bn(self.conv(image)) + image)
        return activated


@pytest.mark.parametrize("traced", [True, False])
class TestAbsorbing:
    def test_by_order_and_not_by_name(self, traced: bool) -> None:
        new, done = swaps(Named(), traced=traced)
        assert done["bn1"].absorbed == ("relu", "conv")
        assert [type(new.get_submodule(path)) for path in ("relu", "conv")] == [nn.Identity, nn.Identity]
        inside = [type(module).__name__ for module in new.get_submodule("bn1").modules()]
        assert inside.count("Hardswish") == inside.count("BatchNorm2d") == 2

    def test_a_function_stays_and_is_inside_too(self, traced: bool) -> None:
        new, done = swaps(Functional(), traced=traced)
        assert done["conv"].absorbed == ("bn",)
        assert done["conv"].note == "relu runs as a function: it stays after the layer, and is inside too"
        assert [type(module).__name__ for module in new.modules()].count("ReLU") == 2

    def test_a_function_that_must_not_run_twice_only_stays(self, traced: bool) -> None:
        new, done = swaps(Functional("silu"), traced=traced)
        assert done["conv"].note == "silu runs as a function: it stays after the layer"
        assert not [module for module in new.modules() if isinstance(module, (nn.ReLU, nn.SiLU))]

    def test_a_shared_activation_stays(self, traced: bool) -> None:
        new, done = swaps(Shared(nn.ReLU(inplace=True)), "conv=ghost(kernel=1)", traced=traced)
        assert {done[path].note for path in ("first", "second")} == {"act is called 2 times: it stays after the layer, and is inside too"}
        assert isinstance(new.get_submodule("act"), nn.ReLU)
        new, done = swaps(Shared(nn.SiLU()), "conv=ghost(kernel=1)", traced=traced)
        assert {done[path].note for path in ("first", "second")} == {"act is called 2 times: it stays after the layer"}

    def test_a_normalisation_that_others_go_past_stays(self, traced: bool) -> None:
        new, done = swaps(Branching(), traced=traced)
        assert done["conv"].note == "bn is not the only one that reads this output: it stands for the one inside"
        assert done["conv"].absorbed == ()
        assert sum(isinstance(module, nn.BatchNorm2d) for module in new.modules()) == 1

    def test_a_convolution_before_an_addition_stays_linear(self, traced: bool) -> None:
        new, done = swaps(Residual(), traced=traced)
        assert (done["conv"].absorbed, done["conv"].note) == (("bn",), None)
        assert sum(isinstance(module, nn.ReLU) for module in new.modules()) == 1  # its own, after the addition

    def test_a_bare_convolution_gets_both(self, traced: bool) -> None:
        new, _ = swaps(nn.Sequential(nn.Conv2d(3, 8, 3)), traced=traced)
        kinds = [type(module).__name__ for module in new.modules()]
        assert kinds.count("BatchNorm2d") == kinds.count("ReLU") == 2

    def test_what_is_asked_for_goes_first(self, traced: bool) -> None:
        new, done = swaps(Named(), "conv=ghost(act=gelu,norm=batch)", traced=traced)
        assert done["bn1"].absorbed == ("relu", "conv")
        assert sum(isinstance(module, nn.GELU) for module in new.modules()) == 2
        _, done = swaps(Named(), "conv=ghost(norm=none,act=none)", traced=traced)
        assert done["bn1"].absorbed == ()


def test_a_norm_with_an_activation_of_its_own_is_absorbed_whole() -> None:
    layers = pytest.importorskip("timm.layers")
    model = nn.Sequential(nn.Conv2d(3, 8, 3), layers.BatchNormAct2d(8, act_layer=nn.SiLU))
    new, done = swaps(model)
    assert done["0"].absorbed == ("1",)
    assert [type(module).__name__ for module in new.modules()].count("BatchNormAct2d") == 2
    assert [type(module).__name__ for module in new.modules()].count("ReLU") == 0


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, image: Tensor) -> Tensor:
        features: Tensor = self.conv(image)
        return features if features.sum() > 0 else -features


def test_without_inputs_a_forward_that_fx_cannot_follow_asks_for_them() -> None:
    with pytest.raises(SwapError, match=r"Branches: which layer follows which cannot be told without a run .*give inputs"):
        modelstat.swap(Branches(), "conv=ghost")
    new = modelstat.swap(Branches(), "conv=ghost", inputs=(torch.rand(1, 3, 8, 8),))
    assert type(new.get_submodule("conv")).__name__ == "GhostModule"
    # where the order does not matter, no inputs are needed
    assert type(modelstat.swap(Branches(), "conv=separable").get_submodule("conv")).__name__ == "SeparableConv"
