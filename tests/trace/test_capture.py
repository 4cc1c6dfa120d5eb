"""What a trace holds: ops, values with births and deaths, and the same counts on every way to walk a model."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from modelstat.cost.registry import costs
from modelstat.errors import UsageError
from modelstat.records import Trace, decode_trace, encode_trace
from modelstat.trace.capture import _Run, capture
from modelstat.trace.precision import precision


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.rnn = nn.LSTM(8, 6, num_layers=2, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(12, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.norm(self.conv(x))).flatten(2).transpose(1, 2)
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return self.fc(self.rnn(x)[0]).softmax(-1)


def totals(trace: Trace) -> tuple[int, int, int, int]:
    cost = costs(trace)
    return sum(c.macs for c in cost), sum(c.flops for c in cost), sum(c.read for c in cost), sum(c.write for c in cost)


def run_on(device: str, model: nn.Module, x: torch.Tensor) -> Trace:
    return _Run(model, (x,), {}, "net", precision("fp32"), None, (), None).fake(device)


@pytest.mark.skipif(not torch.backends.cuda.is_built(), reason="a torch built without CUDA has no complete fake GPU")
def test_both_fake_devices_give_the_same_counts() -> None:
    model, x = Net().eval(), torch.ones(2, 3, 6, 6)
    assert totals(run_on("cpu", model, x)) == totals(run_on("cuda", model, x))


def test_a_real_run_gives_the_same_macs_as_a_fake_one() -> None:
    model, x = Net().eval(), torch.ones(2, 3, 6, 6)
    real = _Run(model, (x,), {}, "net", precision("fp32"), None, (), None).real(None, "a test asks for it")
    assert real.run == "real"
    assert totals(real)[0] == totals(capture(model, (x,)))[0]


class Images(nn.Module):
    """Where layouts show: a flattened image, and a GroupNorm, which gives its result in the natural order."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 1)
        self.norm = nn.GroupNorm(2, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.second(self.norm(self.first(x)))
        return x.flatten(2).transpose(1, 2).reshape(-1)


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_layouts_are_those_of_a_run_on_channels_last_images(last: bool, real: bool) -> None:
    """The oracle is torch itself: the same model and images, laid out for real."""
    model, x = Images().eval(), torch.randn(2, 3, 6, 6)
    before = {name: (tensor.stride(), tensor.data_ptr()) for name, tensor in model.state_dict().items()}
    run = _Run(model, (x,), {}, "net", precision("fp32"), None, (), None)
    run.channels_last = last
    trace = run.real(None, "a test asks for it") if real else capture(model, (x,), channels_last=last)
    assert trace.layout == ("channels-last" if last else "natural")
    assert {name: (tensor.stride(), tensor.data_ptr()) for name, tensor in model.state_dict().items()} == before

    layout = torch.channels_last if last else torch.contiguous_format
    twin = Images().eval().to(memory_format=layout)
    found = [op.outputs[0].strides for op in trace.ops if op.name == "aten::convolution"]
    with torch.no_grad():
        first = twin.first(x.to(memory_format=layout))
        second = twin.second(twin.norm(first))
    assert found == [first.stride(), second.stride()]
    # A flattened image is contiguous where its channels are innermost: only else the reshape copies it.
    assert [op.name for op in trace.ops].count("aten::clone") == (0 if last else 1)


@pytest.mark.parametrize("context", [torch.enable_grad, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("training", [False, True])
def test_macs_and_params_are_the_same_in_every_mode(context: Any, training: bool) -> None:
    model, x = Net().train(training), torch.ones(2, 3, 6, 6)
    with context():
        trace = capture(model, (x,))
    conv, attention = 2 * 36 * 8 * 27, 2 * (36 * 4 * 8 * 8 + 2 * 36 * 36 * 8)
    # LSTM: per step and direction 4 x 6 x (input + 6), inputs of 8 and of 12; then a linear layer from 12 to 5.
    rnn, linear = 2 * 36 * 2 * (24 * (8 + 6) + 24 * (12 + 6)), 2 * 36 * 12 * 5
    assert totals(trace)[0] == conv + attention + rnn + linear


def test_inference_mode_inside_forward_is_seen_through() -> None:
    class Inside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.inference_mode():
                y = self.fc(x)
                return F.scaled_dot_product_attention(y, y, y)

    trace = capture(Inside(), (torch.ones(1, 2, 3, 4),))
    assert [op.name for op in trace.ops if not op.view] == ["aten::addmm", "modelstat::attention"]


def test_values_are_born_and_die_with_their_storages() -> None:
    class Chain(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            a = x + 1  # op 0, alive until it is let go after op 1
            b = a * 2  # op 1
            del a
            c = b.view(-1)  # op 2: a window on b
            c.relu_()  # op 3: still b's storage
            return c.sum()  # op 4

    trace = capture(Chain(), (torch.ones(4),))
    assert [op.name for op in trace.ops] == ["aten::add", "aten::mul", "aten::view", "aten::relu_", "aten::sum"]
    x, a, b, total = trace.values
    assert (x.kind, x.birth, x.death) == ("input", -1, 5)
    assert (a.kind, a.birth, a.death, a.bytes) == ("activation", 0, 1, 16)
    assert (b.birth, b.death) == (1, 4)
    assert (total.birth, total.output, total.bytes) == (4, True, 4)
    view = trace.ops[2]
    assert view.view
    assert view.inputs[0].value == view.outputs[0].value
    assert trace.ops[3].mutates == ("self",)


def test_outputs_that_nothing_reads_are_marked() -> None:
    pooled = capture(nn.MaxPool2d(2), (torch.ones(1, 1, 4, 4),))
    assert pooled.ops[0].unused_outputs == (1,)
    asked = capture(nn.MaxPool2d(2, return_indices=True), (torch.ones(1, 1, 4, 4),))
    assert asked.ops[0].unused_outputs == ()


def test_autocast_follows_cuda_and_shows_its_casts() -> None:
    trace = capture(nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)), (torch.ones(2, 4),), precision_name="amp-fp16")
    kinds = [(op.name, op.inputs[0].dtype, op.outputs[0].dtype) for op in trace.ops if not op.view]
    assert kinds == [
        ("aten::_to_copy", "float32", "float16"),  # bias
        ("aten::_to_copy", "float32", "float16"),  # input
        ("aten::_to_copy", "float32", "float16"),  # weight
        ("aten::addmm", "float16", "float16"),
        ("aten::_to_copy", "float16", "float32"),  # layer_norm is on CUDA's fp32 list
        ("aten::native_layer_norm", "float32", "float32"),
    ]
    assert {parameter.dtype for parameter in trace.parameters} == {"float32"}


def test_an_lstm_under_autocast_runs_in_half_precision() -> None:
    trace = capture(nn.LSTM(4, 3), (torch.ones(5, 2, 4),), precision_name="amp-fp16")
    (layer,) = (op for op in trace.ops if op.name == "modelstat::lstm_layer")
    assert {spec.dtype for name, spec in zip(layer.names, layer.inputs, strict=True) if name.startswith(("weight", "input"))} == {"float16"}


@pytest.mark.parametrize(("name", "item"), [("fp32", 4), ("fp16", 2), ("bf16", 2), ("fp64", 8), ("tf32", 4), ("amp-bf16", 4)])
def test_precision_sets_the_bytes_of_weights(name: str, item: int) -> None:
    trace = capture(nn.Linear(4, 3), (torch.ones(2, 4),), precision_name=name)
    assert sum(parameter.bytes for parameter in trace.parameters) == (4 * 3 + 3) * item
    assert trace.precision == name


def test_precision_is_the_models_own_by_default() -> None:
    assert capture(nn.Linear(4, 3).bfloat16(), (torch.ones(2, 4, dtype=torch.bfloat16),)).precision == "bf16"
    with pytest.raises(UsageError, match="unknown precision 'fp7': choose one of fp32"):
        capture(nn.Linear(4, 3), (torch.ones(2, 4),), precision_name="fp7")


def test_a_trace_survives_json() -> None:
    trace = capture(Net().eval(), (torch.ones(1, 3, 6, 6),))
    assert decode_trace(encode_trace(trace)) == trace


def test_inputs_of_every_kind() -> None:
    class Many(nn.Module):
        def forward(self, first: Any, *, extra: Any = None, flag: bool = False) -> Any:
            return {"out": [first["a"] + first["b"][0], None]}

    a = torch.ones(2)
    trace = capture(Many(), ({"a": a, "b": (torch.ones(2), 3)},), {"extra": torch.ones(1, dtype=torch.bool), "flag": True})
    assert [(given.name, given.shape, given.dtype) for given in trace.inputs] == [
        ("first.a", (2,), "float32"),
        ("first.b.0", (2,), "float32"),
        ("extra", (1,), "bool"),
    ]
    assert trace.outputs == ((2,),)


SEVEN_BILLION = """
import resource, torch
from torch import nn
from modelstat.trace.capture import capture
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with torch.device("meta"):
    blocks = [nn.Sequential(nn.Linear(4096, 11008), nn.SiLU(), nn.Linear(11008, 4096)) for _ in range(75)]
    model = nn.Sequential(nn.Embedding(32000, 4096), *blocks)
trace = capture(model, (torch.zeros(1, 128, dtype=torch.long),))
params = sum(parameter.elements for parameter in trace.parameters)
print(params, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_seven_billion_parameters_are_walked_without_memory() -> None:
    printed = subprocess.run([sys.executable, "-c", SEVEN_BILLION], capture_output=True, text=True, check=True).stdout.split()
    params, mebibytes = int(printed[0]), int(printed[1])
    assert params == 32000 * 4096 + 75 * (2 * 4096 * 11008 + 11008 + 4096)
    assert mebibytes < 300
