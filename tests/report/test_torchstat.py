"""torchstat's own numbers: its recorded output for eight models, and formulas whose products are written out."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from modelstat.cost.record import Cost
from modelstat.cost.registry import costs
from modelstat.records import Module, Op, Trace
from modelstat.report.torchstat import TorchstatReport, render, torchstat_rows
from modelstat.report.torchstat_layers import Counts, counts
from tests.report.sample import conv_trace, net_trace, spec, trace

GOLDEN: dict[str, dict[str, Any]] = {
    each["model"]: each
    for each in json.loads((Path(__file__).parent / "data" / "torchstat-0.0.7.json").read_text(encoding="utf-8"))["models"]
}
ARGUMENTS: dict[str, dict[str, Any]] = {"googlenet": {"init_weights": False}}


def traced(model: Any, *shape: int) -> Trace:
    import torch

    from modelstat.trace.capture import capture

    with torch.device("meta"):
        return capture(model().eval(), (torch.empty(1, *shape),))


def golden_trace(name: str) -> Trace:
    from torch import nn

    if name == "conv3_8":
        return traced(lambda: nn.Sequential(nn.Conv2d(3, 8, 3, padding=1)), *GOLDEN[name]["input"])
    torchvision = pytest.importorskip("torchvision", reason="the recorded models are torchvision's")
    return traced(lambda: getattr(torchvision.models, name)(**ARGUMENTS.get(name, {})), *GOLDEN[name]["input"])


@pytest.mark.parametrize("name", GOLDEN)
def test_every_layer_and_total_is_torchstats(name: str) -> None:
    walked = golden_trace(name)
    report = torchstat_rows(walked, costs(walked))
    for row, layer in zip(report.rows, GOLDEN[name]["layers"], strict=True):
        found = {
            "name": row.name,
            "inp": list(row.input_shape),
            "out": list(row.output_shape),
            "params": row.params,
            "memory_mb": pytest.approx(row.memory / 2**20, abs=1e-6),  # recorded with six decimals
            "madd": row.madd,
            "flops": row.flops,
            "mem": [row.read, row.write],
        }
        assert found == layer
    total = report.total
    assert {
        "params": total.params,
        "memory_mb": total.memory / 2**20,
        "madd": total.madd,
        "flops": total.flops,
        "mem_rw": total.read + total.write,
    } == GOLDEN[name]["total"]
    named = {row.type for row in report.rows if row.unknown}
    # Containers that hold nothing were printed as unsupported as well; they have no row.
    assert named <= set(GOLDEN[name]["unsupported"])
    assert {each for each in GOLDEN[name]["unsupported"] if each != "Sequential"} == named


CONV = {"in_channels": 8, "out_channels": 4, "kernel_size": [3, 5], "groups": 2, "bias": True}
PLAIN = {"inplace": False}


@pytest.mark.parametrize(
    ("type_", "attributes", "inputs", "outputs", "expected"),
    [
        # K = 3 x 5 x 8 / 2 = 60 products per output, 4 x 60 weights and 4 biases
        ("Conv2d", CONV, (1, 8, 6, 6), (1, 4, 4, 2), Counts(32 * (60 + 59 + 1), 32 * (60 + 1), 8 * 36 + 4 * 60 + 4, 32)),
        ("Conv2d", {**CONV, "bias": False}, (1, 8, 6, 6), (1, 4, 4, 2), Counts(32 * (60 + 59), 32 * 60, 8 * 36 + 4 * 60, 32)),
        # per input position, whatever the output's size
        ("ConvTranspose2d", CONV, (1, 8, 6, 6), (1, 4, 12, 12), Counts(madd=36 * 4 * (60 + 59 + 1))),
        ("Linear", {"in_features": 10, "out_features": 3, "bias": True}, (1, 10), (1, 3), Counts(3 * 19, 3 * 10, 10 + 30 + 3, 3)),
        ("Linear", {"in_features": 10, "out_features": 3, "bias": False}, (1, 7, 10), (1, 7, 3), Counts(21 * 19, 210, 70 + 30, 21)),
        ("Bilinear", {"in1_features": 2, "in2_features": 3, "out_features": 4}, (1, 2), (1, 4), Counts(madd=4 * (2 * (2 * 3 + 3) - 1))),
        ("BatchNorm2d", {"affine": True}, (1, 4, 5, 5), (1, 4, 5, 5), Counts(400, 200, 100 + 8, 100)),
        ("BatchNorm2d", {"affine": False}, (1, 4, 5, 5), (1, 4, 5, 5), Counts(400, 100, 100 + 8, 100)),
        ("ReLU", PLAIN, (1, 4, 5, 5), (1, 4, 5, 5), Counts(100, 100, 100, 100)),
        ("ReLU6", PLAIN, (2, 50), (2, 50), Counts(100, 100, 100, 100)),
        ("LeakyReLU", PLAIN, (1, 100), (1, 100), Counts(None, 100, 100, 100)),
        ("ELU", PLAIN, (1, 100), (1, 100), Counts(None, 100, 100, 100)),
        ("PReLU", {"num_parameters": 4}, (1, 4, 25), (1, 4, 25), Counts(None, 100, 104, 100)),
        ("Softmax", {"dim": 1}, (1, 100), (1, 100), Counts(madd=100 + 99 + 100)),
        ("MaxPool2d", {"kernel_size": 3}, (1, 2, 9, 9), (1, 2, 3, 3), Counts(18 * 8, 162, 162, 18)),
        ("MaxPool2d", {"kernel_size": [3, 2]}, (1, 2, 9, 9), (1, 2, 3, 4), Counts(24 * 5, 162, 162, 24)),
        ("AvgPool2d", {"kernel_size": 3}, (1, 2, 9, 9), (1, 2, 3, 3), Counts(18 * 9, 162, 162, 18)),
        ("Upsample", {"scale_factor": 2}, (1, 5, 4, 4), (1, 5, 8, 8), Counts(flops=64)),
        ("Dropout", {"p": 0.5}, (1, 100), (1, 100), Counts()),
        ("Conv2d", {}, (1, 8, 6, 6), (1, 4, 4, 2), Counts()),
    ],
)  # fmt: skip
def test_formulas(type_: str, attributes: dict[str, Any], inputs: tuple[int, ...], outputs: tuple[int, ...], expected: Counts) -> None:
    assert counts(Module("layer", type_, 1, attributes=attributes), inputs, outputs) == expected


def test_a_layer_called_twice_shows_its_last_call_at_its_first_path() -> None:
    shape, later = ((1, 4, 2, 2),), ((1, 4, 3, 3),)
    act = {"type": "ReLU", "depth": 1, "parent": 0, "instance": 1, "attributes": PLAIN}
    modules = (
        Module("", "Net", 0, leaf=False, calls=1),
        Module("a", calls=2, input_shapes=shape, output_shapes=shape, last_input_shapes=later, last_output_shapes=later, **act),  # type: ignore[arg-type]
        Module("b", calls=1, input_shapes=((1, 4, 9, 9),), output_shapes=((1, 4, 9, 9),), **act),  # type: ignore[arg-type]
    )
    sizes = ((1, 2), (2, 9), (1, 3))
    ops = tuple(Op("aten::relu", "", (spec(1, 4, n, n, value=0),), ("self",), (spec(1, 4, n, n, value=1),), module=at) for at, n in sizes)
    work = tuple(Cost(flops=4 * n * n) for _, n in sizes)
    (row,) = torchstat_rows(trace(modules, ops), work).rows
    assert (row.name, row.output_shape, row.madd) == ("a", (4, 3, 3), 36)
    assert row.unknown == ()


def test_never_called_is_zero_and_said() -> None:
    walked, work = net_trace()
    report = torchstat_rows(walked, work)
    spare = report.rows[-1]
    assert (spare.name, spare.called, spare.unknown) == ("spare", False, ())
    assert (spare.input_shape, spare.params, spare.memory, spare.madd, spare.read) == ((0, 0, 0), 0, 0, 0, 0)
    assert "never called: spare" in report.notes


def test_what_torchstat_leaves_out_is_in_the_second_total_or_said() -> None:
    from torch import nn

    walked = traced(lambda: nn.Sequential(nn.Linear(6, 4), nn.Sigmoid(), nn.LeakyReLU()), 6)
    report = torchstat_rows(walked, costs(walked))
    assert [row.unknown for row in report.rows] == [(), ("MAdd", "Flops", "MemRead(B)", "MemWrite(B)"), ("MAdd",)]
    assert report.total.madd == 4 * (2 * 6 - 1)
    assert report.complete.madd == report.total.madd + 4 * 4 + costs(walked)[-1].madd
    assert report.complete.flops == report.total.flops + 4 * 4, "a sigmoid is 4 operations per element"
    assert report.complete.read == report.total.read + 4 * 4
    leaky = next(line for line in text(report).splitlines() if line.startswith("2 *")).split()
    assert [cell.endswith("*") for cell in leaky[-5:]] == [True, False, False, False, False], "torchstat knows all but its MAdd"
    outside = torchstat_rows(*net_trace())
    assert any(note.startswith("not in this table: 1 ops outside of layers") for note in outside.notes)


def test_bytes_are_those_of_the_real_dtype() -> None:
    import torch
    from torch import nn

    from modelstat.trace.capture import capture

    walked = capture(nn.Linear(6, 4).eval(), (torch.empty(1, 6),), precision_name="fp16")
    (row,) = torchstat_rows(walked, costs(walked)).rows
    assert (row.read, row.write, row.memory) == (2 * (6 + 24 + 4), 2 * 4, 2 * 4)


def test_the_whole_batch_is_counted() -> None:
    import torch
    from torch import nn

    from modelstat.trace.capture import capture

    walked = capture(nn.Linear(6, 4).eval(), (torch.empty(5, 6),))
    (row,) = torchstat_rows(walked, costs(walked)).rows
    assert (row.output_shape, row.flops, row.read) == ((4,), 5 * 4 * 6, 4 * (5 * 6 + 24 + 4))


def text(report: TorchstatReport) -> str:
    file = io.StringIO()
    render(report, file)
    return file.getvalue()


def test_the_printed_table() -> None:
    walked, work = conv_trace()
    lines = text(torchstat_rows(walked, work)).splitlines()
    heads = "module name|input shape|output shape|params|memory(MB)|MAdd|Flops|MemRead(B)|MemWrite(B)|MemR+W(B)"
    assert "|".join(head.strip() for head in lines[0].split("  ") if head.strip()) == heads
    assert " ".join(lines[1].split()) == "Conv2d 3 32 128 8 32 128 224 0.12 1,769,472 917,504 50,048 131,072 181,120"
    assert " ".join(lines[2].split()) == "total 224 0.12 1,769,472 917,504 50,048 131,072 181,120"
    assert "Flops/memory: 7.00 FLOP/B" in lines, "917,504 / (8 x 32 x 128 x 4)"
    assert "total with *" not in "".join(lines)


def test_duration_is_a_column_only_where_it_was_measured() -> None:
    walked, work = net_trace()
    timed = torchstat_rows(walked, work, {2: 0.003, 3: 0.001})
    assert [row.duration for row in timed.rows] == [0.003, 0.001, 0.0]
    shown = text(timed)
    assert "duration[%]" in shown
    assert "75.0 %" in shown
    assert "duration" not in text(torchstat_rows(walked, work))


def test_unknown_layers_are_marked() -> None:
    walked, work = net_trace()
    odd = tuple(Module(**{**{name: getattr(each, name) for name in each.__struct_fields__}, "attributes": {}}) for each in walked.modules)
    report = torchstat_rows(trace(odd, walked.ops, walked.parameters), work)
    shown = text(report)
    assert "block.conv *" in shown
    assert "total with *" in shown
    assert "* a true value, not known to torchstat and zero in its total: Conv2d, ReLU" in shown
    (line,) = (line for line in shown.splitlines() if line.startswith("block.conv *"))
    true = (work[0].madd, work[0].flops - work[0].macs, work[0].read, work[0].write, work[0].bytes)
    assert line.split()[-5:] == [f"{value:,}*" for value in true]
    assert report.total.madd == 0
    assert report.complete.madd == work[0].madd + work[1].madd
    assert report.complete.flops == work[0].flops - work[0].macs + work[1].flops
    assert report.total.flops_per_byte == 0


def test_no_memory_has_no_ratio() -> None:
    report = torchstat_rows(trace((Module("", "Net", 0, leaf=False),), ()), ())
    assert report.total.flops_per_byte is None
    assert "Flops/memory: -" in text(report)
