"""Every kind of call: what goes in and comes out, and what happens around and inside forward."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from modelstat.trace.capture import capture
from tests.modes.counting import Call, calls, count, parameter, zeros

X = zeros(2, 4)
Pair = namedtuple("Pair", "first second")


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    repeats: int = 2


class Cache:
    """A key-value cache: an object that forward reads and writes."""

    def __init__(self) -> None:
        self.layers: list[Any] = []

    def add(self, x: torch.Tensor) -> torch.Tensor:
        self.layers.append({"keys": x})
        return torch.cat([layer["keys"] for layer in self.layers])


def fc(inputs: int = 4, outputs: int = 4, bias: bool = True) -> nn.Linear:
    return nn.Linear(inputs, outputs, bias=bias)


def ids(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.long)


INPUTS: list[tuple[str, nn.Module, tuple[Any, ...], dict[str, Any], list[tuple[str, tuple[int, ...]]], int]] = [
    # what, the model, its inputs, keywords, the tensors by name, MACs
    ("two", Call(lambda m, a, b: m.fc(a) + m.fc(b), fc=fc()), (X, X), {}, [("input0", (2, 4)), ("input1", (2, 4))], 2 * 32),
    ("a dict", Call(lambda m, d: m.fc(d["x"]["y"]), fc=fc()), ({"x": {"y": X}, "n": 3},), {}, [("input0.x.y", (2, 4))], 32),
    ("an ordered dict", Call(lambda m, d: m.fc(d["x"]), fc=fc()), (OrderedDict(x=X),), {}, [("input0.x", (2, 4))], 32),
    ("a list", Call(lambda m, xs: sum(m.fc(x) for x in xs), fc=fc()), ([X, X, X],), {}, [(f"input0.{i}", (2, 4)) for i in range(3)], 96),
    ("a named tuple", Call(lambda m, p: m.fc(p.first), fc=fc()), (Pair(X, "a"),), {}, [("input0.0", (2, 4))], 32),
    ("a dataclass", Call(lambda m, b: m.fc(b.x) * b.repeats, fc=fc()), (Batch(X),), {}, [("input0.x", (2, 4))], 32),
    ("None and an int", Call(lambda m, x, mask, n: [m.fc(x) for _ in range(n)], fc=fc()), (X, None, 3), {}, [("input0", (2, 4))], 96),
    ("keywords", Call(lambda m, *, x, scale: m.fc(x) * scale, fc=fc()), (), {"x": X, "scale": 2.0}, [("x", (2, 4))], 32),
    (
        "any number", Call(lambda m, *xs, **named: sum(m.fc(x) for x in xs) + named["y"], fc=fc()), (X, X), {"y": X},
        [("input0", (2, 4)), ("input1", (2, 4)), ("y", (2, 4))], 64,
    ),
    ("token ids", nn.Embedding(10, 4), (ids(2, 3),), {}, [("input", (2, 3))], 0),
    ("a packed sequence", nn.GRU(4, 3), (nn.utils.rnn.pack_sequence([zeros(3, 4), zeros(2, 4)]),), {},
     [("input.0", (5, 4)), ("input.1", (3,))], 5 * 9 * 7),
]  # fmt: skip


@pytest.mark.parametrize(("model", "inputs", "named", "tensors", "macs"), [row[1:] for row in INPUTS], ids=[row[0] for row in INPUTS])
def test_inputs(
    model: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any], tensors: list[tuple[str, tuple[int, ...]]], macs: int
) -> None:
    counted = count(model, *inputs, kwargs=named)
    assert (counted.macs, counted.run) == (macs, "fake")
    assert [(given.name, given.shape) for given in counted.trace.inputs] == tensors


def test_an_object_that_forward_fills_stays_as_it_was() -> None:
    cache = Cache()
    cache.add(X)
    model = Call(lambda m, x, past: m.fc(past.add(x)), fc=fc())
    counted = count(model, X, cache)
    assert counted.macs == 4 * 16
    assert [given.name for given in counted.trace.inputs] == ["input0", "input1.layers.0.keys"]
    assert [layer["keys"] is X for layer in cache.layers] == [True]


@pytest.mark.parametrize(
    ("output", "shapes"),
    [
        (lambda y: y, [(2, 4)]),
        (lambda y: None, []),
        (lambda y: (y, [y.sum(), {"a": y.T}]), [(2, 4), (), (4, 2)]),
        (lambda y: Pair(y, {"a": None}), [(2, 4)]),
        (Batch, [(2, 4)]),
        (lambda y: 3, []),
    ],
)
def test_outputs(output: Callable[[torch.Tensor], Any], shapes: list[tuple[int, ...]]) -> None:
    counted = count(Call(lambda m, x: output(m.fc(x)), fc=fc()), X)
    assert counted.macs == 32
    assert list(counted.trace.outputs) == shapes


def block() -> nn.Sequential:
    return nn.Sequential(fc(4, 8), nn.ReLU(), fc(8, 4))


@torch.inference_mode()
def in_inference_mode(m: Any, x: torch.Tensor) -> torch.Tensor:
    y: torch.Tensor = m.block(x)
    return y


def under_autocast(m: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        y: torch.Tensor = m.block(x)
    return y


@pytest.mark.parametrize(
    "forward",
    [
        lambda m, x: checkpoint(m.block, x, use_reentrant=True),
        lambda m, x: checkpoint(m.block, x, use_reentrant=False),
        lambda m, x: checkpoint_sequential(m.block, 2, x, use_reentrant=False),
        in_inference_mode,
        under_autocast,
        lambda m, x: torch.func.functional_call(m.block, {name: tensor * 2 for name, tensor in m.block.named_parameters()}, (x,)),
        lambda m, x: torch.vmap(m.block)(x),
        lambda m, x: torch.cond(torch.tensor(True), m.block, lambda y: y, (x,)),
    ],
    ids=["reentrant checkpoint", "checkpoint", "checkpoints", "inference mode", "autocast", "functional_call", "vmap", "cond"],
)
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad:UserWarning")
def test_what_happens_inside_forward_changes_nothing(forward: Callable[..., Any], training: bool) -> None:
    counted = count(Call(forward, block=block()).train(training), X.clone().requires_grad_())
    assert (counted.params, counted.macs, counted.run) == (4 * 8 + 8 + 8 * 4 + 4, 2 * 2 * 32, "fake")
    assert calls(counted.trace)["block.0"] == 1


def gradient_of_energy(m: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        return torch.autograd.grad(m.fc(x).sum(), x)[0]


@pytest.mark.parametrize(
    ("forward", "macs"),
    [
        # A product forward, and one back: dx = dy W.
        (gradient_of_energy, 2 * 2 * 4),
        (lambda m, x: torch.func.grad(lambda y: m.fc(y).sum())(x), 2 * 2 * 4),
        # Forward mode: W x, W dx, and x dW, whose zeros torch multiplies with as well.
        (lambda m, x: torch.func.jvp(m.fc, (x,), (torch.ones_like(x),))[1], 3 * 2 * 4),
        (lambda m, x: torch.func.vjp(m.fc, x)[1](torch.ones(2, 1))[0], 2 * 2 * 4),
        (lambda m, x: torch.func.jacrev(m.fc)(x[0]), 4 + 4),
    ],
    ids=["autograd.grad", "func.grad", "func.jvp", "func.vjp", "func.jacrev"],
)
def test_derivatives_inside_forward_are_work(forward: Callable[..., Any], macs: int) -> None:
    assert count(Call(forward, fc=fc(4, 1, bias=False)), X).macs == macs


def test_vmap_over_stacked_weights() -> None:
    """Three weights of 4 x 4 meet two rows."""
    assert count(Call(lambda m, x: torch.vmap(lambda w: x @ w)(m.w), w=parameter(3, 4, 4)), X).macs == 3 * 2 * 16


def test_a_hook_of_the_users_counts_and_stays() -> None:
    model = nn.Sequential(fc(bias=False))
    model[0].register_forward_hook(lambda module, args, output: output @ args[0].T)
    assert count(model, X).macs == 2 * 16 + 2 * 2 * 4
    assert len(model[0]._forward_hooks) == 1


def test_every_ambient_mode_is_ignored() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    model = block()
    plain = capture(model, (X,))
    with FlopCounterMode(display=False) as counter, torch.autocast("cpu", torch.bfloat16), torch.device("meta"):
        inside = capture(model, (X,))
        assert torch.is_autocast_enabled("cpu")
    assert inside.ops == plain.ops
    assert counter.get_total_flops() == 0


def test_a_model_of_inference_tensors() -> None:
    with torch.inference_mode():
        model, x = nn.Sequential(fc(), nn.BatchNorm1d(4)).train(), zeros(2, 4)
        assert count(model, x).macs == 32
    assert count(model, x).macs == 32


def test_attention_windowed_by_hand() -> None:
    """16 tokens of 8 channels in windows of 4: every token meets the 4 of its window."""

    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        windows = x.unfold(1, 4, 4).transpose(-1, -2)
        return (windows @ windows.transpose(-1, -2)).softmax(-1) @ windows

    assert count(Call(forward), zeros(1, 16, 8)).macs == 2 * 16 * 4 * 8


def test_a_key_value_cache_as_a_buffer_that_is_written_in_place() -> None:
    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        m.cache[:, 3:4] = x
        return F.scaled_dot_product_attention(x, m.cache, m.cache)

    model = Call(forward, cache=nn.Buffer(zeros(1, 8, 4)))
    assert count(model, torch.ones(1, 1, 4)).macs == 2 * 8 * 4
    assert not torch.any(model.cache)  # type: ignore[arg-type]
