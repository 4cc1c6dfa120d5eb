"""`modelstat compare`: models and saved reports against each other."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
VARIANTS = str(Path(__file__).parent / "models" / "variants.py")
NARROW, WIDE, NORM = f"{VARIANTS}:net", f"{VARIANTS}:net(width=16)", f"{VARIANTS}:net(norm=True)"
PIXELS = 8 * 8
SHAPE = ("--input", "3x8x8")


def rows(text: str, delimiter: str = ",") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


def macs(width: int) -> int:
    return (27 + 10) * width * PIXELS


def params(width: int) -> int:
    return 28 * width + 10 * width + 10


def test_one_row_per_model_and_gpu_models_beside_each_other(run: Run) -> None:
    code, out, err = run("compare", NARROW, WIDE, *SHAPE, "--gpu", "v100,t4", "--batch", "1,8", "--format", "csv")
    assert (code, err) == (0, "")
    found = rows(out)
    assert [(row["batch"], row["gpu"][:8], row["model"]) for row in found] == [
        (batch, gpu, model) for batch in ("1", "8") for gpu in ("Tesla V1", "Tesla T4") for model in (NARROW, WIDE)
    ]
    assert [int(row["macs"]) for row in found[:2]] == [macs(8), macs(16)]
    assert [int(row["params"]) for row in found[:2]] == [params(8), params(16)]
    assert int(found[4]["macs"]) == 8 * macs(8)


def test_relative_to_the_first(run: Run) -> None:
    arguments = ("compare", NARROW, WIDE, *SHAPE, "--relative", "--columns", "model,params,macs")
    found = rows(run(*arguments, "--format", "csv").out)
    assert list(found[0]) == ["model", "params_relative", "macs_relative"]
    assert [float(row["macs_relative"]) for row in found] == [1.0, macs(16) / macs(8)]
    assert float(found[1]["params_relative"]) == params(16) / params(8)
    lines = run(*arguments).out.splitlines()
    assert any(re.search(rf"net\s+{params(8)}\s+{macs(8) / 1e3:.2f}k$", line) for line in lines), "the first shows its values"
    assert any(re.search(rf"{params(16) / params(8):.2f}x\s+2\.00x$", line) for line in lines)


@pytest.mark.parametrize(
    ("form", "bold"), [("markdown", r"\*\*{}\*\*"), ("latex", r"\\textbf\{{{}\}}"), ("html", r"<strong>{}</strong>")]
)
def test_the_best_is_bold(run: Run, form: str, bold: str) -> None:
    out = run("compare", NARROW, WIDE, *SHAPE, "--columns", "model,params", "--format", form).out
    assert re.search(bold.format(params(8)), out)
    assert not re.search(bold.format(params(16)), out)


def test_equal_values_are_not_bold(run: Run) -> None:
    out = run("compare", NARROW, NORM, *SHAPE, "--columns", "model,macs,params", "--format", "markdown").out
    assert "**" in out
    assert f"**{macs(8) / 1e3:.2f} k**" not in out


def test_the_caption_reproduces_the_table(run: Run) -> None:
    import torch

    out = run("compare", NARROW, WIDE, *SHAPE, "--gpu", "v100", "--batch", "8", "--format", "html").out
    caption = re.search(r"<caption[^>]*>(.*)</caption>", out)
    assert caption
    for fact in (
        "net", "net(width=16)", "input 8x3x8x8 float32", "batch 8", "fp32", "14.0 TFLOP/s", "900 GB/s", "a MAC = 2", "without bias",
        "predicted for eager, host 26 us an op", "modelstat 0.1.0", f"torch {torch.__version__.partition('+')[0]}",
    ):  # fmt: skip
        assert fact in caption[1], fact


def test_by_layer_shows_closed_form_differences(run: Run) -> None:
    code, out, err = run("compare", NARROW, WIDE, *SHAPE, "--by", "layer", "--format", "csv")
    assert (code, err) == (0, "")
    found = {row["path_after"]: row for row in rows(out)}
    assert {path: row["change"] for path, row in found.items()} == dict.fromkeys(("stem", "act", "head"), "changed")
    assert int(found["stem"]["params_difference"]) == 28 * 8
    assert int(found["stem"]["macs_difference"]) == 27 * 8 * PIXELS
    assert int(found["head"]["macs_difference"]) == 10 * 8 * PIXELS
    assert int(found["act"]["mem_bytes_difference"]) == 4 * 2 * 8 * PIXELS, "8 more channels, read and written"
    assert int(found["head"]["params_before"]) == 10 * 8 + 10
    assert int(found["head"]["params_after"]) == 10 * 16 + 10


def test_by_layer_in_the_terminal(run: Run) -> None:
    out = run("compare", NARROW, NORM, *SHAPE, "--by", "layer", "--gpu", "v100").out
    assert max(map(len, out.splitlines())) <= 100
    assert re.search(r"^norm \(BatchNorm2d\)\s+added\s+\+16 ", out, re.MULTILINE)
    assert re.search(r"^3 layers the same", out, re.MULTILINE)
    assert re.search(r"^difference\s+\+16 ", out, re.MULTILINE)
    assert re.search(rf"^in percent\s+\+{100 * 16 / params(8):.1f}%", out, re.MULTILINE)
    assert "stem (Conv2d)" not in out, "what is the same is not listed"


def test_layers_that_only_moved_are_summed_up(run: Run) -> None:
    """A norm after each of the eight convolutions: 2 x (64 + 128 + 2 x 256 + 4 x 512) = 5504 params."""
    pytest.importorskip("torchvision", reason="the models are torchvision's")
    out = run("compare", "vgg11", "vgg11_bn", "--input", "3x64x64", "--by", "layer").out
    assert len(re.findall(r"^features\.\d+ \(BatchNorm2d\)\s+added", out, re.MULTILINE)) == 8
    assert re.search(r"^20 layers the same elsewhere\s+0 ", out, re.MULTILINE)
    assert re.search(r"^difference\s+\+5\.50k\s+0 ", out, re.MULTILINE)


def test_by_layer_top_and_sort(run: Run) -> None:
    out = run("compare", NARROW, WIDE, *SHAPE, "--by", "layer", "--sort", "params", "--top", "1", "--columns", "layer,params").out
    assert re.search(rf"^stem \(Conv2d\)\s+\+{28 * 8}$", out, re.MULTILINE), "28 x 8 is more than 10 x 8"
    assert re.search(rf"^2 layers more\s+\+{10 * 8}$", out, re.MULTILINE)


def test_by_layer_as_json(run: Run) -> None:
    found = json.loads(run("compare", NARROW, NORM, *SHAPE, "--by", "layer", "--format", "json").out)
    assert found["schema"] == "modelstat-layers/1"
    added = [each for each in found["layers"] if each["status"] == "added"]
    assert [(each["before"], each["after"]["path"], each["after"]["params"]) for each in added] == [(None, "norm", 16)]
    assert found["total_after"]["params"] - found["total_before"]["params"] == 16


def test_two_saved_reports_without_torch(run: Run, tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    assert run(NARROW, *SHAPE, "--gpu", "t4", "--format", "json", "--output", str(old)).code == 0
    assert run(WIDE, *SHAPE, "--gpu", "t4", "--format", "json", "--output", str(new)).code == 0
    for arguments, text in (((), "net(width=16)"), (("--by", "layer"), f"+{28 * 8}")):
        finished = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "modelstat", "compare", str(old), str(new), *arguments],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        assert text in finished.stdout
        assert "Tesla T4" in finished.stdout
        assert not re.search(r"\| +torch$", finished.stderr, re.MULTILINE)


def test_a_second_comparison_reads_the_cache(run: Run) -> None:
    arguments = ["compare", NARROW, WIDE, *SHAPE, "--gpu", "v100", "--batch", "1,8"]
    assert run(*arguments).code == 0
    command = [sys.executable, "-X", "importtime", "-m", "modelstat", *arguments]
    finished = subprocess.run(command, check=True, capture_output=True, text=True)
    assert not re.search(r"\| +torch$", finished.stderr, re.MULTILINE)


def test_one_model_saved_twice_is_told_apart_by_its_files(run: Run, tmp_path: Path) -> None:
    for name, precision in (("single.json", "fp32"), ("half.json", "fp16")):
        assert run(NARROW, *SHAPE, "--gpu", "t4", "--precision", precision, "--format", "json", "--output", str(tmp_path / name)).code == 0
    found = rows(run("compare", str(tmp_path / "single.json"), str(tmp_path / "half.json"), "--relative", "--format", "csv").out)
    assert [row["model"].rpartition(" ")[2] for row in found] == ["(single.json)", "(half.json)"]
    assert [row["precision"] for row in found] == ["fp32", "fp16"]
    assert float(found[1]["mem_bytes_relative"]) == 0.5, "a precision that each has once is what is compared"


def test_a_comparison_is_itself_a_report(run: Run, tmp_path: Path) -> None:
    saved = tmp_path / "both.json"
    assert run("compare", NARROW, WIDE, *SHAPE, "--format", "json", "--output", str(saved)).code == 0
    assert run("compare", str(saved)).out == run("compare", NARROW, WIDE, *SHAPE).out


def test_a_model_against_a_saved_report_is_timed_on_its_gpu(run: Run, tmp_path: Path) -> None:
    saved = tmp_path / "old.json"
    assert run(NARROW, *SHAPE, "--gpu", "2070 super,clock=1815MHz", "--format", "json", "--output", str(saved)).code == 0
    found = rows(run("compare", str(saved), WIDE, *SHAPE, "--columns", "model,gpu,peak", "--format", "tsv").out, "\t")
    assert found[0]["gpu"] == found[1]["gpu"]
    assert found[0]["peak_flops"] == found[1]["peak_flops"]


@pytest.mark.parametrize("form", ["html", "markdown", "latex", "table"])
def test_a_hostile_name_is_data(run: Run, form: str) -> None:
    model = f"{VARIANTS}:hostile"
    out = run(model, "--input", "3x8x8", "--format", form).out
    assert ("<img" in out) == (form == "table")
    out = run("compare", model, NARROW, *SHAPE, "--by", "layer", "--format", form).out
    assert ("<img" in out) == (form == "table")
    assert "alert" in out


BAD: list[tuple[list[str], str]] = [
    ([], "nothing alone is no comparison"),
    ([NARROW], "alone is no comparison.*two models"),
    ([NARROW, WIDE, NORM, "--by", "layer"], "--by layer shows two models.*not 3"),
    ([NARROW, WIDE, "--by", "layer", "--gpu", "v100,t4"], "--by layer shows two models.*not 4"),
    ([NARROW, WIDE, "--columns", "parms"], "no column 'parms' in a comparison: did you mean params"),
    ([NARROW, WIDE, "--columns", "predicted"], "'predicted' needs a GPU"),
    ([NARROW, WIDE, "--by", "layer", "--columns", "pams"], "no column 'pams' in a comparison by layer: did you mean params"),
    ([NARROW, WIDE, "--by", "layer", "--sort", "layer"], "--sort layer.*sorted by a difference"),
    ([NARROW, WIDE, "--by", "layer", "--relative"], "--relative compares models"),
    ([NARROW, WIDE, "--format", "json", "--relative"], "--format json is the whole comparison"),
    ([NARROW, WIDE, "--mode", "compile"], "--mode changes a predicted time"),
    (["a.json", "b.json"], "saved reports stay as they were written: leave out --input"),
    ([NARROW, "absent.json"], "absent.json cannot be read: No such file"),
    ([NARROW, "{folder}/text.json"], "text.json is not JSON"),
    ([NARROW, "{folder}/other.json"], "other.json is not a report: its schema is not modelstat/1"),
    ([NARROW, "{folder}/half.json"], "half.json is not a report that this version reads: .*missing required field"),
    ([NARROW, "{folder}/report.json", "--batch", "8"], "--batch 8: .*report.json holds batch 1 only"),
    ([NARROW, "{folder}/report.json", "--precision", "fp16"], "--precision fp16: .*report.json holds precision fp32 only"),
    ([NARROW, "{folder}/report.json", "--gpu", "v100"], "--gpu v100.*: .*report.json holds no GPU only"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=lambda value: value if isinstance(value, str) else "")
def test_bad_input(run: Run, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "text.json").write_text("not json")
    (tmp_path / "other.json").write_text('{"a": 1}')
    (tmp_path / "half.json").write_text('{"schema": "modelstat/1"}')
    assert run(NARROW, *SHAPE, "--format", "json", "--output", str(tmp_path / "report.json")).code == 0
    code, out, err = run("compare", *(each.replace("{folder}", str(tmp_path)) for each in arguments), *SHAPE)
    assert (code, out) == (2, ""), err
    assert re.search(message, err), err


def test_from_python(run: Run) -> None:
    import torch
    from torch import nn

    import modelstat

    found = modelstat.compare(NARROW, WIDE, inputs="3x8x8", gpu="v100", batch=[1, 8])
    assert [row["macs"] for row in found.rows] == [macs(8), macs(16), 8 * macs(8), 8 * macs(16)]
    assert repr(found) == f"<Comparison of {NARROW}, {WIDE}: 4 rows>"
    assert "<table>" in found._repr_html_()
    modules = modelstat.compare(nn.Linear(4, 4), nn.Linear(4, 8), inputs=torch.zeros(2, 4))
    assert [row["model"] for row in modules.rows] == ["Linear", "Linear (2)"]
    assert [row["params"] for row in modules.rows] == [4 * 4 + 4, 4 * 8 + 8]
    analyses = modelstat.compare(modelstat.analyze(NARROW, "3x8x8"), modelstat.analyze(WIDE, "3x8x8"))
    assert [change.status for change in analyses.layers] == ["changed"] * 3
    assert analyses.text(columns=["model", "params"]).startswith("| model")
