"""``modelstat swap`` as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
ENOCR = str(Path(__file__).parents[2] / "zoo_configs" / "enocr.yaml")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELSTAT_CACHE_DIR", str(tmp_path / "cache"))


def test_a_report_for_a_reader_and_for_a_program(run: Run, small: str, tmp_path: Path) -> None:
    arguments = ("swap", f"{small}:Net", "conv=separable", "--input", "3x32x128", "--gpu", "v100,t4", "--batch", "1,8")
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    assert "conv=separable" in out
    assert out.count("Verdict") == 4
    target = tmp_path / "swap.json"
    assert run(*arguments, "--format", "json", "--output", str(target))[0] == 0
    document = json.loads(target.read_text())
    assert [run["batch"] for run in document["runs"]] == [1, 8]
    # 3 x 9 and 3 x 8 weights and 8 biases instead of 8 x 27 + 8
    assert (document["runs"][0]["before"]["params"], document["runs"][0]["after"]["params"]) == (224, 27 + 24 + 8)
    for form in ("csv", "markdown"):
        code, out, _ = run(*arguments, "--format", form)
        assert code == 0
        assert "conv" in out


def test_the_best_swap_is_the_first(run: Run) -> None:
    rules = ("conv=grouped(groups=2)", "conv=ghost")
    code, out, _ = run("swap", ENOCR, *rules, "--best", "--gpu", "v100", "--batch", "64", "--format", "json")
    assert code == 0
    ranks = json.loads(out)["ranks"]
    times = [rank["predicted_ms"] for rank in ranks]
    assert times == sorted(times)
    assert {rank["rule"] for rank in ranks} == {"conv=grouped(groups=2)", "conv=ghost"}
    assert len({rank["stage"] for rank in ranks}) > 1


def test_a_second_run_does_not_import_torch(run: Run, small: str) -> None:
    arguments = ["swap", f"{small}:Net", "conv=separable", "--input", "3x32x128", "--gpu", "v100"]
    assert run(*arguments)[0] == 0
    program = f"import sys\nfrom modelstat.cli import main\nassert main({arguments!r}) == 0\nassert 'torch' not in sys.modules"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["conv=gost"], "no swap is called 'conv=gost': did you mean conv=ghost"),
        (["conv=ghost(kernal=3)"], "has no parameter 'kernal': did you mean kernel?"),
        ([], "modelstat swap needs a rule, such as conv=ghost, or --best to try them all"),
        (["conv=ghost", "--where", "layer9.*"], "'layer9.*' matches no convolution: paths of such layers are conv"),
        (["conv=ghost", "--kernel", "big"], "kernel 'big': write a size such as 3, or 1x7"),
        (["conv=ghost", "--min-channels", "16"], "no convolution takes this swap: conv: fewer than 16 channels"),
        (["conv=ghost", "--skip-stem"], "no convolution takes this swap: conv: it is the stem"),
        (["act=relu"], "the model has no activation"),
        (["conv=ghost", "--mode", "compile"], "--mode changes a predicted time: add --gpu NAME"),
        (["--best"], "--best ranks by the time of one model: give one --gpu"),
        (["--best", "--gpu", "v100,t4"], "--best ranks by the time of one model"),
        (["--best", "--gpu", "v100", "--where", "conv"], "--best tries each stage: leave --where out"),
        (["act=relu", "--best", "--gpu", "v100"], "no layer takes act=relu"),
        (["conv=ghost", "--gpu", "v100", "--precision", "bf16"], "has no bfloat16 peak"),
        (["precision=fp16", "--precision", "fp32"], "would undo that of single layers: leave --precision out"),
    ],
)
def test_bad_input_is_one_line(run: Run, small: str, arguments: list[str], message: str) -> None:
    code, out, err = run("swap", f"{small}:Net", "--input", "3x32x128", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
