"""Every kind of module: shared, tied, unused, lazy, parametrized, nested in unusual ways, compiled and scripted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations

from modelstat.errors import TraceError
from modelstat.trace.capture import capture
from tests.modes.counting import Call, calls, count, parameter, zeros

X = zeros(2, 4)


def linear(inputs: int = 4, outputs: int = 4, bias: bool = True) -> nn.Linear:
    return nn.Linear(inputs, outputs, bias=bias)


def tied() -> nn.Module:
    first, second = linear(bias=False), linear(bias=False)
    second.weight = first.weight
    return nn.Sequential(first, second)


def shared() -> nn.Module:
    layer = linear(bias=False)
    return nn.Sequential(layer, nn.ReLU(), layer, nn.Sequential(layer))


def spectral(train: bool, old: bool) -> nn.Module:
    norm = nn.utils.spectral_norm if old else parametrizations.spectral_norm
    return norm(linear(4, 3)).train(train)


class Encoder(nn.Module):
    """Has methods beside forward."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = linear(bias=False)

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.fc.forward(x))


KINDS: list[tuple[str, Callable[[], nn.Module], tuple[Any, ...], int, int]] = [
    # what, the model, its inputs, params, MACs
    ("frozen", lambda: nn.Sequential(linear(), linear(4, 2)).requires_grad_(False), (X,), 20 + 10, 2 * 16 + 2 * 8),
    ("tied weights", tied, (X,), 16, 2 * 2 * 16),
    ("one layer three times", shared, (X,), 16, 3 * 2 * 16),
    ("weight norm, old", lambda: nn.utils.weight_norm(linear(4, 3)), (X,), 3 + 12 + 3, 2 * 12),
    ("weight norm, new", lambda: parametrizations.weight_norm(linear(4, 3)), (X,), 3 + 12 + 3, 2 * 12),
    ("weight norm of a convolution", lambda: nn.utils.weight_norm(nn.Conv1d(4, 8, 3)), (zeros(1, 4, 10),), 8 + 96 + 8, 8 * 96),
    # In eval, sigma = u^T (W v): a matrix-vector product and a dot product. In training one power iteration comes before: W^T u, W v.
    ("spectral norm, old, eval", lambda: spectral(train=False, old=True), (X,), 15, 2 * 12 + 12 + 3),
    ("spectral norm, new, eval", lambda: spectral(train=False, old=False), (X,), 15, 2 * 12 + 12 + 3),
    ("spectral norm, old, training", lambda: spectral(train=True, old=True), (X,), 15, 2 * 12 + 12 + 3 + 2 * 12),
    ("spectral norm, new, training", lambda: spectral(train=True, old=False), (X,), 15, 2 * 12 + 12 + 3 + 2 * 12),
    ("orthogonal", lambda: parametrizations.orthogonal(linear(bias=False), orthogonal_map="cayley"), (X,), 16, 2 * 16 + 4 * 4 * 4),
    (
        "lazy",
        lambda: nn.Sequential(nn.LazyConv2d(8, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(5)),
        (zeros(2, 3, 6, 6),),
        8 * 27 + 8 + 16 + 128 * 5 + 5,
        2 * 16 * 8 * 27 + 2 * 128 * 5,
    ),
    (
        "ModuleDict whose members are called by another method",
        lambda: Call(lambda m, x: m.d["a"].encode(x) + m.d["keys_"].encode(x), d=nn.ModuleDict({"a": Encoder(), "keys_": Encoder()})),
        (X,), 2 * 16, 2 * 2 * 16,
    ),
    (
        "ParameterList and ParameterDict",
        lambda: Call(
            lambda m, x: x @ m.p[0] @ m.p[1] @ m.d["a"], p=nn.ParameterList([parameter(4, 4), parameter(4, 4)]),
            d=nn.ParameterDict({"a": parameter(4, 4)}),
        ),
        (X,), 3 * 16, 3 * 2 * 16,
    ),
    ("a layer in a plain list", lambda: Call(lambda m, x: m.layers[0](x), layers=[linear()]), (X,), 0, 2 * 16),
    ("a layer made in forward", lambda: Call(lambda m, x: nn.Linear(4, 4)(x)), (X,), 0, 2 * 16),
    (
        "tensors in nested attributes", lambda: Call(lambda m, x: x @ m.w @ m.d["a"]["b"], w=zeros(4, 4), d={"a": {"b": zeros(4, 4)}}),
        (X,), 0, 2 * 2 * 16,
    ),
    ("a global tensor", lambda: Call(lambda m, x: x @ X.T), (X,), 0, 2 * 2 * 4),
    ("no parameters", lambda: Call(lambda m, x: x @ x.T), (X,), 0, 2 * 2 * 4),
    ("no inputs", lambda: Call(lambda m: m.w @ m.w, w=parameter(3, 3)), (), 9, 27),
    (
        "names that collide",
        lambda: Call(lambda m, x: m.fc(x), fc=linear(), macs=3, flops=None, calls=[], path="x", values=nn.Buffer(zeros(1)), rows={}),
        (X,), 20, 2 * 16,
    ),
    ("LSTM cell", lambda: nn.LSTMCell(4, 6), (X,), 24 * 4 + 24 * 6 + 48, 2 * 24 * 10),
    ("GRU cell", lambda: nn.GRUCell(4, 6), (X,), 18 * 10 + 36, 2 * 18 * 10),
    ("RNN cell", lambda: nn.RNNCell(4, 6), (X,), 6 * 10 + 12, 2 * 6 * 10),
    ("symbolically traced", lambda: torch.fx.symbolic_trace(nn.Sequential(linear(), nn.ReLU())), (X,), 20, 2 * 16),
    ("exported", lambda: torch.export.export(nn.Sequential(linear(), nn.ReLU()), (X,)).module(), (X,), 20, 2 * 16),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:Lazy modules:UserWarning")
@pytest.mark.parametrize(("build", "inputs", "params", "macs"), [row[1:] for row in KINDS], ids=[row[0] for row in KINDS])
def test_kinds_of_modules(build: Callable[[], nn.Module], inputs: tuple[Any, ...], params: int, macs: int) -> None:
    counted = count(build(), *inputs)
    assert (counted.params, counted.macs, counted.run) == (params, macs, "fake")
    assert not [warning for warning in counted.warnings if "never called" in warning]


def test_only_what_ran_nothing_is_never_called() -> None:
    """A list is never called itself, nor is a layer whose weight is used; what is inside an unused module is not named again."""
    blocks = nn.ModuleList([nn.Sequential(linear(), nn.ReLU()), nn.Sequential(linear())])
    model = Call(
        lambda m, x: F.linear(m.blocks[0](x), m.direct.weight), blocks=blocks, direct=linear(), spare=nn.ModuleDict({"a": linear()}),
        gains=nn.ParameterList([parameter(4)]),
    )  # fmt: skip
    counted = count(model, X)
    assert [warning for warning in counted.warnings if "never" in warning] == ["never called: blocks.1, spare, gains"]
    assert counted.params == 20 + 20 + 20 + 20 + 4


def test_a_dropout_that_attention_takes_as_a_number_is_not_missed() -> None:
    model = Call(
        lambda m, x: F.scaled_dot_product_attention(x, x, x, dropout_p=m.drop.p if m.training else 0.0), drop=nn.Dropout(0.1),
        rest=nn.Identity(), spare=nn.ReLU(),
    ).eval()  # fmt: skip
    assert [warning for warning in count(model, zeros(1, 2, 3, 4)).warnings if "never" in warning] == ["never called: spare"]


def test_weights_that_meet_in_one_op_are_all_used() -> None:
    """A concatenation belongs to one module, but reads the tables of three."""
    tables = {name: nn.Embedding(rows, 4) for name, rows in (("a", 1), ("b", 2), ("c", 3))}
    model = Call(lambda m, x: m.fc(torch.cat([x, m.a.weight, m.b.weight, m.c.weight])), fc=linear(), **tables)
    counted = count(model, X)
    assert counted.macs == (2 + 1 + 2 + 3) * 16
    assert not [warning for warning in counted.warnings if "never called" in warning]


@pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated:DeprecationWarning")
def test_static_quantisation() -> None:
    """A convolution of 4 x 4 x 4 outputs with 27 taps, and a linear layer of 64 x 5; the weights are packed, at one byte each."""
    quantization = torch.ao.quantization
    model = Call(
        lambda m, x: m.after(m.fc(m.act(m.conv(m.before(x))).flatten(1))), before=quantization.QuantStub(), conv=nn.Conv2d(3, 4, 3),
        act=nn.ReLU(), fc=nn.Linear(64, 5), after=quantization.DeQuantStub(),
    ).eval()  # fmt: skip
    model.qconfig = quantization.get_default_qconfig("fbgemm")
    quantization.prepare(model, inplace=True)
    model(zeros(1, 3, 6, 6))
    quantization.convert(model, inplace=True)
    counted = count(model, zeros(1, 3, 6, 6))
    assert (counted.params, counted.macs) == (0, 16 * 4 * 27 + 64 * 5)
    assert sum(each.bytes for each in counted.trace.parameters if each.kind == "packed") == 4 * 27 + 64 * 5
    assert not [warning for warning in counted.warnings if "never called" in warning]


@pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated:DeprecationWarning")
def test_quantisation_aware_training() -> None:
    quantization = torch.ao.quantization
    model = nn.Sequential(quantization.QuantStub(), nn.Conv2d(3, 4, 3), quantization.DeQuantStub()).train()
    model.qconfig = quantization.get_default_qat_qconfig("fbgemm")
    quantization.prepare_qat(model, inplace=True)
    counted = count(model, zeros(1, 3, 6, 6))
    assert (counted.params, counted.macs) == (4 * 27 + 4, 16 * 4 * 27)


class Compiled:
    """Counts what a compiler is asked to compile."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
        self.times += 1
        forward: Callable[..., Any] = graph.forward
        return forward


def compiled_whole(model: nn.Sequential, backend: Any) -> nn.Module:
    whole: Any = torch.compile(model, backend=backend)
    return whole


def compiled_part(model: nn.Sequential, backend: Any) -> nn.Module:
    part: Any = torch.compile(model[0], backend=backend)
    model[0] = part
    return model


def compiled_in_place(model: nn.Sequential, backend: Any) -> nn.Module:
    model.compile(backend=backend)
    return model


def compiled_part_in_place(model: nn.Sequential, backend: Any) -> nn.Module:
    model[0].compile(backend=backend)
    return model


@pytest.mark.parametrize("way", [compiled_whole, compiled_part, compiled_in_place, compiled_part_in_place])
def test_a_compiled_model_is_not_compiled_and_stays_compiled(way: Callable[[nn.Sequential, Any], nn.Module]) -> None:
    torch.compiler.reset()
    backend = Compiled()
    model = way(nn.Sequential(linear(), nn.ReLU()), backend)
    counted = count(model, X)
    assert (counted.params, counted.macs, counted.run, backend.times) == (20, 2 * 16, "fake", 0)
    assert calls(counted.trace) == {"": 1, "0": 1, "1": 1}
    with torch.no_grad():
        model(X)
        assert backend.times == 1
        count(model, X)
        model(X)
        assert backend.times == 1


def test_a_compiled_function_inside_forward() -> None:
    function = torch.compile(lambda x, w: F.relu(x @ w), backend=Compiled())
    counted = count(Call(lambda m, x: function(x, m.w), w=parameter(4, 4)), X)
    assert (counted.params, counted.macs) == (16, 2 * 16)


def scripted_part() -> nn.Module:
    return nn.Sequential(torch.jit.script(nn.Sequential(linear(), nn.ReLU())), linear(4, 2))


def scripted_function() -> nn.Module:
    @torch.jit.script
    def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.relu(x @ w)

    return Call(lambda m, x: product(x, m.w), w=parameter(4, 4))


SCRIPTED: list[tuple[str, Callable[[], nn.Module], int, int]] = [
    ("script", lambda: torch.jit.script(nn.Sequential(linear(), nn.ReLU(), linear(4, 2))), 20 + 10, 2 * 16 + 2 * 8),
    ("trace", lambda: torch.jit.trace(nn.Sequential(linear(), nn.ReLU(), linear(4, 2)), X), 20 + 10, 2 * 16 + 2 * 8),
    # Freezing turns the parameters into constants of the graph.
    ("freeze", lambda: torch.jit.freeze(torch.jit.script(nn.Sequential(linear(), nn.ReLU()).eval())), 0, 2 * 16),
    ("one part of a model", scripted_part, 20 + 10, 2 * 16 + 2 * 8),
    ("one function", scripted_function, 16, 2 * 16),
]


@pytest.mark.filterwarnings("ignore:.*torch.jit.* is deprecated")
@pytest.mark.parametrize(("build", "params", "macs"), [row[1:] for row in SCRIPTED], ids=[row[0] for row in SCRIPTED])
def test_ops_inside_torchscript_are_seen(build: Callable[[], nn.Module], params: int, macs: int) -> None:
    model = build()
    before = model(X)
    counted = count(model, X)
    assert (counted.params, counted.macs, counted.run) == (params, macs, "fake")
    assert not [warning for warning in counted.warnings if "never called" in warning]
    assert torch.equal(model(X), before)
    assert not any(tensor.is_meta for tensor in model.parameters())


@pytest.mark.filterwarnings("ignore:.*torch.jit.* is deprecated")
def test_torchscript_is_named() -> None:
    counted = count(scripted_part(), X)
    assert counted.trace.notes == ("0 is TorchScript: an op inside belongs to the submodule whose parameter it reads, or to it",)
    assert [module.type for module in counted.trace.modules] == [
        "Sequential", "Sequential (TorchScript)", "Linear (TorchScript)", "ReLU (TorchScript)", "Linear",
    ]  # fmt: skip
    assert calls(counted.trace)["0.0"] == 1


def test_data_parallel_inside_a_model() -> None:
    counted = count(nn.Sequential(nn.DataParallel(linear()), nn.ReLU()), X)
    assert (counted.params, counted.macs) == (20, 2 * 16)
    assert calls(counted.trace) == {"": 1, "0": 1, "1": 1}


def test_a_lazy_layer_whose_first_call_fails() -> None:
    with pytest.raises(TraceError, match=r"^Sequential raised in 1: .*boom"):
        capture(nn.Sequential(nn.LazyLinear(3), Call(lambda m, x: exec("raise ValueError('boom')"))), (X,))
