"""The help: complete, and no option needs more than one line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]

OPTIONS = [
    "--input", "--batch", "--sweep", "--precision", "--gpu", "--weights", "--activations", "--group", "--plan", "--eval", "--causal",
    "--training", "--strict", "--crosscheck", "--duration", "--no-cache", "--phase", "--prompt", "--context", "--generate", "--kv-cache",
    "--tensor-parallel", "--pipeline", "--data-parallel", "--mode",
    "--cuda-graph", "--channels-last", "--host", "--measured", "--depth", "--level", "--columns", "--sort", "--top", "--filter", "--format",
    "--output", "--wide", "--traceback",
    "--html", "--roofline", "--plot", "--plot-kind", "--plot-theme", "--help", "--version",
]  # fmt: skip


@pytest.mark.parametrize("width", [80, 100])
def test_every_option_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, _ = run("--help")
    assert code == 0
    rows = [line.strip("│ ") for line in out.splitlines() if line.startswith("│")]
    names = [row.split()[0] for row in rows]
    assert [name for name in names if name.startswith("--")] == OPTIONS
    commands = ["cache", "calibrate", "check", "compare", "gpus", "measure", "overlay", "query", "size", "swap", "sweep"]
    assert names == ["*", *OPTIONS[:-2], *commands, *OPTIONS[-2:]]  # nothing else: no second line anywhere
    assert all(len(line) <= width for line in out.splitlines())


COMMANDS = ["gpus", "cache", "query", "size", "swap", "sweep", "compare", "check", "calibrate", "measure", "overlay"]


@pytest.mark.parametrize("command", COMMANDS)
def test_subcommands_have_help(run: Run, command: str) -> None:
    code, out, _ = run(command, "--help")
    assert code == 0
    assert f"modelstat {command}" in out


@pytest.mark.parametrize("command", ["compare", "check", "size"])
def test_options_of_subcommands_are_one_line_each(run: Run, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rows = [line.strip("│ ") for line in run(command, "--help").out.splitlines() if line.startswith("│")]
    names = [row.split()[0] for row in rows]
    assert all(name.startswith("--") for name in names[1:])
    assert len(set(names)) == len(names)


def test_no_arguments_prints_the_help(run: Run) -> None:
    assert run() == run("--help")


def test_version(run: Run) -> None:
    import modelstat

    assert run("--version") == (0, f"{modelstat.__version__}\n", "")
    assert re.fullmatch(r"\d+\.\d+\.\d+", modelstat.__version__)
