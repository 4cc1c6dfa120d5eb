from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from modelstat.hardware.database import find
from modelstat.predict.prediction import predict
from modelstat.predict.roofline import roofline
from modelstat.report.document import Document, build
from modelstat.report.json import encode
from modelstat.report.schema import schema, text
from tests.report.sample import CONV, ODD, PIXELS, RELU, conv_trace, net_trace

ROOT = Path(__file__).parents[2]
KEYS = {
    "document": [
        "schema", "versions", "convention", "warnings", "model", "inputs", "batch", "precision", "totals", "coverage", "layers", "gpus",
    ],
    "model": ["spec", "params", "trainable_params", "buffers"],
    "totals": ["params", "macs", "flops", "madd", "activations", "mem_read_bytes", "mem_write_bytes", "intensity", "weight_bytes"],
    "coverage": ["ops", "unknown_ops", "unknown_byte_share"],
    "layer": [
        "path", "type", "depth", "calls", "input_shapes", "output_shapes", "dtype", "params", "trainable_params", "macs", "flops", "madd",
        "mem_read_bytes", "mem_write_bytes", "intensity", "own",
    ],
    "own": ["macs", "flops", "madd", "mem_read_bytes", "mem_write_bytes"],
    "gpu": [
        "key", "name", "peak_flops", "peak_source", "bandwidth_bytes", "ridge", "bound", "attainable_flops", "ideal_ms", "ideal_upper_ms",
        "whole_model_ms", "fits", "layers",
    ],
    "gpu layer": ["path", "bound", "ideal_ms"],
}  # fmt: skip


def net_document(*gpus: str, level: str = "module", **changes: object) -> Document:
    trace, costs = net_trace(**changes)  # type: ignore[arg-type]
    boards = [find(gpu) for gpu in gpus]
    rooflines, predictions = ([one(trace, costs, board) for board in boards] for one in (roofline, predict))
    return build(trace, costs, rooflines, predictions=predictions, level=level)  # type: ignore[arg-type]


def test_the_conv2d_that_settles_conventions() -> None:
    trace, costs = conv_trace()
    totals = build(trace, costs).totals
    assert (totals.params, totals.macs, totals.flops, totals.madd) == (224, 884_736, 1_802_240, 1_769_472)
    assert (totals.mem_read_bytes, totals.mem_write_bytes) == (50_048, 131_072)
    assert totals.intensity == 1_802_240 / 181_120
    assert totals.weight_bytes == 224 * 4
    assert totals.activations == 8 * 32 * 128


def test_a_row_holds_what_is_below_it() -> None:
    rows = {row.path: row for row in net_document().layers}
    assert list(rows) == ["", "block", "block.conv", "block.act", "spare"]
    assert rows["block"].flops == CONV.flops + RELU.flops
    assert rows["block"].own.flops == 0
    assert rows[""].mem_read_bytes == CONV.read + RELU.read + ODD.read
    assert rows[""].own.mem_read_bytes == ODD.read
    assert (rows[""].params, rows["block"].params, rows["block.act"].params) == (224 + 8, 224, 0)
    assert (rows[""].trainable_params, rows["spare"].trainable_params) == (224, 0)
    assert rows["block.act"].intensity == 8 * PIXELS / (2 * 4 * 8 * PIXELS)


def test_what_is_not_there_is_null_and_not_zero() -> None:
    spare = net_document().layers[-1]
    assert (spare.calls, spare.flops, spare.intensity, spare.dtype) == (0, 0, None, None)


def test_model_and_coverage() -> None:
    document = net_document()
    assert msgspec.to_builtins(document.model) == {"spec": "net", "params": 232, "trainable_params": 224, "buffers": 5}
    assert document.totals.weight_bytes == 4 * (224 + 8 + 5)
    assert document.coverage.ops == 3, "a view is no op"
    assert msgspec.to_builtins(document.coverage.unknown_ops) == ({"name": "odd::sum", "count": 1, "bytes": ODD.bytes},)
    assert document.coverage.unknown_byte_share == ODD.bytes / (CONV.bytes + RELU.bytes + ODD.bytes)


def test_warnings_name_notes_idle_modules_and_unknown_ops() -> None:
    document = net_document(notes=("ran for real",))
    assert document.warnings[:2] == ("ran for real", "never called: spare")
    assert "odd::sum (1x)" in document.warnings[2]


def test_families_share_out_the_total() -> None:
    document = net_document()
    assert [family.family for family in document.families] == ["convolution", "activation", "unknown"]
    assert sum(family.flops for family in document.families) == document.totals.flops


