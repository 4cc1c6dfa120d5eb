"""Memory and training in the report: the JSON's objects, and the lines below the table."""

from __future__ import annotations

import jsonschema
import msgspec
import pytest
import torch
from torch import nn

import modelstat
from modelstat.errors import UsageError
from modelstat.report.json import encode
from modelstat.report.schema import schema
from modelstat.report.summary import findings, training

LAYERS = {"0": 8 * 32, "2": 32 * 4}
"""Elements of the weights of the two linear layers below."""


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)).eval()


def analysis(*gpus: str, optimizer: str | None = "adam") -> modelstat.Analysis:
    return modelstat.analyze(net(), torch.ones(5, 8), gpu=list(gpus), training=optimizer)


def test_the_peak_is_in_the_totals_and_explained_beside_them() -> None:
    document = analysis(optimizer=None).document
    weights, activations = 4 * (8 * 32 + 32 + 32 * 4 + 4), 4 * 5 * (8 + 32 + 32)
    assert document.totals.peak_memory_bytes == weights + activations
    held = document.memory
    assert (held.weight_bytes, held.activation_bytes, held.peak_bytes) == (weights, activations, weights + activations)
    assert (held.peak_op, held.peak_path) == ("aten::relu", "1")


def test_training_is_there_where_it_was_asked_for() -> None:
    plain, trained = analysis(optimizer=None), analysis()
    assert plain.training is None
    assert "training" not in msgspec.json.decode(plain.to_json())
    step = trained.training
    assert step is not None
    assert step == trained.document.training
    first, last = (5 * elements for elements in LAYERS.values())
    assert (step.forward_macs, step.backward_macs) == (first + last, first + 2 * last)
    assert [(layer.path, layer.backward_macs) for layer in step.layers] == [("", first + 2 * last), ("0", first), ("1", 0), ("2", 2 * last)]
    assert (step.optimizer, step.peak_phase, step.peak_path, step.run, step.unknown_ops) == ("adam", "backward", "1", "fake", ())
    parts = step.weight_bytes + step.gradient_bytes + step.optimizer_bytes + step.activation_bytes
    assert step.weight_bytes < step.peak_bytes <= parts
    assert trained.totals == plain.totals, "the forward at inference is what it was"
    jsonschema.validate(msgspec.json.decode(trained.to_json()), schema())
    assert msgspec.json.decode(encode([trained.document]), type=type(trained.document)) == trained.document


def test_the_lines_below_the_table() -> None:
    trained = analysis("v100")
    lines = dict(findings(trained.document))
    assert lines["Memory"].startswith("3.12 kB at peak in 1 (weights 1.68 kB, activations 1.44 kB), 0.0 % of the memory of Tesla V100")
    assert lines["Memory"].endswith("fits (peak memory, up to 95 %)")
    counts, peak, parts = (text for _, text in training([trained.document]))
    # Forward: products 2 x 5 x (256 + 128), biases 5 x (32 + 4), ReLU 5 x 32. Back: products 2 x 5 x (256 + 2 x 128), sums for the
    # biases and the ReLU as many as before.
    forward, backward = 2 * 5 * 384 + 5 * 36 + 5 * 32, 2 * 5 * 512 + 5 * 36 + 5 * 32
    assert (forward, backward) == (4180, 5460)
    assert counts == "9.64 k FLOPs a step: forward 4.18 k, backward 5.46 k, 2.31 times the forward"
    assert "at peak in the backward of 1, " in peak
    assert peak.endswith("fits (peak memory, up to 95 %)")
    for part in ("weights 1.68 kB", "gradients 1.68 kB", "adam's state 3.36 kB", "activations "):
        assert part in parts
    assert "no state of sgd" in training([analysis(optimizer="sgd").document])[2][1]
    assert training([analysis(optimizer=None).document]) == []


def test_several_documents_say_which_they_are() -> None:
    lines = training([analysis().document, analysis(optimizer=None).document, analysis().document])
    assert [label for label, _ in lines] == ["Training", "", "", "", "", ""]
    assert lines[3][1].startswith("batch as given, fp32: ")


def test_a_gpu_that_is_too_small() -> None:
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(1000, 600_000, bias=False), nn.Linear(600_000, 1000, bias=False))
    result = modelstat.analyze(model, torch.empty(1, 1000, device="meta"), gpu="t4", training="adam")
    # 4.8 GB of weights fit into 16 GiB; with as many gradients and twice as much state they do not.
    lines = dict(findings(result.document))
    assert "fits (peak memory" in lines["Memory"]
    assert "does not fit (peak memory" in training([result.document])[1][1]


def test_an_unknown_op_of_the_backward_is_named() -> None:
    @torch.library.custom_op("modelstat_tests::mystery", mutates_args=())
    def mystery(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @mystery.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    mystery.register_autograd(lambda context, grad: mystery(grad))

    class Mysterious(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return mystery(self.fc(x))

    result = modelstat.analyze(Mysterious(), torch.ones(2, 4), training="sgd")
    assert result.training is not None
    assert [(op.name, op.count) for op in result.training.unknown_ops] == [("modelstat_tests::mystery", 2)]
    assert any("no formula for modelstat_tests::mystery (2x) in training" in warning for warning in result.warnings)


def test_an_optimizer_that_does_not_exist_is_refused_before_anything_runs() -> None:
    with pytest.raises(UsageError, match="unknown optimizer 'lion'"):
        analysis(optimizer="lion")
