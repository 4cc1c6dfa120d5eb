"""The command line of overlay."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modelstat.measure.imports.counters import COMMAND

DATA = Path(__file__).parents[1] / "measure" / "data"
MODEL = str(Path(__file__).parents[1] / "measure" / "models.py") + ":small"
GIVEN = (MODEL, "--input", "3x32x32", "--batch", "2", "--gpu", "a100")
TRACE = str(DATA / "torch_gpu.json")

Run = Callable[..., Any]


def test_the_table(run: Run) -> None:
    code, out, err = run("overlay", *GIVEN, TRACE)
    assert (code, err) == (0, "")
    assert "by ops: 50.0 % of the model's ops, with 87.0 % of the measured time" in out
    assert "lonely 7.00 us" in out
    assert all(len(line) <= 100 for line in out.splitlines() if MODEL not in line)


def test_json_and_a_report_in_place_of_the_model(run: Run, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    assert run(*GIVEN, "--format", "json", "--output", str(report)).code == 0
    code, out, _ = run("overlay", str(report), TRACE, "--format", "json")
    assert code == 0
    document = json.loads(out)
    assert document["schema"] == "modelstat-overlay/1"
    assert [point["measured_ms"] for point in document["points"]] == pytest.approx([0.042, 0.005])
    assert json.loads(run("overlay", *GIVEN, TRACE, "--format", "json").out) == document


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (GIVEN, "overlay needs a profile"),
        ((MODEL, TRACE), "add --gpu NAME"),
        ((MODEL, TRACE, "--gpu", "a100,t4"), "a profile is of one GPU"),
        ((MODEL, TRACE, "--gpu", "a100", "--batch", "1,2"), "one of each"),
        ((*GIVEN, TRACE, "--top", "0"), "shows nothing"),
        ((TRACE, TRACE), "is not a report of one model"),
        (("nowhere.json", TRACE), "cannot be read"),
        ((*GIVEN, "nowhere.csv"), "cannot be read"),
    ],
)
def test_what_cannot_be_laid_over(run: Run, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = run("overlay", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


def test_measured_points_in_a_figure_a_page_and_below_the_table(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the plot extra is optional")
    pytest.importorskip("plotly", reason="the html extra is optional")
    figure, page = tmp_path / "measured.png", tmp_path / "measured.html"
    drawn = ("--roofline", "--plot", str(figure), "--plot-theme", "dark", "--html", str(page))
    code, out, err = run("overlay", *GIVEN, TRACE, *drawn)
    assert (code, err) == (0, "")
    table, chart = out.split("Measured on the roof of A100")
    assert "lonely 7.00 us" in table
    assert "A measured, a predicted" in chart
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert "Measured beside predicted" in page.read_text(encoding="utf-8")
    assert sorted(tmp_path.iterdir()) == [page, figure]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--roofline", "--format", "json"), "not into json"),
        (("--plot", "a.jpg"), "must end in"),
        (("--plot-theme", "dark"), "add --plot FILE"),
    ],
)
def test_drawings_that_cannot_be(run: Run, options: tuple[str, ...], said: str) -> None:
    code, out, err = run("overlay", *GIVEN, TRACE, *options)
    assert (code, out) == (2, "")
    assert said in err


RAW = (DATA / "ncu_raw.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.csv", "", "is empty"),
        ("cut.json", (DATA / "torch_gpu.json").read_text(encoding="utf-8")[:1200], "is cut off after event"),
        ("foreign.txt", "Dear all,\n", "none of the formats"),
        ("denied.txt", "==ERROR== ERR_NVGPUCTRPERM - The user has no permission\n", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("none.csv", RAW.replace("_pred_on", "_x").replace("dram__", "x__").replace("gpu__", "x__"), f"collect them with `{COMMAND}`"),
    ],
)
def test_a_file_that_is_no_profile_costs_one_line(run: Run, tmp_path: Path, name: str, content: str, said: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    code, out, err = run("overlay", *GIVEN, str(tmp_path / name))
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


def test_what_is_missing_is_told_with_a_command_in_one_piece(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "kernels.csv"
    path.write_text(RAW.replace("dram__sectors_write", "x").replace('"1,000,000"', '"abc"'), encoding="utf-8")
    code, out, err = run("overlay", *GIVEN, str(path))
    assert (code, err) == (0, "")
    assert "line 8: smsp__sass_thread_inst_executed_op_ffma_pred_on.sum: 'abc' is not a" in out
    assert COMMAND in out.splitlines()[-1]
    assert "DRAM bytes are missing" in out.splitlines()[-1]


def test_a_profile_of_another_model_is_said(run: Run) -> None:
    model = MODEL.replace(":small", ":Twice")
    code, out, _ = run("overlay", model, "--input", "8", "--batch", "2", "--gpu", "a100", TRACE)
    assert code == 0
    assert "is this a profile of another model" in " ".join(out.split())
    total = next(line for line in out.splitlines() if line.startswith("total"))
    assert total.split() == ["total", "-", "4", "54.0us", *["-"] * 5]  # no rate: the model's FLOPs over another's time are none