def test_a_gpu_is_the_roofline_in_milliseconds() -> None:
    (gpu,) = net_document("v100").gpus
    memory = [cost.bytes / 900e9 for cost in (CONV, RELU, ODD)]
    compute = [CONV.flops / 14e12, RELU.flops / 7e12, 0.0]
    assert gpu.ridge == pytest.approx(14e12 / 900e9)
    assert gpu.ideal_ms == pytest.approx(1e3 * sum(map(max, zip(memory, compute, strict=True))))
    assert gpu.ideal_upper_ms == pytest.approx(1e3 * (sum(memory) + sum(compute)))
    assert gpu.whole_model_ms == pytest.approx(1e3 * max((CONV.flops + RELU.flops) / 14e12, sum(memory)))
    assert [row.path for row in gpu.layers] == ["", "block", "block.conv", "block.act", "spare"]
    assert gpu.layers[0].ideal_ms == pytest.approx(gpu.ideal_ms)
    assert gpu.layers[3].bound == "memory"
    assert (gpu.layers[4].bound, gpu.layers[4].ideal_ms) == (None, 0.0)
    assert gpu.memory_bound_share == pytest.approx(1 - (gpu.compute_bound_share or 0))


def test_a_missing_peak_is_null_with_a_reason() -> None:
    document = net_document("h100", "1080 ti", precision="tf32")
    assert document.gpus[0].missing is None
    pascal = document.gpus[1]
    assert (pascal.peak_flops, pascal.ridge, pascal.ideal_ms, pascal.bound, pascal.layers[0].ideal_ms) == (None,) * 5
    assert pascal.missing is not None
    assert "tf32" in pascal.missing


@pytest.mark.parametrize(("gpu", "precision", "said"), [("a100", "fp32", True), ("a100", "tf32", False), ("v100", "fp32", False)])
def test_the_tf32_default_of_pytorch_is_said_from_ampere_on(gpu: str, precision: str, said: bool) -> None:
    notes = net_document(gpu, precision=precision).gpus[0].notes
    assert any("--precision tf32" in note for note in notes) == said


def test_siblings_are_named() -> None:
    (gpu,) = net_document("v100").gpus
    assert gpu.name not in gpu.siblings
    assert any("SXM2" in name for name in gpu.siblings)


@pytest.mark.parametrize("level", ["module", "op"])
def test_key_names_and_their_order(level: str) -> None:
    found = json.loads(encode([net_document("v100", level=level)]))
    assert ("ops" in found) == ("ops" in found["gpus"][0]) == (level == "op")
    parts = {
        "document": found, "model": found["model"], "totals": found["totals"], "coverage": found["coverage"], "layer": found["layers"][0],
        "own": found["layers"][0]["own"], "gpu": found["gpus"][0], "gpu layer": found["gpus"][0]["layers"][0],
    }  # fmt: skip
    for name, part in parts.items():
        keys = [key for key in part if key in KEYS[name]]
        assert keys == KEYS[name], name


def test_ops_are_listed_without_views() -> None:
    document = net_document("v100", level="op")
    assert document.ops is not msgspec.UNSET
    assert [(op.path, op.name, op.known) for op in document.ops] == [
        ("block.conv", "aten::convolution", "formula"),
        ("block.act", "aten::relu", "formula"),
        ("", "odd::sum", "unknown"),
    ]
    assert document.ops[0].input_shapes == ((1, 3, 32, 128), (8, 3, 3, 3), (8,))
    times = document.gpus[0].ops
    assert times is not msgspec.UNSET
    assert len(times) == len(document.ops)


def test_the_committed_schema_is_the_generated_one() -> None:
    committed = (ROOT / "docs" / "report.schema.json").read_text(encoding="utf-8")
    assert committed == text(), "run python -m modelstat.report.schema docs/report.schema.json"


@pytest.mark.parametrize("gpus", [(), ("v100",), ("v100", "1080 ti", "tpu v4")])
@pytest.mark.parametrize("level", ["module", "op"])
def test_real_json_follows_the_schema(gpus: tuple[str, ...], level: str) -> None:
    checker = jsonschema.Draft202012Validator(schema())
    checker.check_schema(schema())
    one = net_document(*gpus, level=level)
    checker.validate(json.loads(encode([one])))
    checker.validate(json.loads(encode([one, net_document(precision="tf32", batch=None)])))
    broken = json.loads(encode([one]))
    del broken["totals"]["macs"]
    assert not checker.is_valid(broken)


def test_every_key_is_documented() -> None:
    page = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    missing = {
        key for name, definition in schema()["$defs"].items() for key in definition.get("properties", {}) if f"`{key}`" not in page
    }  # fmt: skip
    assert not missing


def test_json_is_one_document_or_an_array() -> None:
    one = net_document()
    assert msgspec.json.decode(encode([one]), type=Document) == one
    assert msgspec.json.decode(encode([one, one]), type=list[Document]) == [one, one]
