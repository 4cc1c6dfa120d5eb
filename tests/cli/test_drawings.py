"""`--html`, `--plot` and `--roofline`: what is drawn beside the report, and what is refused before the model is built."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
SHAPE = ("--input", "3x32x128")
V100 = (*SHAPE, "--gpu", "v100")


def test_the_page_is_written_beside_the_report(run: Run, small: str, tmp_path: Path) -> None:
    pytest.importorskip("plotly", reason="the html extra is optional")
    path = tmp_path / "report.html"
    code, out, err = run(f"{small}:Net", *V100, "--html", str(path))
    assert (code, err) == (0, "")
    assert "Tesla V100 PCIe 32GB" in out
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert len(text.encode()) < 6e6
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.SVG", b"<?xml"), ("a.pdf", b"%PDF")])
def test_figures(run: Run, small: str, tmp_path: Path, name: str, start: bytes) -> None:
    pytest.importorskip("matplotlib", reason="the plot extra is optional")
    code, _, err = run(f"{small}:Net", *V100, "--plot", str(tmp_path / name), "--plot-theme", "dark")
    assert (code, err) == (0, "")
    assert (tmp_path / name).read_bytes().startswith(start)


def test_figures_of_batches_and_gpus(run: Run, small: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the plot extra is optional")
    batch, gpus = str(tmp_path / "batch.svg"), str(tmp_path / "gpus.svg")
    assert run(f"{small}:Net", *V100, "--batch", "1,2,4", "--plot", batch, "--plot-kind", "batch").code == 0
    assert run(f"{small}:Net", *SHAPE, "--gpu", "v100,t4", "--plot", gpus, "--plot-kind", "gpus").code == 0


def test_the_roofline_follows_the_table(run: Run, small: str) -> None:
    code, out, _ = run(f"{small}:Net", *V100, "--roofline")
    assert code == 0
    table, chart = out.split("Roofline of ")
    assert "FLOP/B" in table
    assert "HBM2 900 GB/s" in chart
    assert max(map(len, chart.splitlines())) <= 80
    assert "aten::convolution" in run(f"{small}:Net", *V100, "--roofline", "--level", "op").out.split("Roofline of ")[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--html", "a.html"), "--html draws the roofline of a GPU: add --gpu"),
        (("--roofline",), "--roofline draws the roofline of a GPU"),
        (("--gpu", "v100", "--roofline", "--format", "json"), "not into json"),
        (("--gpu", "v100", "--plot", "a.jpg"), "must end in .png, .svg, .pdf"),
        (("--gpu", "v100", "--plot-kind", "gpus"), "add --plot FILE"),
        (("--gpu", "v100", "--plot", "a.svg", "--plot-kind", "gpus"), "give several"),
        (("--gpu", "v100", "--plot", "a.svg", "--plot-kind", "batch"), "give a list"),
        (("--gpu", "v100", "--html", "absent/a.html"), "--html absent/a.html cannot be written: there is no directory"),
        (("--gpu", "v100", "--plot", "absent/a.svg"), "--plot absent/a.svg cannot be written: there is no directory"),
        (("--gpu", "v100", "--html", "a.html", "--output", "./a.html"), "each its own name"),
        (("--gpu", "v100", "--html", "a.html", "--crosscheck"), "--crosscheck"),
    ],
)
def test_what_is_refused_before_the_model_is_built(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    proof, model = tmp_path / "built", tmp_path / "model.py"
    model.write_text(f"def build():\n    open({str(proof)!r}, 'w').close()\n")
    code, out, err = run(f"{model}:build", *SHAPE, *options)
    assert (code, out) == (2, "")
    assert message in err
    assert list(tmp_path.iterdir()) == [model]


@pytest.mark.parametrize(
    ("option", "package", "extra"), [("--html", "plotly", "html"), ("--html", "jinja2", "html"), ("--plot", "matplotlib", "plot")]
)
def test_a_missing_package_names_the_extra(
    run: Run, small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, package: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    code, _, err = run(f"{small}:Net", *V100, option, str(tmp_path / "a.svg"))
    assert code == 2
    assert f"{package} is not installed" in err
    assert f"[{extra}]" in err
    assert list(tmp_path.iterdir()) == []


def test_a_failed_run_leaves_the_old_files(run: Run, small: str, tmp_path: Path) -> None:
    page, figure = tmp_path / "a.html", tmp_path / "a.svg"
    for path in (page, figure):
        path.write_text("old")
    assert run(f"{small}:Raises", *V100, "--html", str(page), "--plot", str(figure)).code == 2
    assert (page.read_text(), figure.read_text()) == ("old", "old")
    assert sorted(tmp_path.iterdir()) == [page, figure]
