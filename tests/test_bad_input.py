"""Inputs and models that other tools choke on: each works, or says in one line what is wrong and the way out."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import modelstat
from modelstat.analysis import Analysis
from modelstat.cost.registry import costs
from modelstat.errors import ModelstatError, TraceError
from modelstat.hardware.database import find
from modelstat.trace.capture import capture
from tests.modes.counting import Call, count, parameter, zeros


def net() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))


@pytest.mark.parametrize("training", [False, True])
def test_a_batch_of_none_costs_nothing_but_weights(training: bool) -> None:
    counted = count(net().train(training), zeros(0, 3, 6, 6))
    assert counted[:2] == (4 * 27 + 4 + 8 + 4 * 2 + 2, 0)
    analysis = Analysis.from_trace(counted.trace, [find("v100")])
    assert (analysis.totals.macs, analysis.totals.mem_write_bytes) == (0, 8 * training)  # BatchNorm counts the batches that it has seen
    assert analysis.gpus[0].ideal_ms is not None
    assert "0x" in str(analysis)


@pytest.mark.parametrize(
    "model",
    [
        nn.LSTM(4, 3), nn.MultiheadAttention(4, 2), nn.TransformerEncoderLayer(4, 2, 8), nn.Embedding(5, 4), nn.LayerNorm(4),
        Call(lambda m, x: x.softmax(-1) @ x.transpose(-1, -2)), Call(lambda m, x: torch.cat([x, x]).mean()), nn.Upsample(scale_factor=2),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_no_sequences(model: nn.Module) -> None:
    given = torch.zeros(3, 0, dtype=torch.long) if isinstance(model, nn.Embedding) else zeros(3, 0, 4)
    given = zeros(0, 3, 4) if isinstance(model, nn.Upsample) else given
    inputs = (given, given, given) if isinstance(model, nn.MultiheadAttention) else (given,)
    assert count(model.eval(), *inputs).macs == 0


def test_an_empty_axis_that_torch_refuses_says_so() -> None:
    with pytest.raises(TraceError, match=r"^Conv2d raised: .*does the input fit the model\? give another with --input\)$"):
        capture(nn.Conv2d(3, 4, 3), (zeros(1, 3, 0, 0),))


def test_tensors_without_axes() -> None:
    counted = count(
        Call(lambda m, x, y: (x * m.scale + y).sin(), scale=nn.Parameter(torch.tensor(2.0))), torch.tensor(3.0), torch.tensor(1.0)
    )
    assert counted.params == 1
    assert counted.trace.inputs[0].shape == ()
    assert sum(cost.flops for cost in costs(counted.trace)) == 1 + 1 + 1
    assert "scalar" in str(Analysis.from_trace(counted.trace))


def test_not_a_number_is_a_number_like_any_other() -> None:
    """0/0 and log(-1) inside, and NaN as the values of an input and of a weight."""
    linear = nn.Linear(4, 4)
    nn.init.constant_(linear.weight, float("nan"))
    model = Call(lambda m, x: (m.fc(x / 0.0)).log(), fc=linear)
    assert count(model, torch.full((2, 4), float("nan"))).macs == 32
    branch = Call(lambda m, x: m.fc(x) if (x / 0.0).isnan().all().item() else x, fc=linear)
    assert count(branch, zeros(2, 4)).macs == 32


def test_a_model_that_refuses_nan_is_quoted() -> None:
    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        if torch.isnan(x / 0.0).any():
            raise FloatingPointError("NaN in the\nfirst layer")
        return x

    with pytest.raises(TraceError, match=r"^Call raised: FloatingPointError: NaN in the first layer \("):
        capture(Call(forward), (zeros(2, 4),))


CUDA: list[tuple[str, Callable[..., Any]]] = [
    (".cuda()", lambda m, x: m.fc(x.cuda())),
    ("device='cuda'", lambda m, x: m.fc(x) + torch.ones(4, device="cuda")),
    (".to('cuda')", lambda m, x: m.fc(x.to("cuda"))),
    ("torch.cuda", lambda m, x: m.fc(x) * torch.cuda.current_device()),
    ("an exception about CUDA", lambda m, x: exec("raise RuntimeError('this kernel wants CUDA tensors')")),
]


@pytest.mark.skipif(torch.cuda.is_available(), reason="on a machine with a GPU these forwards may run")
@pytest.mark.parametrize("forward", [row[1] for row in CUDA], ids=[row[0] for row in CUDA])
def test_a_forward_that_needs_cuda_says_so(forward: Callable[..., Any]) -> None:
    model = nn.Sequential(Call(forward, fc=nn.Linear(4, 4)))
    with pytest.raises(TraceError, match=r"^Sequential needs CUDA in 0, and a forward that runs on the CPU is needed: ") as failure:
        capture(model, (zeros(2, 4),))
    assert "\n" not in str(failure.value)
    assert not model[0].fc.weight.is_meta  # type: ignore[union-attr]


def test_a_device_that_follows_the_input_is_fine() -> None:
    model = Call(lambda m, x: m.fc(x) + torch.ones(4, device=x.device).to(x.device), fc=nn.Linear(4, 4))
    assert count(model, zeros(2, 4)).macs == 32


def test_numbers_beyond_64_bits() -> None:
    """2^40 weights and 2^30 rows: 2^70 MACs. Python's integers have no end."""
    with torch.device("meta"):
        layer = nn.Linear(2**20, 2**20, bias=False)
    counted = count(layer, torch.empty(2**30, 2**20, device="meta"))
    assert counted[:2] == (2**40, 2**70)
    totals = Analysis.from_trace(counted.trace).totals
    assert (totals.flops, totals.weight_bytes, totals.mem_read_bytes) == (2**71, 2**42, 2**42 + 2**52)
    assert str(2**70) in Analysis.from_trace(counted.trace).to_json()


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (nn.Linear(4, 4), (zeros(2, 5),)),
        (nn.Linear(4, 4), ()),
        (nn.Linear(4, 4), (zeros(2, 4), zeros(2, 4))),
        (nn.Embedding(3, 4), (zeros(2, 4),)),
        (nn.Linear(4, 4), ("a text",)),
        (nn.ModuleList([nn.Linear(4, 4)]), (zeros(2, 4),)),
        (nn.Conv2d(3, 4, 3), (zeros(2, 3),)),
        (Call(lambda m, x: undefined_name), (zeros(2, 4),)),  # type: ignore[name-defined]  # noqa: F821
        (Call(lambda m, x: m(x)), (zeros(2, 4),)),
    ],
    ids=[
        "wrong width",
        "no input",
        "one too many",
        "floats for indices",
        "a text",
        "no forward",
        "too few axes",
        "a bug",
        "endless recursion",
    ],
)
def test_a_call_that_fails_is_one_line(model: nn.Module, inputs: tuple[Any, ...]) -> None:
    with pytest.raises(ModelstatError) as failure:
        capture(model, inputs)
    assert "\n" not in str(failure.value)
    assert type(model).__name__ in str(failure.value)
    assert len(str(failure.value)) < 500


