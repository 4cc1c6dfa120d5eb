"""What a walk forward and back does to precision, to the model and to torch: nothing but what it must."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from modelstat.errors import TraceError
from modelstat.memory.training import backward_start
from modelstat.trace.capture import capture
from tests.trace.test_training import Net, macs, train

NETS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "net": (Net, (2, 3, 6, 6)),
    "norms": (
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.GELU(), nn.LayerNorm(4), nn.Softplus(), nn.ReflectionPad2d(1)),
        (1, 3, 6, 6),
    ),
    "rnn": (lambda: nn.LSTM(4, 6, bidirectional=True), (5, 2, 4)),
    "resize": (lambda: nn.Sequential(nn.Conv2d(3, 4, 1), nn.Upsample(scale_factor=2, mode="bilinear"), nn.PReLU()), (1, 3, 4, 4)),
}


@pytest.mark.parametrize("name", NETS)
def test_autocast_follows_cudas_lists_on_the_cpu(name: str) -> None:
    build, shape = NETS[name]
    model, x = build().train(), torch.ones(shape)
    on_cuda = capture(model, (x,), precision_name="amp-fp16")
    trace = train(model, x, precision_name="amp-fp16")
    assert not [note for note in trace.notes if "autocast" in note]

    def kinds(ops: Any) -> set[tuple[str, str]]:
        # On CUDA a softmax casts by itself, and BatchNorm is cuDNN's.
        names = ((op.name.replace("cudnn", "native"), op.outputs[0].dtype) for op in ops if not op.view)
        return set(names) - {("aten::empty", "uint8"), ("aten::_to_copy", "float32")}

    assert kinds(trace.ops[: backward_start(trace)]) == kinds(on_cuda.ops)


def test_autocast_of_the_cpu_is_as_before() -> None:
    def half_softmax() -> torch.dtype:
        with torch.autocast("cpu", torch.bfloat16):
            return nn.Linear(4, 4)(torch.ones(1, 4)).softmax(-1).dtype

    before = half_softmax()
    train(Net(), torch.ones(2, 3, 6, 6), precision_name="amp-bf16")
    assert half_softmax() == before == torch.bfloat16


class Raising(Net):
    """Raises in the forward, or on the way back."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(x)
        if self.where == "forward":
            raise RuntimeError("half-way")
        if self.where == "backward":
            y.register_hook(self.refuse)
        return y

    def refuse(self, grad: torch.Tensor) -> None:
        raise RuntimeError("half-way back")


@pytest.mark.parametrize("where", ["nowhere", "forward", "backward"])
@pytest.mark.parametrize("training", [False, True])
def test_the_model_comes_back_as_it_was(where: str, training: bool) -> None:
    model = Raising(where).train(training)
    model.conv.eval()
    model.table.weight.grad = torch.full((5, 8), 3.0)
    state, rng, flags = copy.deepcopy(model.state_dict()), torch.get_rng_state(), [module.training for module in model.modules()]
    parameters = {name: id(parameter) for name, parameter in model.named_parameters()}
    grad = model.table.weight.grad
    if where == "nowhere":
        train(model, torch.ones(2, 3, 6, 6))
    else:
        with pytest.raises(TraceError, match=r"Raising in training mode raised.*half-way"):
            train(model, torch.ones(2, 3, 6, 6))
    assert {name: id(parameter) for name, parameter in model.named_parameters()} == parameters
    assert [module.training for module in model.modules()] == flags
    assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())
    assert model.table.weight.grad is grad
    assert bool((grad == 3).all())
    assert all(parameter.grad is None for name, parameter in model.named_parameters() if name != "table.weight")
    assert torch.equal(torch.get_rng_state(), rng)
    assert torch.is_grad_enabled()
    y = model.conv(torch.ones(1, 3, 4, 4)).sum()
    y.backward()
    assert model.conv.weight.grad is not None


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_caller_without_gradients_gets_the_same(mode: Any) -> None:
    model, x = Net(), torch.ones(2, 3, 6, 6)
    with mode():
        trace = train(model, x)
    assert macs(trace) == macs(train(model, x))
