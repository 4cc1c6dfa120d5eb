"""The user's model, and the process around it, come back as they were."""

from __future__ import annotations

import contextlib
import random
import threading
from collections import deque
from typing import Any

import numpy
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
        numpy.random.normal()  # makes two numbers and keeps one
        return self.last + torch.rand(4, dtype=x.dtype)


class Branch(nn.Module):
    """Needs values, so that it runs for real."""

    def __init__(self) -> None:
        super().__init__()
        self.bn = nn.BatchNorm1d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn(x)
        return y * 2 if y.sum().item() > 0 else y


class Memory:
    """An object that a module keeps things in."""

    def __init__(self) -> None:
        self.layers: list[dict[str, Any]] = [{"keys": torch.zeros(4)}]
        self.length = 0


class Keeper(nn.Module):
    """Keeps what it sees in nested containers and in an object, and writes to the tensors in them."""

    def __init__(self) -> None:
        super().__init__()
        self.nested: dict[str, Any] = {"deep": {"deeper": [torch.zeros(4)]}, "queue": deque([1])}
        self.memory = Memory()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.nested["deep"]["deeper"].append(x)
        self.nested["deep"]["deeper"][0] += 1
        self.nested["queue"].append(x)
        self.memory.layers[0]["values"] = x
        self.memory.layers[0]["keys"].add_(1)
        self.memory.length += 1
        return x


class Builder(nn.Module):
    """Adds modules, parameters, hooks and attributes to itself, and loses one."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4))
        self.spare = 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.extra = nn.Linear(4, 4)
        self.inner.append(nn.ReLU())
        self.inner[0].register_parameter("more", nn.Parameter(torch.ones(1)))
        self.inner[0].register_forward_hook(lambda module, given, output: output * 2)
        self.inner.requires_grad_(False)
        del self.spare
        return self.inner(x)


class Switcher(nn.Module):
    """Turns torch's global switches."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.set_default_device("meta")
        torch.set_num_threads(torch.get_num_threads() + 1)
        torch.set_grad_enabled(True)
        torch.autograd.set_detect_anomaly(True)
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.set_float32_matmul_precision("medium")
        torch.backends.cudnn.enabled = False
        torch.backends.cudnn.benchmark = True
        torch.backends.cuda.enable_flash_sdp(False)
        torch.backends.cuda.enable_math_sdp(False)
        torch.backends.mha.set_fastpath_enabled(False)
        numpy.random.seed(1)
        return x


class Locked(nn.Module):
    """Runs for real, writes to its buffers and weights, and cannot be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.weight = nn.Parameter(torch.zeros(4))
        self.made = self.weight * 2
        self.seen: torch.Tensor
        self.register_buffer("seen", torch.zeros(4))
        self.kept = [{"a": torch.zeros(4)}]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with self.lock, torch.no_grad():
            for tensor in (self.weight, self.made, self.seen, self.kept[0]["a"]):
                tensor.add_(1)
        return x + self.made if x.sum().item() > 0 else x


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
    "nested boom": lambda: nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), Boom())),
    "keeper": Keeper,
    "builder": Builder,
    "switcher": Switcher,
    "locked": Locked,
    "lazy": lambda: nn.LazyLinear(4),
}


class EmbeddingOfZeros(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(3, 4, max_norm=0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.embedding((x * 0).long()).sum(1)


def plain(value: Any) -> Any:
    """An attribute as something that can be compared: tensors by identity and values, containers and objects by what they hold."""
    if isinstance(value, torch.Tensor):
        lazy = isinstance(value, (nn.UninitializedParameter, nn.UninitializedBuffer))
        return (id(value), value.requires_grad, value.dtype, str(value.device), None if lazy else value.detach().clone())
    if isinstance(value, nn.Module):
        return id(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, deque)):
        return [id(value) if not isinstance(value, tuple) else 0, *(plain(item) for item in value)]
    if isinstance(value, Memory):
        return {"object": id(value), **plain(value.__dict__)}
    return value


def snapshot(model: nn.Module) -> dict[str, Any]:
    modules = list(model.modules())
    return {
        "modules": [id(module) for module in modules],
        "attributes and their values": [plain(module.__dict__) for module in modules],
        "gradients": [None if tensor.grad is None else tensor.grad.clone() for tensor in model.parameters()],
        "state": {name: plain(tensor) for name, tensor in model.state_dict(keep_vars=True).items()},
        "parameters": [id(tensor) for tensor in model.parameters()],
        "grad flags": [tensor.requires_grad for tensor in model.parameters()],
        "buffers": [id(tensor) for tensor in model.buffers()],
        "dtypes": [tensor.dtype for tensor in model.parameters()],
        "devices": [tensor.device for tensor in model.parameters()],
        "modes": [module.training for module in modules],
        "types": [type(module) for module in modules],
        "attributes": [set(module.__dict__) for module in modules],
        "hooks": [(len(module._forward_hooks), len(module._forward_pre_hooks)) for module in modules],
        "global hooks": {
            name: dict(table) for name, table in vars(nn.modules.module).items() if name.startswith("_global_") and isinstance(table, dict)
        },
        "rng": torch.get_rng_state(),
        "seeds of later GPUs": [call and id(call[0]) for call in torch.cuda._lazy_seed_tracker.get_calls()],
        "python rng": random.getstate(),
        "numpy rng": repr(numpy.random.get_state(legacy=True)[1:]),  # type: ignore[index]
        "default device": torch.get_default_device(),
        "deterministic": (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()),
        "threads and precision": (torch.get_num_threads(), torch.get_float32_matmul_precision()),
        "cudnn": (torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark),
        "sdp": (torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.math_sdp_enabled()),
        "dispatch modes": torch._C._len_torch_dispatch_stack(),
        "default dtype": torch.get_default_dtype(),
        "grad": (torch.is_grad_enabled(), torch.is_anomaly_enabled()),
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
    elif isinstance(before, (list, tuple)):
        assert len(before) == len(after)
        for one, other in zip(before, after, strict=True):
            assert_same(one, other)
    else:
        assert before == after


@settings(max_examples=60, deadline=None)
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
    model[0].register_forward_hook(lambda module, given, output: None)
    for tensor in model.parameters():
        if not isinstance(tensor, nn.UninitializedParameter):
            tensor.requires_grad_(not frozen)
            tensor.grad = torch.ones_like(tensor)
    inputs = torch.ones(2, 4)
    before = snapshot(model)
    # (Layers get in each other's way here: after one has moved the default device, another's new tensors are elsewhere.)
    with contextlib.suppress(TraceError):
        capture(model, (inputs,), precision_name=precision)
        assert not {"boom", "nested boom"} & set(names)
    assert_same(before, snapshot(model))
    assert torch.equal(inputs, torch.ones(2, 4))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", sorted(LAYERS))
def test_nothing_of_one_layer_is_left_behind(name: str, training: bool) -> None:
    numpy.random.normal()
    model = nn.Sequential(LAYERS[name]()).train(training)
    before = snapshot(model)
    if "boom" in name:
        with pytest.raises(TraceError, match="boom"):
            capture(model, (torch.ones(2, 4),))
    else:
        capture(model, (torch.ones(2, 4),))
    assert_same(before, snapshot(model))


def test_layers_that_share_tensors_and_containers_still_do() -> None:
    first, second = Keeper(), Keeper()
    second.nested, second.memory = first.nested, first.memory
    model = nn.Sequential(first, second)
    capture(model, (torch.ones(2, 4),))
    assert second.nested is first.nested
    assert second.memory is first.memory
    assert first.memory.length == 0


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