STRICT = """
import torch
from torch import nn

@torch.library.custom_op("strict_tests::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2

twice.register_fake(lambda x: torch.empty_like(x))

class Net(nn.Module):
    def forward(self, x):
        return twice(x) + 1

def build():
    return Net(), (torch.zeros(3, 4),)
"""


def test_strict_names_the_op_with_its_share_of_the_bytes(tmp_path: Path) -> None:
    """The op reads and writes 12 elements, and so does the addition: a half each."""
    (tmp_path / "net.py").write_text(STRICT)

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "modelstat", f"{tmp_path / 'net.py'}:build", "--no-cache", *options]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    lenient = run()
    assert lenient.returncode == 0
    assert "strict_tests::twice (1x): 50.0 % of the bytes" in " ".join(lenient.stdout.split())
    strict = run("--strict")
    assert strict.returncode == 3
    assert "strict_tests::twice (50.0 % of the bytes)" in strict.stderr
    assert strict.stderr.count("\n") == 1
    assert "strict_tests::twice" in strict.stdout  # the report comes first


def test_an_error_names_the_module_deep_inside() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Sequential(nn.Linear(5, 2))))
    with pytest.raises(TraceError, match=r"^Sequential raised in 1\.1\.0: RuntimeError: "):
        capture(model, (zeros(2, 4),))


def test_weights_that_are_not_there_are_not_needed() -> None:
    with torch.device("meta"):
        model = Call(lambda m, x: x @ m.w if (x.sum() > 0).item() else x, w=parameter(4, 4))
    with torch.device("meta"):
        given = torch.zeros(2, 4)
    counted = count(model, given)
    assert counted.run == "real"
    assert "random weights" in counted.warnings[0]
    assert modelstat.analyze(net(), "3x6x6", batch=1).totals.macs == 16 * 4 * 27 + 4 * 2


@pytest.mark.parametrize("layer", [nn.LayerNorm(8), nn.RMSNorm(8), nn.GroupNorm(2, 8)], ids=lambda layer: type(layer).__name__)
@pytest.mark.parametrize("mode", ["eager", "compile"])
def test_a_norm_of_no_rows_takes_next_to_no_time(layer: nn.Module, mode: str) -> None:
    shape = (0, 8, 4, 4) if isinstance(layer, nn.GroupNorm) else (0, 8)
    (gpu,) = modelstat.analyze(layer.eval(), (torch.zeros(shape),), gpu="t4", mode=mode).gpus
    assert gpu.predicted_ms is not None
    assert gpu.predicted_ms < 0.1
