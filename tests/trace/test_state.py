"""The user's model, and the process around it, come back as they were."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from modelstat.errors import TraceError
from modelstat.trace.capture import capture


class Boom(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise ValueError("boom")


class Hoarder(nn.Module):
    """Keeps what it sees, draws random numbers, changes its mode and a buffer, and a default of torch's."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.seen: list[torch.Tensor] = []
        self.last: torch.Tensor | None = None
        self.steps: torch.Tensor
        self.register_buffer("steps", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.append(x)
        self.last = self.fc(x)
        self.steps += 1
        self.fc.eval()
        torch.set_default_dtype(torch.float64)
        random.random()
        return self.last + torch.rand(4, dtype=x.dtype)


class Branch(nn.Module):
    """Needs values, so that it runs for real."""

    def __init__(self) -> None:
        super().__init__()
        self.bn = nn.BatchNorm1d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn(x)
        return y * 2 if y.sum().item() > 0 else y


LAYERS: dict[str, Any] = {
    "linear": lambda: nn.Linear(4, 4),
    "batch norm": lambda: nn.BatchNorm1d(4),
    "dropout": lambda: nn.Dropout(0.5),
    "hoarder": Hoarder,
    "branch": Branch,
    "weight norm": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)),
    "spectral norm": lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)),
    "embedding with max_norm": lambda: EmbeddingOfZeros(),
    "relu in place": lambda: nn.ReLU(inplace=True),
    "boom": Boom,
}


class EmbeddingOfZeros(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(3, 4, max_norm=0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.embedding((x * 0).long()).sum(1)


def snapshot(model: nn.Module) -> dict[str, Any]:
    modules = list(model.modules())
    return {
        "state": {name: tensor.clone() for name, tensor in model.state_dict().items()},
        "parameters": [id(tensor) for tensor in model.parameters()],
        "grad flags": [tensor.requires_grad for tensor in model.parameters()],
        "buffers": [id(tensor) for tensor in model.buffers()],
        "dtypes": [tensor.dtype for tensor in model.parameters()],
        "devices": [tensor.device for tensor in model.parameters()],
        "modes": [module.training for module in modules],
        "types": [type(module) for module in modules],
        "attributes": [set(module.__dict__) for module in modules],
        "hooks": [(len(module._forward_hooks), len(module._forward_pre_hooks)) for module in modules],
        "lists": [copy.copy(value) for module in modules for value in module.__dict__.values() if isinstance(value, list)],
        "global hooks": (len(nn.modules.module._global_forward_hooks), len(nn.modules.module._global_forward_pre_hooks)),
        "rng": torch.get_rng_state(),
        "python rng": random.getstate(),
        "default dtype": torch.get_default_dtype(),
        "grad": torch.is_grad_enabled(),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda")),
        "fast path": torch.backends.mha.get_fastpath_enabled(),
    }


def assert_same(before: Any, after: Any) -> None:
    if isinstance(before, torch.Tensor):
        assert torch.equal(before, after)
    elif isinstance(before, dict):
        assert before.keys() == after.keys()
        for key in before:
            assert_same(before[key], after[key])
    elif isinstance(before, list) and before and isinstance(before[0], (torch.Tensor, list)):
        assert len(before) == len(after)
        for one, other in zip(before, after, strict=True):
            assert_same(one, other)
    else:
        assert before == after


@settings(max_examples=40, deadline=None)
@given(
    names=st.lists(st.sampled_from(sorted(LAYERS)), min_size=1, max_size=4),
    modes=st.lists(st.booleans(), min_size=4, max_size=4),
    frozen=st.booleans(),
    precision=st.sampled_from([None, "fp16", "amp-fp16", "amp-bf16"]),
)
def test_nothing_is_left_behind(names: list[str], modes: list[bool], frozen: bool, precision: str | None) -> None:
    model = nn.Sequential(*(LAYERS[name]() for name in names))
    for layer, mode in zip(model, modes, strict=False):
        layer.train(mode)
    model.requires_grad_(not frozen)
    model[0].register_forward_hook(lambda module, given, output: None)
    inputs = torch.ones(2, 4)
    before = snapshot(model)
    if "boom" in names:
        with pytest.raises(TraceError, match="boom"):
            capture(model, (inputs,), precision_name=precision)
    else:
        capture(model, (inputs,), precision_name=precision)
    assert_same(before, snapshot(model))
    assert torch.equal(inputs, torch.ones(2, 4))


def test_lazy_layers_stay_lazy() -> None:
    model = nn.Sequential(nn.LazyLinear(3))
    trace = capture(model, (torch.ones(2, 5),))
    assert sum(parameter.elements for parameter in trace.parameters) == 5 * 3 + 3
    assert type(model[0]) is nn.LazyLinear
    assert model[0].has_uninitialized_params()


def test_failure_names_the_module_and_the_cause() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(5, 2)))
    with pytest.raises(TraceError, match=r"Sequential raised in 1\.1: .*--input") as failure:
        capture(model, (torch.ones(2, 4),))
    assert "\n" not in str(failure.value)
