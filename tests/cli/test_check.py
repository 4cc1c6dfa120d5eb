"""`modelstat check`: a repository goes red when a layer is widened, and green again when its baseline is updated."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

Run = Callable[..., Any]
PIXELS = 8 * 8

NET = """
from torch import nn

def build(width={width}):
    return nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 10, 1)).eval()

def broken():
    raise ValueError("on purpose,\\nin two lines: 100 %")
"""


def params(width: int) -> int:
    """3 x 3 x 3 x width weights and width biases, then width x 10 and 10."""
    return 28 * width + 10 * width + 10


class Repository:
    """A checkout with a model and a budget file."""

    def __init__(self, folder: Path, run: Run) -> None:
        self.folder, self._run = folder, run
        (folder / "src").mkdir()
        self.width(8)

    def width(self, width: int) -> None:
        (self.folder / "src" / "net.py").write_text(NET.format(width=width))

    def budgets(self, *entries: str) -> None:
        heads = (f'[[budget]]\nmodel = "src/net.py:build"\ninput = "3x8x8"\n{entry}\n' for entry in entries)
        (self.folder / "modelstat.toml").write_text("\n".join(heads))

    def check(self, *arguments: str) -> Any:
        return self._run("check", *arguments)


@pytest.fixture
def repository(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.chdir(tmp_path)
    return Repository(tmp_path, run)


def test_red_when_a_layer_is_widened_green_when_the_baseline_is_updated(repository: Repository) -> None:
    repository.budgets('name = "net"\ngpu = "t4"\nmax_regression = "5%"')
    code, _, err = repository.check()
    assert code == 2
    assert re.search(r"net: max_regression needs the baseline baselines/net\.json, which is not there: .*--update-baseline", err), err

    code, out, err = repository.check("--update-baseline")
    assert (code, err) == (0, "")
    assert "note: wrote baselines/net.json" in out
    assert repository.check().code == 0

    repository.width(16)
    code, out, err = repository.check()
    assert (code, err) == (1, "")
    grown = params(16) / params(8) - 1
    assert f"FAILED  net: params +{100 * grown:.1f} %, MACs +100.0 %, FLOPs " in out
    assert ", at most +5.0 % over the baseline; " in out
    assert "        grown most over baselines/net.json:\n" in out
    assert re.search(rf"^          0 \(Conv2d\): params \+{28 * 8}, MACs \+{27 * 8 * PIXELS / 1e3:.2f} k, ", out, re.MULTILINE)
    assert re.search(rf"^          2 \(Conv2d\): params \+{10 * 8}, MACs \+{10 * 8 * PIXELS / 1e3:.2f} k, ", out, re.MULTILINE)

    assert repository.check("--update-baseline").code == 0
    code, out, _ = repository.check()
    assert code == 0
    assert out.startswith("ok      net: params, MACs, FLOPs, MemR+W, peak memory, ideal, predicted as in the baseline\n")


def test_a_limit_is_not_moved_by_the_baseline(repository: Repository) -> None:
    repository.width(16)
    repository.budgets(f'name = "net"\nmax_params = {params(8)}')
    assert repository.check("--update-baseline").code == 1


def test_one_line_per_budget_with_the_margin(repository: Repository) -> None:
    repository.budgets(
        f'name = "wide"\nmax_params = {2 * params(8)}\nmax_macs = "1M"',
        f'name = "tight"\nmax_params = {params(8)}',
        f'name = "over"\nmax_params = {params(8) // 2}',
    )
    code, out, err = repository.check()
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        f"ok      wide: params {params(8)}, at most {2 * params(8)} (50.0 % left); "
        f"MACs {37 * 8 * PIXELS / 1e3:.2f} k, at most 1.00 M ({100 - 37 * 8 * PIXELS / 1e4:.1f} % left)",
        f"ok      tight: params {params(8)}, at most {params(8)} (0.0 % left)",
        f"FAILED  over: params {params(8)}, at most {params(8) // 2} (100.0 % over)",
        "        heaviest, with no baseline to compare:",
        f"          0 (Conv2d): params {28 * 8}",
        f"          2 (Conv2d): params {10 * 8 + 10}",
        "3 budgets: 2 passed, 1 failed",
    ]


def measured(repository: Repository, entry: str) -> dict[str, Any]:
    repository.budgets(entry)
    found: dict[str, Any] = json.loads(repository.check("--format", "json").out)["outcomes"][0]
    return found


IMAGE, HIDDEN, OUT = 3 * PIXELS, 8 * PIXELS, 10 * PIXELS
FLOPS = 2 * 37 * 8 * PIXELS + HIDDEN + HIDDEN + OUT  # two contractions with their biases, and the ReLU
MOVED = 4 * (IMAGE + 28 * 8 + HIDDEN) + 4 * 2 * HIDDEN + 4 * (HIDDEN + 90 + OUT)
HELD = 4 * params(8) + 4 * (IMAGE + HIDDEN + OUT)  # in the last layer; the image is held by whoever called


@pytest.mark.parametrize(
    ("key", "value", "below", "above"),
    [
        ("max_params", params(8), "{} ", "{} "),
        ("max_macs", 37 * 8 * PIXELS, "{} ", "{} "),
        ("max_flops", FLOPS, "{} ", "{} "),
        ("max_peak_memory", HELD, '"{} B"', '"{} B"'),
        ("min_intensity", FLOPS / MOVED, '"{:.12f} FLOP/B"', "{:.12f}"),
    ],
)
def test_every_count_at_its_limit_and_one_beyond(repository: Repository, key: str, value: float, below: str, above: str) -> None:
    step = 1 if isinstance(value, int) else 1e-3
    sign = -1 if key.startswith("min") else 1
    within, beyond = value + (0 if isinstance(value, int) else sign * step), value - sign * step
    assert measured(repository, f"{key} = {below.format(within)}")["status"] == "passed"
    failed = measured(repository, f"{key} = {above.format(beyond)}")
    assert failed["status"] == "failed"
    assert failed["culprits"]
    assert failed["measures"][0]["measured"] == value


@pytest.mark.parametrize("key", ["max_predicted", "max_ideal"])
def test_times(repository: Repository, key: str) -> None:
    assert measured(repository, f'gpu = "t4"\n{key} = "1s"')["status"] == "passed"
    failed = measured(repository, f'gpu = "t4"\n{key} = "1ns"')
    assert failed["status"] == "failed"
    assert failed["culprits"][0]["layer"] in ("0 (Conv2d)", "1 (ReLU)", "2 (Conv2d)")


def test_a_budget_whose_model_fails_does_not_stop_the_others(repository: Repository) -> None:
    repository.budgets("max_params = 1000")
    path = repository.folder / "modelstat.toml"
    path.write_text(f'[[budget]]\nname = "bad"\nmodel = "src/net.py:broken"\ninput = "3x8x8"\nmax_params = 5\n\n{path.read_text()}')
    code, out, err = repository.check()
    assert code == 2
    assert re.search(r"^ERROR   bad: .*on purpose", out, re.MULTILINE)
    assert re.search(r"^ok      src/net\.py:build: params", out, re.MULTILINE)
    assert "2 budgets: 1 passed, 1 could not be checked" in out
    assert err.startswith("modelstat: error: 1 of 2 budgets could not be checked: bad: ")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"versions": {"modelstat": "0.0.1"}}, "it is of modelstat 0.0.1, this is of 0.1.0"),
        ({"convention": "MACs with bias"}, "it counts by another convention"),
        ({"precision": "fp16"}, "it is of precision fp16, this is of fp32"),
        ({"batch": 8}, "it is of batch 8, this is of 1"),
        ({"schema": "modelstat/2"}, "is not a report"),
    ],
)
def test_a_baseline_that_says_nothing(repository: Repository, change: dict[str, Any], message: str) -> None:
    repository.budgets('name = "net"\nmax_regression = "0%"')
    assert repository.check("--update-baseline").code == 0
    baseline = repository.folder / "baselines" / "net.json"
    baseline.write_text(json.dumps({**json.loads(baseline.read_text()), **change}))
    code, _, err = repository.check()
    assert code == 2
    assert message in err
    assert "`modelstat check --update-baseline` writes it anew" in err
    assert repository.check("--update-baseline").code == 0
    assert repository.check().code == 0


def test_a_baseline_that_only_explains_is_no_obstacle(repository: Repository) -> None:
    repository.budgets('name = "net"\nmax_params = 5')
    assert repository.check("--update-baseline").code == 1
    baseline = repository.folder / "baselines" / "net.json"
    baseline.write_text(json.dumps({**json.loads(baseline.read_text()), "precision": "fp16"}))
    code, out, _ = repository.check()
    assert code == 1
    assert "note: baseline baselines/net.json cannot be compared: it is of precision fp16" in out
    assert "heaviest, with no baseline to compare" in out


def test_the_baseline_is_the_same_wherever_the_repository_lies(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.budgets('name = "net"\nmax_regression = "0%"')
    assert repository.check("--update-baseline").code == 0
    monkeypatch.chdir(repository.folder.parent)
    assert repository.check(str(repository.folder / "modelstat.toml")).code == 0


def test_a_baseline_is_a_report(repository: Repository, run: Run) -> None:
    repository.budgets('name = "net"\nmax_regression = "0%"')
    assert repository.check("--update-baseline").code == 0
    assert run("compare", "baselines/net.json", "src/net.py:build(width=16)", "--input", "3x8x8", "--by", "layer").code == 0


def test_only_some(repository: Repository) -> None:
    repository.budgets('name = "a1"\nmax_params = 5', 'name = "b1"\nmax_params = "1M"')
    assert repository.check("--only", "b*").code == 0
    code, _, err = repository.check("--only", "c*")
    assert code == 2
    assert "--only c* matches no budget: there are a1, b1" in err


def test_junit(repository: Repository) -> None:
    repository.budgets('name = "net <1> & \\"2\\""\nmax_params = 5\nmax_macs = "1M"')
    path = repository.folder / "modelstat.toml"
    path.write_text(f'{path.read_text()}\n[[budget]]\nname = "bad"\nmodel = "src/net.py:broken"\ninput = "3x8x8"\nmax_params = 5\n')
    code, out, _ = repository.check("--format", "junit", "--junit", "report.xml")
    assert code == 2
    suite = ElementTree.fromstring(out).find("testsuite")
    assert suite is not None
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {"tests": "3", "failures": "1", "errors": "1"}
    over, within, bad = suite.findall("testcase")
    assert [case.get("name") for case in (over, within, bad)] == ["max_params", "max_macs", "check"]
    assert over.get("classname") == 'net <1> & "2"'
    failure, error = over.find("failure"), bad.find("error")
    assert failure is not None
    assert error is not None
    assert f"params {params(8)}, at most 5" in str(failure.get("message"))
    assert f"  0 (Conv2d): params {28 * 8}\n" in str(failure.text)
    assert "on purpose" in str(error.get("message"))
    assert list(within) == [within.find("system-out")]
    assert (repository.folder / "report.xml").read_text() == out


def test_github_annotations(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(repository.folder.parent))
    repository.budgets('name = "a: b, 100%"\nmax_params = 5', 'name = "fine"\nmax_params = "1M"')
    code, out, _ = repository.check("--format", "github")
    assert code == 1
    (line,) = [line for line in out.splitlines() if line.startswith("::")]
    folder = repository.folder.name
    place = f"file={folder}/modelstat.toml,line=1,title=modelstat%3A a%3A b%2C 100%25"
    assert line.startswith(f"::error {place}::a: b, 100%25: params {params(8)}")
    assert "%25 over)%0Aheaviest, with no baseline to compare:%0A  0 (Conv2d): params" in line
    assert "FAILED  a: b, 100%" in out, "the log says it too"


def test_the_summary_is_added_to_what_is_there(repository: Repository) -> None:
    (repository.folder / "summary.md").write_text("before\n")
    repository.budgets('name = "a|b <i>"\nmax_params = 5\nmax_macs = "1M"')
    assert repository.check("--summary", "summary.md").code == 1
    text = (repository.folder / "summary.md").read_text()
    assert text.startswith("before\n### modelstat check: 1 budget: 1 failed\n")
    lines = [re.sub(r" +", " ", line) for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 2
    assert lines[2].startswith(f"| **a\\|b &lt;i&gt;** | **max\\_params** | **{params(8)}** | **5** |")
    assert lines[3].endswith("| ok |")
    assert f"- heaviest, with no baseline to compare:\n  - 0 (Conv2d): params {28 * 8}\n  - 2 (Conv2d): params 90\n" in text
    assert text.endswith(repository.check("--format", "markdown").out)


@pytest.mark.parametrize("option", ["--output", "--junit", "--summary"])
def test_a_place_that_cannot_be_written_is_found_out_first(repository: Repository, option: str) -> None:
    repository.budgets("max_params = 5")
    code, out, err = repository.check(option, "absent/file")
    assert (code, out) == (2, "")
    assert f"{option} absent/file cannot be written" in err


def test_hostile_names_steer_nothing(repository: Repository) -> None:
    repository.budgets('name = "\\u001b[31m::set-env"\nmax_params = 5')
    for form in ("human", "github", "junit", "markdown"):
        assert "\x1b" not in repository.check("--format", form).out


def test_a_second_check_does_without_torch(repository: Repository) -> None:
    repository.budgets('gpu = "t4"\nmax_predicted = "1s"')
    # Both are processes of their own, as a user's are: nothing that another test left in this one counts.
    subprocess.run([sys.executable, "-m", "modelstat", "check"], check=True, capture_output=True, cwd=repository.folder)
    command = [sys.executable, "-X", "importtime", "-m", "modelstat", "check"]
    finished = subprocess.run(command, check=True, capture_output=True, text=True, cwd=repository.folder)
    assert "1 passed" in finished.stdout
    assert not re.search(r"\| +torch$", finished.stderr, re.MULTILINE)


def test_a_bad_file_is_one_line(repository: Repository) -> None:
    repository.budgets("max_parms = 5")
    code, out, err = repository.check()
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "modelstat.toml, line 4: budget 1 (src/net.py:build): unknown key 'max_parms': did you mean max_params" in err
