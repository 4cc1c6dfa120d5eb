"""`modelstat sweep` and `modelstat query` from the command line."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modelstat.sweeping.progress import Bar, Lines
from modelstat.sweeping.row import Outcome, Row

Run = Callable[..., Any]

NETS = """
from torch import nn

def net(width=8):
    return nn.Conv2d(3, width, 3, padding=1)

def broken():
    raise ValueError("on purpose")
"""


@pytest.fixture
def nets(tmp_path: Path) -> str:
    (tmp_path / "nets.py").write_text(NETS)
    return str(tmp_path / "nets.py")


def test_sweep_and_query(run: Run, nets: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = str(tmp_path / "r.parquet")
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"# two\n{nets}:net(width=4)\n\n{nets}:broken # fails\n"))
    arguments = ["--input", "3x8x8", "--gpu", "v100,t4", "--workers", "1", "--output", output]
    code, out, err = run("sweep", f"{nets}:net", "--from", "-", *arguments, "--timeout", "60", "--memory", "3GB")
    assert code == 1, err
    assert "rows    6 of 6: 4 ok, 2 error" in out
    assert "3 in 0:" in out
    assert "ValueError: on purpose" in out
    assert "sweep: 3/3 models; " in err
    assert "failed: 1 error" in err

    # Everything is cached but the failure: the same rows, and the exit code that says that all went well.
    code, out, _ = run("sweep", f"{nets}:net", *arguments, "--overwrite", "--layers", "--host", "100")
    assert (code, "rows    2 of 2: 2 ok" in out) == (0, True)

    # One small convolution waits for its host on any GPU.
    waiting = "SELECT DISTINCT execution, predicted_bound, predicted_ms > 0.1 AS waits FROM results"
    code, out, _ = run("query", waiting, output, "--format", "json")
    assert json.loads(out) == [{"execution": "eager, host 100 us an op", "predicted_bound": "overhead", "waits": True}]

    sql = "SELECT gpu, macs, missing FROM results ORDER BY gpu"
    code, out, _ = run("query", sql, output, "--format", "json")
    macs = 27 * 8 * 64
    assert json.loads(out) == [{"gpu": gpu, "macs": macs, "missing": None} for gpu in ("t4", "v100-pcie-32")]
    assert run("query", sql, output, "--format", "csv").out == f"gpu,macs,missing\nt4,{macs},\nv100-pcie-32,{macs},\n"
    assert run("query", sql, output, "--format", "markdown").out.splitlines() == [
        "| gpu | macs | missing |", "| --- | --- | --- |", f"| t4 | {macs:,} | - |", f"| v100-pcie-32 | {macs:,} | - |",
    ]  # fmt: skip
    assert f"v100-pcie-32  {macs:,}" in run("query", sql, output).out
    assert run("query", "SELECT count(*) FROM layers", output, "--format", "csv").out == "count_star()\n2\n"
    code, out, err = run("query", "SELECT nope FROM results", output)
    assert (code, out, len(err.splitlines())) == (2, "", 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--output", "r.parquet"], "no model is named"),
        (["{nets}:net"], "--output"),
        (["no/*.yaml", "--output", "r.parquet"], "matches no file"),
        (["{nets}:net", "--output", "r.parquet", "--from", "no.txt"], "--from no.txt cannot be read: No such file"),
        (["{nets}:net", "--output", "r.parquet", "--batch", "0"], "--batch '0' is not a batch size"),
        (["{nets}:net", "--output", "r.parquet", "--precision", "fp12"], "--precision 'fp12'"),
        (["{nets}:net", "--output", "r.parquet", "--timeout", "soon"], "'soon' is not a time"),
        (["{nets}:net", "--output", "r.parquet", "--memory", "much"], "'much' is not a number of bytes"),
        (["{nets}:net", "--output", "r.parquet", "--workers", "0"], "--workers 0: it must be more than 0"),
        (["{nets}:net", "--output", "r.parquet", "--resume", "--overwrite"], "exclude each other"),
        (["{nets}:net", "--output", "r.parquet", "--mode", "compile"], "--mode changes a predicted time: add --gpu NAME"),
    ],
)
def test_mistakes_exit_with_2(
    run: Run, nets: str, arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run("sweep", *(argument.format(nets=nets) for argument in arguments))
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "r.parquet").exists()


@pytest.mark.parametrize("command", ["sweep", "query"])
@pytest.mark.parametrize("width", [80, 100])
def test_every_option_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch, command: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, _ = run(command, "--help")
    assert code == 0
    rows = [line.strip("│ ") for line in out.splitlines() if line.startswith("│")]
    assert all(row.lstrip("* ").startswith(("--", "SPECS ", "SQL ", "RESULTS ")) for row in rows)
    assert all(len(line) <= width for line in out.splitlines())


def outcome(spec: str, status: Any = "ok") -> Outcome:
    row = Row(job=0, spec=spec, origin="bare", name=spec, modelstat="1", status=status, reason="why not")
    return Outcome(0, (row,))


def test_lines() -> None:
    file = io.StringIO()
    lines = Lines(file)
    with lines.shown(5, 2):
        lines.running(["a", "b"])
        lines.finished(outcome("a"))
        lines.finished(outcome("b", "timeout"))
        lines._printed = 0.0
        lines.running(["c"])
    first, last = file.getvalue().splitlines()
    assert first.startswith("sweep: 4/5 models; ")
    assert " left, failed: 1 timeout; running c" in first
    assert last.startswith("sweep: 4/5 models; ")


def test_bar() -> None:
    from rich.console import Console

    bar = Bar()
    console = Console(file=io.StringIO(), width=60, force_terminal=True)
    with bar.shown(4, 1):
        bar.running([f"model{index}" for index in range(6)])
        bar.finished(outcome("x" * 100, "crash"))
        console.print(bar._picture())
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "2/4" in text
    assert "failed: 1 crash" in text
    assert "running model0, model1, model2, model3 and 2 more" in text
    assert all(len(line) < 120 for line in text.splitlines())
