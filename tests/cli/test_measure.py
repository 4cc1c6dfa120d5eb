"""The command lines of measure and calibrate, as far as they do not time anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.measure.test_calibration import TEXT

MODEL = str(Path(__file__).parents[1] / "measure" / "models.py") + ":small"
GIVEN = (MODEL, "--input", "3x32x32", "--batch", "2")

Run = Callable[..., Any]


def test_a_measured_model_in_json_and_in_a_file_of_measurements(run: Run, tmp_path: Path) -> None:
    machine, saved = tmp_path / "machine.toml", tmp_path / "mine.csv"
    machine.write_text(TEXT, encoding="utf-8")
    code, out, err = run("measure", *GIVEN, "--gpu", str(machine), "--seconds", "0.01", "--format", "json", "--save", str(saved))
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["op_share"] == 1.0
    assert document["measurement"]["device"] == "cpu"
    assert document["measurement"]["runs"] >= 10
    row = dict(zip(*(line.split(",") for line in saved.read_text(encoding="utf-8").splitlines()), strict=True))
    # 8 x 27 + 8 + 8 x 10 + 10 parameters; 2 x (8 x 32 x 32 x 27 + 10 x 8) MACs.
    assert (row["batch"], row["input"], row["params_m"], row["gmacs"]) == ("2", "3x32x32", "0.000314", "0.000442528")
    assert float(row["measured_ms"]) == pytest.approx(document["measurement"]["measured_ms"], rel=1e-5)
    code, out, _ = run(*GIVEN, "--gpu", "t4", "--measured", str(saved), "--format", "json")
    assert code == 0
    assert "1 times of this very pass measured on An" in json.loads(out)["gpus"][0]["correction"]


def test_a_measured_model_on_its_roof(run: Run, tmp_path: Path) -> None:
    machine = tmp_path / "machine.toml"
    machine.write_text(TEXT, encoding="utf-8")
    code, out, err = run("measure", *GIVEN, "--gpu", str(machine), "--seconds", "0.01", "--roofline")
    assert (code, err) == (0, "")
    key = out.split("A measured, a predicted")[1]
    assert "mean of 5 steps" in key
    assert "whole pass, by the stopwatch" in key


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("measure", *GIVEN), "modelstat calibrate --device cpu --output my-machine.toml"),
        (("measure", *GIVEN, "--gpu", "a100,t4"), "one machine is measured"),
        (("measure", MODEL, "--gpu", "a100", "--batch", "1,2"), "give one of each"),
        (("measure", *GIVEN, "--gpu", "a100", "--seconds", "0"), "above 0"),
        (("calibrate", "--seconds", "0"), "above 0"),
        (("calibrate", "--output", "/nowhere/x.toml"), "cannot be written"),
    ],
)
def test_what_cannot_be_measured(run: Run, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")
@pytest.mark.parametrize("command", [("measure", *GIVEN), ("calibrate",)])
def test_a_gpu_that_is_not_there(run: Run, command: tuple[str, ...]) -> None:
    code, out, err = run(*command, "--device", "cuda")
    assert (code, out) == (2, "")
    assert "--device cuda: this torch" in err
