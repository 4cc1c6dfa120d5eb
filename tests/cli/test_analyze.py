"""The main job and its variants, run in this process."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
SHAPE = ("--input", "3x32x128")

RESNET50 = ("resnet50", "--input", "3x224x224")


def test_the_main_job(run: Run) -> None:
    """14.0e12 FLOP/s / 900e9 B/s = 15.56 FLOP/B."""
    code, out, err = run(*RESNET50, "--gpu", "v100", "--format", "json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["schema"] == "modelstat/1"
    assert document["totals"]["params"] == 25_557_032
    assert document["totals"]["macs"] == 4_089_184_256
    assert document["gpus"][0]["ridge"] == pytest.approx(14.0e12 / 900e9)
    assert round(document["gpus"][0]["ridge"], 2) == 15.56
    assert document["coverage"]["unknown_ops"] == []


def test_the_report_fits_100_columns_and_names_everything(run: Run) -> None:
    code, out, err = run(*RESNET50, "--gpu", "v100")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 100
    for text in ("resnet50", "1x3x224x224", "25.56 M", "V100 PCIe 32GB", "14.0 TFLOP/s", "900 GB/s", "15.56", "layer4", "total", "bound"):
        assert text in out
    assert "\x1b" not in out  # no colours where nobody looks


def test_the_convolution_of_the_readme(run: Run, small: str) -> None:
    """32 x 128 x 8 = 32,768 outputs of 27 products each."""
    code, out, _ = run(f"{small}:Net", *SHAPE, "--format", "json")
    assert code == 0
    totals = json.loads(out)["totals"]
    outputs = 32 * 128 * 8
    assert totals["params"] == 8 * 27 + 8
    assert totals["macs"] == outputs * 27
    assert totals["flops"] == 2 * outputs * 27 + outputs
    assert totals["madd"] == 2 * outputs * 27
    assert totals["mem_read_bytes"] == 4 * (3 * 32 * 128 + 224)
    assert totals["mem_write_bytes"] == 4 * outputs


def test_without_a_gpu_there_are_counts_only(run: Run, small: str) -> None:
    code, out, _ = run(f"{small}:Net", *SHAPE, "--format", "json")
    assert code == 0
    assert json.loads(out)["gpus"] == []
    code, out, _ = run(f"{small}:Net", *SHAPE)
    assert code == 0
    assert "bound" not in out


@pytest.mark.parametrize(
    ("options", "count"),
    [((), 1), (("--batch", "1,8"), 2), (("--batch", "1", "--batch", "8"), 2), (("--precision", "fp32,fp16", "--batch", "1,8"), 4)],
)
def test_several_batches_and_precisions_are_an_array(run: Run, small: str, options: tuple[str, ...], count: int) -> None:
    code, out, _ = run(f"{small}:Net", *SHAPE, "--format", "json", *options)
    assert code == 0
    documents = json.loads(out) if count > 1 else [json.loads(out)]
    assert len(documents) == count
    assert all(document["totals"]["macs"] == document["batch"] * 884_736 for document in documents)


def test_several_gpus_are_compared(run: Run, small: str) -> None:
    code, out, _ = run(f"{small}:Net", *SHAPE, "--gpu", "v100,t4", "--gpu", "2070 super,clock=1815MHz")
    assert code == 0
    assert all(name in out for name in ("V100", "T4", "2070"))
    assert max(map(len, out.splitlines())) <= 100


def test_a_missing_peak_is_an_error_for_one_gpu_and_a_null_row_among_several(run: Run, small: str) -> None:
    """TPUs have no fp32 peak in the database."""
    code, out, err = run(f"{small}:Net", *SHAPE, "--gpu", "tpu-v4")
    assert (code, out) == (2, "")
    assert "TPU v4" in err
    assert "float32" in err
    code, out, _ = run(f"{small}:Net", *SHAPE, "--gpu", "tpu-v4,v100", "--format", "json")
    assert code == 0
    assert [gpu["ridge"] is None for gpu in json.loads(out)["gpus"]] == [True, False]


def test_level_op_lists_operators(run: Run, small: str) -> None:
    code, out, _ = run(f"{small}:Net", *SHAPE, "--level", "op", "--format", "json")
    assert code == 0
    assert [op["macs"] for op in json.loads(out)["ops"]] == [884_736]


def test_csv_has_the_chosen_columns(run: Run, small: str) -> None:
    code, out, _ = run(f"{small}:Net", *SHAPE, "--format", "csv", "--columns", "path,macs", "--columns", "flops")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert list(rows[0]) == ["path", "macs", "flops"]
    assert rows[0] == {"path": "conv", "macs": "884736", "flops": "1802240"}


@pytest.mark.parametrize(("form", "text"), [("markdown", "|"), ("latex", r"\begin{table}"), ("torchstat", "MemR+W(B)")])
def test_other_formats(run: Run, small: str, form: str, text: str) -> None:
    code, out, _ = run(f"{small}:Net", *SHAPE, "--format", form)
    assert code == 0
    assert text in out
    assert "conv" in out


def test_duration_is_one_timed_run(run: Run, small: str) -> None:
    code, out, _ = run(f"{small}:Net", *SHAPE, "--format", "torchstat", "--duration")
    assert code == 0
    assert "duration[%]" in out
    assert "duration[%]" not in run(f"{small}:Net", *SHAPE, "--format", "torchstat").out
    code, _, err = run(f"{small}:Net", *SHAPE, "--duration")
    assert code == 2
    assert "--format torchstat" in err


def test_top_and_filter(run: Run) -> None:
    arguments = (*RESNET50, "--format", "csv", "--columns", "path,flops")
    top = list(csv.DictReader(io.StringIO(run(*arguments, "--sort", "flops", "--top", "3").out)))
    flops = [int(row["flops"]) for row in top[:3]]
    assert len(top) == 4  # and the total
    assert flops == sorted(flops, reverse=True)
    kept = list(csv.DictReader(io.StringIO(run(*arguments, "--filter", "layer4.*").out)))
    assert all(row["path"].startswith("layer4.") for row in kept[:-1])


def test_inputs_of_the_model_file_are_used(run: Run, small: str) -> None:
    code, out, _ = run(f"{small}:with_inputs", "--format", "json")
    assert code == 0
    document = json.loads(out)
    assert document["inputs"][0]["shape"] == [2, 3, 32, 128]
    assert document["batch"] is None
    assert document["totals"]["macs"] == 2 * 884_736


def test_a_yaml_model(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    path.write_text("model: torchvision:resnet18\ninputs: 3x64x64\nprecision: fp16\nsource: none\n")
    code, out, err = run(str(path), "--format", "json")
    assert code == 0, err
    document = json.loads(out)
    assert document["precision"] == "fp16"
    assert document["inputs"][0]["shape"] == [1, 3, 64, 64]


def test_a_second_run_reads_the_cache(run: Run, small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(f"{small}:Net", *SHAPE, "--gpu", "v100")
    import modelstat.trace.capture as capture

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("traced again")

    monkeypatch.setattr(capture, "capture", refuse)
    assert run(f"{small}:Net", *SHAPE, "--gpu", "v100") == first
    assert run(f"{small}:Net", *SHAPE, "--gpu", "t4").code == 0
    assert run(f"{small}:Net", *SHAPE, "--no-cache").code == 1


@pytest.mark.parametrize(
    "order", [("--gpu", "v100", "{}", "--batch", "2"), ("{}", "--gpu=v100", "--batch=2"), ("--batch", "2", "--", "{}")]
)
def test_options_stand_anywhere(run: Run, small: str, order: tuple[str, ...]) -> None:
    code, out, err = run(*SHAPE, *(part.replace("{}", f"{small}:Net") for part in order))
    assert code == 0, err
    assert "batch 2" in out
