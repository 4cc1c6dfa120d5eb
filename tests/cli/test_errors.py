"""Every kind of bad input: one line on stderr that names what was given and what to do, and an exit code."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

V100 = ("--gpu", "v100")
SHAPE = ("--input", "3x32x128")

BAD = [
    (["resnet5"], "resnet5.*resnet50"),
    (["torchvision:resnet5"], "resnet5.*resnet50"),
    (["nowhere:resnet50"], "no origin is called 'nowhere'"),
    (["resnet50", "--gpu", "v1000"], "v1000.*v100"),
    (["resnet50", "--gpu", "cores=2560,clock=fast,bandwidth=448GB/s"], "fast"),
    (["resnet50", "--input", "3x224xbig"], "3x224xbig"),
    (["resnet50", "--input", "1x224x224", *V100], "resnet50"),
    (["resnet50", "--batch", "0"], "--batch '0'.*at least 1"),
    (["resnet50", "--batch", "two"], "--batch 'two'.*whole numbers"),
    (["resnet50", "--precision", "fp12"], "--precision 'fp12'.*fp16"),
    (["resnet50", "--format", "xml"], "xml.*--format|--format.*xml"),
    (["resnet50", "--level", "tensor"], "tensor.*--level|--level.*tensor"),
    (["resnet50", "--columns", "parms"], "parms.*params"),
    (["resnet50", "--columns", "bound"], "bound.*--gpu"),
    (["resnet50", "--sort", "nothing"], "nothing"),
    (["resnet50", "--depth", "-1"], "depth"),
    (["resnet50", "--top", "0"], "top"),
    (["resnet50", "--filter", "nothing.*"], "nothing"),
    (["resnet50", "--formt", "json"], "--formt.*--format"),
    (["resnet50", "resnet18"], "resnet18"),
    (["resnet50", "--output", "no/such/folder/out.txt"], r"no/such/folder/out\.txt.*no directory"),
    (["resnet50", "--output", "."], "is a directory"),
    (["absent.py:build", *SHAPE], r"absent\.py"),
    (["absent.yaml"], r"absent\.yaml"),
    (["{small}:build", *SHAPE], r"small\.py.*build"),
    (["{small}:number", *SHAPE], "number"),
    (["{small}:broken", *SHAPE], "no such width: -1"),
    (["{small}:Raises", *SHAPE], "flux capacitor is empty"),
    (["{small}:Net", "--input", "4x32x128"], "Net"),
    (["{small}:Net"], "--input"),
    (["{small}:with_inputs", "--batch", "4"], "--batch"),
    (["gpus", "v1000"], "v1000.*v100"),
    (["gpus", "--input", "3x224x224"], "modelstat gpus has no option --input: `modelstat MODEL`.* have it"),
    (["cache", "empty"], "empty"),
    (["gpu"], "gpu.*`modelstat gpus` meant"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_one_line_and_exit_code_2(run: Run, small: str, arguments: list[str], message: str) -> None:
    code, out, err = run(*(argument.replace("{small}", small) for argument in arguments))
    assert code == 2, err
    assert out == ""
    assert err.startswith("modelstat: error: ")
    assert err.count("\n") == 1
    assert re.search(message, err), err
    assert "Traceback" not in err


def test_traceback_on_request(run: Run, small: str) -> None:
    code, _, err = run(f"{small}:Raises", *SHAPE, "--traceback")
    assert code == 2
    assert "Traceback" in err
    assert "raise RuntimeError" in err
    assert err.splitlines()[-1].startswith("modelstat: error: ")


def test_a_yaml_mistake_names_its_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    path.write_text("model: torchvision:resnet18\ninputs: 3x224x224\nprecison: fp16\n")
    code, _, err = run(str(path))
    assert code == 2
    assert re.search(r"net\.yaml.*(line 3|:3).*precis", err), err


def test_yaml_is_loaded_safely(run: Run, tmp_path: Path) -> None:
    path, proof = tmp_path / "net.yaml", tmp_path / "proof"
    path.write_text(f"model: !!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path ['{proof}']]\n")
    assert run(str(path)).code == 2
    assert not proof.exists()


@pytest.mark.parametrize(("package", "spec"), [("timm", "timm:vit_tiny_patch16_224"), ("torchvision", "torchvision:resnet18")])
def test_a_missing_package_names_the_extra(run: Run, monkeypatch: pytest.MonkeyPatch, package: str, spec: str) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)  # what an import finds where a package is absent
    code, _, err = run(spec, "--no-cache")
    assert code == 2
    assert re.search(rf"{package} is not installed.*\[zoo\]", err), err


def test_gpus_are_resolved_before_the_model(run: Run) -> None:
    code, _, err = run("absent.py:build", "--gpu", "v1000")
    assert code == 2
    assert "v1000" in err


def test_strict_prints_the_report_and_fails(run: Run, small: str) -> None:
    code, out, err = run(f"{small}:Unknown", *SHAPE, "--strict")
    assert code == 3
    assert "modelstat_tests::twist" in out
    assert re.fullmatch(r"modelstat: error: --strict: .*modelstat_tests::twist.*\n", err), err


def test_without_strict_an_unknown_op_is_listed(run: Run, small: str) -> None:
    code, out, _ = run(f"{small}:Unknown", *SHAPE)
    assert code == 0
    assert "modelstat_tests::twist" in out


def test_a_bug_is_one_line_that_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import modelstat.hardware.database as database

    def fail() -> None:
        raise ZeroDivisionError("a bug\nfor the test")

    monkeypatch.setattr(database, "all_gpus", fail)
    code, out, err = run("gpus")
    assert (code, out) == (1, "")
    assert err == "modelstat: error: ZeroDivisionError: a bug for the test (this is a bug in modelstat: --traceback shows where)\n"


def test_an_interruption_is_quiet(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import modelstat.hardware.database as database

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(database, "all_gpus", interrupt)
    code, _, err = run("gpus")
    assert (code, err) == (130, "modelstat: interrupted\n")
