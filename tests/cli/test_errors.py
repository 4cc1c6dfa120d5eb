"""Every kind of bad input: one line on stderr that names what was given and what to do, and an exit code."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modelstat.cli.app import COMMANDS
from modelstat.cli.misread import EXAMPLES

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


ALONE = "(`modelstat --help` lists the options)"


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_command_has_an_example_of_its_own(command: str) -> None:
    example = EXAMPLES[command].split()
    assert example[0] == "modelstat"
    assert (example[1] if command else "") == command
    assert set(EXAMPLES) == {"", *COMMANDS}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sizee", "resnet50", "--qps", "5"], "'sizee' is no command: was `modelstat size resnet50 --qps 5` meant?"),
        (["sizee", "a model", "--qps", "5"], "`modelstat size 'a model' --qps 5`"),
        (["anaylze", "resnet50"], "'anaylze' is no command: was `modelstat resnet50` meant?"),
        (["resnet50", "resnet18"], "'resnet18' is a second: `modelstat compare A B`"),
        (["gpus", "v100", "t4"], "modelstat gpus has no place for 't4', as in `modelstat gpus 4090`"),
        (["size"], "modelstat size needs MODEL, as in `modelstat size resnet50 --qps 2000 --latency 20ms`"),
        (["size"], "(`modelstat size --help` lists the options)"),
        (["--gpu", "v100"], f"modelstat needs MODEL, as in `modelstat resnet50 --gpu v100` {ALONE}"),
        (["sweep", "resnet18"], "modelstat sweep needs --output, as in `modelstat sweep "),
        (["sweep", "resnet18", "--output"], "--output needs a value (`modelstat sweep --help`"),
        (["resnet50", "--batch"], f"--batch needs a value {ALONE}"),
        (["resnet50", "--qps", "5"], f"modelstat has no option --qps: `modelstat size` has it {ALONE}"),
        (["compare", "a", "b", "--depth=3"], "modelstat compare has no option --depth: `modelstat MODEL` has it"),
        (["size", "resnet50", "--qqs", "3"], "modelstat size has no option --qqs: did you mean --qps?"),
        (["size", "resnet50", "--zzz", "3"], "modelstat size has no option --zzz (`modelstat size --help`"),
        (["resnet50", "--top", "2.5"], f"--top '2.5' is not a whole number: give one such as 3 {ALONE}"),
        (["resnet50", "--top", "some"], "--top 'some' is not a whole number"),
        (["size", "resnet50", "--qps", "some"], "--qps 'some' is not a number"),
        (["size", "resnet50", "--qps", "5", "--latency", "some"], "--latency 'some' is not a time: write it like 3ms"),
        (["size", "resnet50", "--qps", "5", "--latency", "9ms", "--precision", "fp16,fp32"], "a size is of one precision"),
        (["sweep", "resnet18", "--output", "r.csv"], "a sweep writes Parquet, give it a name such as r.parquet"),
        (["sweep", "resnet18", "--output", "r.parquet", "--scheduler", "here"], "'here' is no address of a Dask scheduler"),
        (["sweep", "resnet18", "--output", "r.parquet", "--timeout", "soon"], "--timeout 'soon' is not a time"),
        (["compare", "resnet50"], "resnet50 alone is no comparison: give two models or more, as in `modelstat compare "),
        (["compare", "a", "b", "--format", "json", "--wide"], "--format json is the whole comparison, in which --wide changes nothing"),
        (["compare", "absent.py", "b"], "absent.py does not exist"),
        (["swap", "resnet18", "conv=ghost", "--format", "csv", "--wide"], "--wide is for the table of layers, not for --format csv"),
        (["measure", "resnet18", "--gpu", "v100", "--top", "0"], "--top 0 shows nothing"),
        (["measure", "resnet18", "--gpu", "v100", "--top", "3", "--format", "json"], "in which --top changes nothing"),
        (["overlay", "resnet18", "x.csv", "--gpu", "v100", "--top", "3", "--format", "json"], "in which --top changes nothing"),
        (["size", "resnet18", "--qps", "5", "--latency", "9ms", "--top", "3", "--format", "json"], "in which --top changes nothing"),
        (["measure", "resnet18", "--gpu", "v100", "--save", "absent/x.csv"], "--save absent/x.csv cannot be written: there is no"),
        (["resnet50", "--level", "op", "--depth", "1"], "--depth is about the tree of modules: leave it out with --level op"),
        (["check", "absent.toml"], "`[[budget]]`, `model = \"resnet50\"` and `max_params = \"26M\"`, on a line each (docs/check.md"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_names_the_way_out(run: Run, arguments: list[str], message: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


NARROWING = [
    ("--depth", "1"), ("--columns", "params"), ("--sort", "params"), ("--top", "3"), ("--filter", "x"), ("--wide",),
]  # fmt: skip


@pytest.mark.parametrize("form", [("--format", "torchstat"), ("--format", "json"), ("--crosscheck",)], ids=lambda form: form[-1])
@pytest.mark.parametrize("option", NARROWING, ids=lambda option: option[0])
def test_a_whole_report_refuses_what_narrows_it(run: Run, form: tuple[str, ...], option: tuple[str, ...]) -> None:
    code, out, err = run("absent.py:build", *form, *option)
    assert (code, out) == (2, "")
    assert f"{' '.join(form)} " in err
    assert f"in which {option[0]} changes nothing" in err


@pytest.mark.parametrize(
    "option", [("--gpu", "v100"), ("--level", "op"), ("--causal", "half"), ("--training", "adam"), ("--weights", "int8")]
)
def test_torchstats_table_refuses_what_it_does_not_know(run: Run, option: tuple[str, ...]) -> None:
    err = run("absent.py:build", "--format", "torchstat", *option).err
    assert "--format torchstat is torchstat's own table, in which" in err
    assert option[0] in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["resnet50", "--input", "abc"],
        ["resnet50", "--input", "ids=seq:flot", "--sweep", "seq=1..4"],
        ["resnet50", "--input", "=3x224x224", "--batch", "4"],
        ["swap", "resnet50", "conv=ghost", "--input", "abc"],
        ["compare", "resnet50", "resnet18", "--input", "abc"],
        ["size", "resnet50", "--qps", "1", "--latency", "9ms", "--input", "abc"],
        ["measure", "resnet50", "--gpu", "v100", "--input", "abc"],
        ["overlay", "resnet50", "absent.csv", "--gpu", "v100", "--input", "abc"],
        ["sweep", "resnet50", "--output", "results.parquet", "--input", "3x224x224", "--input", "abc"],
        ["resnet50", "--output", "absent/report"],
        ["calibrate", "--seconds", "-1"],
        ["calibrate", "--output", "absent/machine.toml"],
        ["sizee", "resnet50"],
    ],
    ids=" ".join,
)
def test_mistakes_are_found_before_torch_is_imported(arguments: list[str]) -> None:
    program = "import sys; from modelstat.cli import main; code = main(sys.argv[1:]); sys.exit('torch' if 'torch' in sys.modules else code)"
    finished = subprocess.run([sys.executable, "-c", program, *arguments], check=False, capture_output=True, text=True)
    assert finished.returncode == 2, finished.stderr
    assert finished.stderr.startswith("modelstat: error: ")
