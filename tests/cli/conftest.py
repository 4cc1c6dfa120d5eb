"""Runs the command line in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from modelstat.cli import main

MODELS = Path(__file__).parent / "models" / "small.py"


class Result(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """``run("resnet50", "--gpu", "v100")`` gives exit code, stdout and stderr."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*arguments: str) -> Result:
        capfd.readouterr()
        code = main(arguments)
        captured = capfd.readouterr()
        return Result(code, captured.out, captured.err)

    return call


@pytest.fixture
def small() -> str:
    """The path of the file with small models, without the name of one."""
    return str(MODELS)
