"""The rows of a sweep hold what the analysis of the same model says."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from modelstat import __version__, analyze
from modelstat.api import trace_spec
from modelstat.hardware.database import resolve
from modelstat.records import Input
from modelstat.sweeping.grid import Grid, Job
from modelstat.sweeping.row import Layer, Row
from modelstat.sweeping.rows import RangeError, evaluated, failed, shapes
from modelstat.sweeping.schema import arrow_schema, columns, table

DOCS = Path(__file__).parents[2] / "docs" / "sweep.md"


def job(models: str, *, precisions: tuple[str | None, ...] = (None,), gpus: str = "", layers: bool = False) -> Job:
    (found,) = Grid((f"{models}:good",), ("3x32x128",), (1,), precisions, resolve([gpus]) if gpus else (), layers).jobs()
    return found


def test_counts_of_a_convolution(models: str) -> None:
    """Conv2d(3, 8, 3, padding=1) and ReLU on 3x32x128."""
    this = job(models)
    (row,), layers = evaluated(this, trace_spec(this.target, "3x32x128", 1))
    pixels = 32 * 128
    assert (row.params, row.macs) == (8 * (27 + 1), 27 * 8 * pixels)
    assert row.flops == 2 * 27 * 8 * pixels + 8 * pixels + 8 * pixels  # the bias, and the ReLU
    assert row.madd == 2 * 27 * 8 * pixels + 8 * pixels
    assert row.mem_read_bytes == 4 * (3 * pixels + 224) + 4 * 8 * pixels
    assert row.mem_write_bytes == 2 * 4 * 8 * pixels
    assert (row.activations, row.modules, row.ops, row.unknown_ops, row.unknown_byte_share) == (8 * pixels, 3, 2, "", 0.0)
    assert (row.spec, row.origin, row.shapes, row.inputs, row.batch) == (this.spec, "file", "1x3x32x128", "3x32x128", 1)
    assert (row.precision, row.status, row.reason, row.run, row.modelstat) == ("fp32", "ok", None, "fake", __version__)
    assert (row.gpu, row.ideal_ms, row.weight_bytes) == (None, None, 4 * 224)
    assert "torch " in str(row.versions)
    assert layers == ()


def test_rows_are_the_analysis(models: str) -> None:
    this = job(models, precisions=("fp32", "tf32"), gpus="a100,v100,t4", layers=True)
    rows, layers = evaluated(this, trace_spec(this.target, "3x32x128", 1, "fp32"))
    assert [(row.precision, row.gpu) for row in rows] == [(p, gpu.key) for p in ("fp32", "tf32") for gpu in this.gpus]
    for precision in ("fp32", "tf32"):
        document = analyze(this.target, "3x32x128", batch=1, precision=precision, gpu=this.gpus).document
        for entry in document.gpus:
            (row,) = (row for row in rows if (row.precision, row.gpu) == (precision, entry.key))
            for name in ("peak_flops", "ridge", "bound", "attainable_flops", "ideal_ms", "ideal_upper_ms", "whole_model_ms", "fits",
                         "bandwidth_bytes", "peak_column", "compute_ms", "memory_ms", "missing", "execution", "predicted_ms",
                         "predicted_low_ms", "predicted_high_ms", "predicted_bound", "idle_ms", "throughput"):  # fmt: skip
                assert getattr(row, name) == getattr(entry, name), name
            for name, value in msgspec.structs.asdict(document.totals).items():
                assert getattr(row, name) == value, name
            mine = [layer for layer in layers if (layer.precision, layer.gpu) == (precision, entry.key)]
            assert [layer.path for layer in mine] == [layer.path for layer in document.layers]
            assert [layer.macs for layer in mine] == [layer.macs for layer in document.layers]
            for name in ("ideal_ms", "predicted_ms", "predicted_bound"):
                assert [getattr(layer, name) for layer in mine] == [getattr(time, name) for time in entry.layers], name
            assert sum(layer.own_flops for layer in mine) == row.flops
    t4 = [row for row in rows if row.gpu == this.gpus[2].key]
    assert t4[0].missing is None
    assert t4[1].ideal_ms is None
    assert "no tf32 peak" in str(t4[1].missing)


def test_a_failure_has_a_row_per_point(models: str) -> None:
    this = job(models, precisions=("fp32", "tf32"), gpus="a100,t4")
    rows = failed(this, 1, "crash", "two\nlines " + "x" * 5000)
    assert [(row.precision, row.gpu) for row in rows] == [(p, gpu.key) for p in ("fp32", "tf32") for gpu in this.gpus]
    assert {row.status for row in rows} == {"crash"}
    assert str(rows[0].reason).startswith("two lines xxx")
    assert len(str(rows[0].reason)) == 2000
    assert (rows[0].macs, rows[0].batch, rows[0].gpu_name) == (None, 1, this.gpus[0].name)
    assert len(failed(job(models), None, "error", "r")) == 1


def test_a_count_that_no_column_holds(models: str) -> None:
    (this,) = Grid((f"{models}:good",), ("3x32x128",), (2**43,)).jobs()
    with pytest.raises(RangeError, match=r"flops is .*e\+19, more than a column of 64 bits holds"):
        evaluated(this, trace_spec(this.target, "3x32x128", 2**43, cache=False))


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ([Input("x", (1, 3, 4), "float32")], "1x3x4"),
        ([Input("x", (), "float32")], "scalar"),
        ([Input("x", (1, 3), "float16")], "x=1x3:float16"),
        ([Input("a", (1,), "float32"), Input("b", (2, 2), "int64")], "a=1,b=2x2:int64"),
    ],
)
def test_shapes(inputs: list[Input], text: str) -> None:
    assert shapes(inputs) == text


@pytest.mark.parametrize("kind", [Row, Layer])
def test_the_schema_is_the_struct(kind: type[Row | Layer]) -> None:
    schema = arrow_schema(kind)
    assert schema.names == [field.name for field in msgspec.structs.fields(kind)]
    assert {str(field.type) for field in schema} <= {"string", "int64", "double", "bool"}
    assert table([], kind).num_rows == 0


@pytest.mark.parametrize("kind", [Row, Layer])
def test_every_column_is_documented(kind: type[Row | Layer]) -> None:
    heading = {Row: "## Columns of the results", Layer: "## Columns of the layers"}[kind]
    text = DOCS.read_text(encoding="utf-8").partition(heading)[2].partition("\n## ")[0]
    documented = {line.split("|")[1].strip(" `"): line.split("|")[2].strip() for line in text.splitlines() if line.startswith("| `")}
    words = {str: "string", int: "int64", float: "double", bool: "bool"}
    assert documented == {name: words[plain] for name, plain in columns(kind).items()}
