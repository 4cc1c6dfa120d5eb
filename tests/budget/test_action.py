"""action.yml and the pre-commit hook: what they run is what the command line takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from modelstat.api import trace_spec

ROOT = Path(__file__).parents[2]
BUDGET = '[[budget]]\nname = "a b"\nmodel = "net.py:build"\ninput = "4"\nmax_params = {limit}\n'
NET = "from torch import nn\n\ndef build():\n    return nn.Linear(4, 4)\n"


def step(name: str) -> dict[str, Any]:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    return next(each for each in action["runs"]["steps"] if each["name"] == name)


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """A folder with a ``modelstat`` command, as pip installs one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "modelstat"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m modelstat "$@"\n')
    command.chmod(0o755)
    return folder


@pytest.mark.parametrize("arguments", ["", "--only 'a *' --junit report.xml"])
def test_the_check_step(tmp_path: Path, bin_folder: Path, arguments: str) -> None:
    """Linear(4, 4) has 4 x 4 + 4 = 20 params."""
    check = step("Check")
    assert check["shell"] == "bash"
    assert set(check["env"]) == {"FILE", "ARGUMENTS"}
    (tmp_path / "net.py").write_text(NET)
    trace_spec("net.py:build", "4", folder=tmp_path)  # so that the command need not import torch
    summary = tmp_path / "summary.md"
    environment = {
        **os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "FILE": "", "ARGUMENTS": arguments,
        "GITHUB_STEP_SUMMARY": str(summary),
    }  # fmt: skip
    for limit, code in ((20, 0), (19, 1)):
        (tmp_path / "modelstat.toml").write_text(BUDGET.format(limit=limit))
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", check["run"]]
        finished = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert finished.returncode == code, finished.stderr
        assert ("::error file=modelstat.toml,line=1,title=modelstat%3A a b::" in finished.stdout) == bool(code)
    assert summary.read_text().count("### modelstat check: 1 budget") == 2
    assert (tmp_path / "report.xml").exists() == bool(arguments)


@pytest.mark.parametrize(
    ("install", "extras", "expected"),
    [
        ("", "zoo", [["/action[zoo]"]]),
        ("", "", [["/action"]]),
        ("-r needs.txt -e '.[a]' 'two words'", "zoo,hf", [["/action[zoo,hf]"], ["-r", "needs.txt", "-e", ".[a]", "two words"]]),
    ],
)
def test_the_install_step(tmp_path: Path, install: str, extras: str, expected: list[list[str]]) -> None:
    """A python that writes down what it is called with, one line a call."""
    log = tmp_path / "log"
    fake = tmp_path / "python"
    fake.write_text(f'#!/bin/bash\nprintf "%s|" "$@" >> "{log}"\necho >> "{log}"\n')
    fake.chmod(0o755)
    environment = {
        **os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "SOURCES": "/action", "EXTRAS": extras, "INSTALL": install,
        "TORCH_INDEX": "https://index",
    }  # fmt: skip
    step_ = step("Install modelstat")
    assert set(step_["env"]) == {"SOURCES", "EXTRAS", "INSTALL", "TORCH_INDEX"}
    subprocess.run(["bash", "-eo", "pipefail", "-c", step_["run"]], env=environment, check=True)
    pip = ["-m", "pip", "install", "--quiet"]
    calls = [line.split("|")[:-1] for line in log.read_text().splitlines()]
    assert calls == [[*pip, "torch", "torchvision", "--index-url", "https://index"], *([*pip, *arguments] for arguments in expected)]


def test_no_input_is_pasted_into_a_script() -> None:
    for name in ("Install modelstat", "Check"):
        assert "${{" not in step(name)["run"]


def test_the_hook() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert (hook["id"], hook["entry"], hook["pass_filenames"]) == ("modelstat-check", "modelstat check", False)
