"""Budget files: what they may say, and what a mistake in one is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from modelstat.budget.file import KEYS, find_file, read_budgets
from modelstat.budget.limits import REGRESSING
from modelstat.errors import BudgetError

GOOD = """
baselines = "ci"

[[budget]]
model = "src/net.py:build"
input = "3x224x224"
batch = 8
precision = "fp16"
gpu = "t4"
mode = "compile"
host = "fast"
max_params = "5M"
max_macs = 4100000000
max_flops = 8.2e9
max_peak_memory = "2GB"
max_ideal = "500us"
max_predicted = "3ms"
min_intensity = 20
max_regression = "5%"

[[budget]]
name = "small"
model = "resnet18"
max_params = "12M"
max_regression = {params = "0%", bytes = "1.5 %"}
baseline = "elsewhere/small.json"
"""


def written(folder: Path, text: str, name: str = "modelstat.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_everything_a_budget_may_say(tmp_path: Path) -> None:
    first, second = read_budgets(written(tmp_path, GOOD))
    assert first.name == "src/net.py:build batch 8 fp16 on t4"
    assert (first.model, first.input, first.batch, first.precision) == ("src/net.py:build", "3x224x224", 8, "fp16")
    assert first.gpu is not None
    assert first.gpu.key == "t4"
    assert (first.execution.mode, first.execution.host_seconds) == ("compile", 11e-6)
    assert first.limits == {
        "max_params": 5e6, "max_macs": 4.1e9, "max_flops": 8.2e9, "max_peak_memory": 2e9,
        "max_ideal": 500e-6, "max_predicted": 3e-3, "min_intensity": 20.0,
    }  # fmt: skip
    assert first.regression == dict.fromkeys(REGRESSING, 0.05)
    assert first.baseline == tmp_path / "ci/src-net.py-build-batch-8-fp16-on-t4.json"
    assert (first.line, second.line) == (4, 21)
    assert second.regression == {"params": 0.0, "bytes": 0.015}
    assert second.baseline == tmp_path / "elsewhere/small.json"


def test_times_do_not_regress_without_a_gpu(tmp_path: Path) -> None:
    (budget,) = read_budgets(written(tmp_path, '[[budget]]\nmodel = "a"\nmax_regression = "5%"\n'))
    assert set(budget.regression) == set(REGRESSING) - {"ideal", "predicted"}


def test_pyproject(tmp_path: Path) -> None:
    text = '[project]\nname = "x"\n\n[[tool.modelstat.budget]]\nmodel = "resnet18"\nmax_params = "12M"\n'
    path = written(tmp_path, text, "pyproject.toml")
    assert find_file(tmp_path) == path
    (budget,) = read_budgets(path)
    assert (budget.model, budget.line) == ("resnet18", 4)
    own = written(tmp_path, '[[budget]]\nmodel = "resnet50"\nmax_params = "26M"\n')
    assert find_file(tmp_path) == own


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tool = 3\n", r"there is no \[\[tool.modelstat.budget\]\] in it"),
        ("[tool]\nmodelstat = 3\n", "tool.modelstat must be a table, not 3"),
        ("[tool.modelstat]\n", "there is no budget in it"),
        ('[tool.modelstat]\nbudgets = "x"\n', "line 2: unknown key 'budgets' in tool.modelstat: did you mean budget"),
    ],
)
def test_a_project_with_a_mistake(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BudgetError, match=message):
        read_budgets(written(tmp_path, text, "pyproject.toml"))


@pytest.mark.parametrize("text", [None, "tool = 3\n", "[tool.ruff]\nline-length = 100\n"])
def test_no_file(tmp_path: Path, text: str | None) -> None:
    if text:
        written(tmp_path, text, "pyproject.toml")
    with pytest.raises(BudgetError, match=r"no budgets here: write \[\[budget\]\] tables into .*modelstat\.toml"):
        find_file(tmp_path)


NET = '[[budget]]\nmodel = "net.py:build"\n'
BAD = [
    ("", "there is no budget in it"),
    ("budget = 3\n", r"line 1: a budget is a table of its own: head it with \[\[budget\]\]"),
    ('[budget]\nmodel = "a"\n', r"line 1: a budget is a table of its own"),
    ("[[budgets]]\n", "line 1: unknown key 'budgets' in the file: did you mean budget"),
    ("[[budget]\n", r"is not TOML: .*line 1"),
    (NET + 'max_params = "5M\n', r"is not TOML: .*line 3"),
    (NET + 'max_parms = "5M"\n', r"line 3: budget 1 \(net.py:build\): unknown key 'max_parms': did you mean max_params"),
    (NET, r"line 1: budget 1 \(net.py:build\): it limits nothing: set one of max_params"),
    ('[[budget]]\nmax_params = "5M"\n', r'line 1: budget 1: model is missing, as in model = "src/net.py:build"'),
    ("[[budget]]\nmodel = 5\nmax_params = 5\n", r"line 2: budget 1: model must be a text, not 5"),
    ('[[budget]]\nmodel = " "\nmax_params = 5\n', r"line 1: budget 1 \( \): model is missing"),
    (NET + "max_params = true\n", r"line 3: .*max_params: True is not a number: write it like \"5M\""),
    (NET + "max_params = [5]\n", r"line 3: .*max_params: \[5\] is not a number"),
    (NET + "max_params = -5\n", r"line 3: .*max_params: '-5' is not a count"),
    (NET + "max_params = 0.5\n", r"line 3: .*max_params: '0.5' is not a whole number"),
    (NET + 'max_params = "5X"\n', r"line 3: .*max_params: '5X' is not a count: write it like 5M"),
    (NET + 'max_peak_memory = "2Gb"\n', r"line 3: .*max_peak_memory: '2Gb' is not a number of bytes: write it like 16GB"),
    (NET + "max_peak_memory = 2000\n", r"line 3: .*max_peak_memory: 2000 has no unit: write it like '2GB'"),
    (NET + 'gpu = "t4"\nmax_predicted = 3\n', r"line 4: .*max_predicted: 3 has no unit: write it like '3ms'"),
    (NET + 'gpu = "t4"\nmax_predicted = "3 minutes"\n', r"line 4: .*max_predicted: '3 minutes' is not a time"),
    (NET + 'max_predicted = "3ms"\n', r'line 3: .*max_predicted needs a GPU: add gpu = "t4"'),
    (NET + 'max_params = 5\nmode = "compile"\n', r"line 4: .*mode needs a GPU"),
    (NET + 'gpu = "t44"\nmax_ideal = "3ms"\n', r"line 3: .*gpu: .*t44.*t4"),
    (NET + 'gpu = "t4,v100"\nmax_ideal = "3ms"\n', r"line 3: .*gpu: 't4,v100' is 2 GPUs: a budget is for one"),
    (NET + 'gpu = "t4"\nmode = "fast"\nmax_ideal = "3ms"\n', r"line 4: .*mode 'fast': choose from eager, compile"),
    (NET + 'gpu = "t4"\nhost = "quick"\nmax_ideal = "3ms"\n', r"line 4: .*host 'quick': give fast"),
    (NET + "batch = 0\nmax_params = 5\n", r"line 3: .*batch: 0 is not a batch size"),
    (NET + 'batch = "8"\nmax_params = 5\n', r"line 3: .*batch must be a whole number, not '8'"),
    (NET + "batch = true\nmax_params = 5\n", r"line 3: .*batch must be a whole number, not True"),
    (NET + 'precision = "fp12"\nmax_params = 5\n', r"line 3: .*precision: .*'fp12' is not a precision: choose from fp32"),
    (NET + "max_regression = 0.05\n", r"line 3: .*max_regression: 0.05 has no unit: write it like '5%'"),
    (NET + 'max_regression = "5"\n', r"line 3: .*max_regression: '5' is not a share: write it like 5%"),
    (NET + "max_regression = {}\n", r"line 3: .*max_regression: an empty table limits nothing"),
    (NET + 'max_regression = {speed = "5%"}\n', r"line 3: .*max_regression: 'speed' is not a quantity.*predicted"),
    (NET + 'max_regression = {predicted = "5%"}\n', r"line 3: .*max_regression: predicted needs a GPU"),
    (NET + "max_params = 5\n" + NET + "max_params = 6\n", r"line 4: 2 budgets are called net.py:build: give each a name of its own"),
    (
        NET + 'name = "a b"\nmax_params = 5\n' + NET + 'name = "a-b"\nmax_params = 6\n',
        r"line 5: 2 budgets have the baseline .*a-b.json: give each a name of its own",
    ),
    ('baseline = "x"\n' + NET + "max_params = 5\n", "line 1: unknown key 'baseline' in the file: did you mean baselines"),
    ("baselines = 5\n" + NET + "max_params = 5\n", "line 1: baselines must be a text, not 5"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD)
def test_a_mistake_names_its_line_and_the_way_out(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(BudgetError) as raised:
        read_budgets(path)
    assert str(raised.value).startswith(str(path))
    assert re.search(message, str(raised.value)), str(raised.value)


def test_a_key_is_found_in_its_own_budget(tmp_path: Path) -> None:
    good = NET.replace("net", "a") + "max_params = 5\n"
    with pytest.raises(BudgetError, match=r"line 6: budget 2 .*max_params: 'x'"):
        read_budgets(written(tmp_path, good + NET + 'max_params = "x"\n'))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match="cannot be read: No such file"):
        read_budgets(tmp_path / "absent.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BudgetError, match="is not TOML"):
        read_budgets(tmp_path / "binary.toml")


@pytest.mark.parametrize("page", ["docs/check.md", "README.md"])
def test_the_budgets_of_the_documentation_are_right(tmp_path: Path, page: str) -> None:
    text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    blocks = [block for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL) if "[[budget]]" in block]
    assert blocks
    for block in blocks:
        assert all(budget.gpu is not None for budget in read_budgets(written(tmp_path, block)))


def test_every_key_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "check.md").read_text(encoding="utf-8")
    assert [key for key in KEYS if f"`{key}`" not in page] == []
