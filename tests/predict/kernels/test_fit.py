"""The fit finds constants again: those that made the rows, and those in the data files."""

from __future__ import annotations

import copy
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
MEASURED = ROOT.parent / "shared" / "measured" / "kernels"
SETS = ("element-wise", "add fp16", "linear", "bmm", "norm", "softmax")

pytest.importorskip("pandas", reason="the fit reads its files with pandas (the dev extra)")


def script(name: str) -> Any:
    """A module of scripts/kernel_fit, which is no part of the package."""
    if str(ROOT / "scripts") not in sys.path:
        sys.path.append(str(ROOT / "scripts"))
    return import_module(f"kernel_fit.{name}")


@pytest.fixture(scope="module")
def sets() -> dict[str, Any]:
    if not MEASURED.is_dir():
        pytest.skip(f"no measured kernels in {MEASURED}: they are not part of the project")
    return {name: script("sets").SETS[name](MEASURED) for name in SETS}


@pytest.fixture(scope="module")
def tables() -> dict[str, Any]:
    loaded: dict[str, Any] = script("report").load_tables()
    return loaded


def task(name: str) -> Any:
    return next(task for task in script("plan").TASKS if task.set == name)


def test_least_squares_finds_a_power_law() -> None:
    x = np.linspace(1, 9, 50)

    def residuals(point: Any) -> Any:
        scale, exponent = np.exp(point)
        return np.log(scale * x**exponent) - np.log(3.0 * x**0.5)

    found = np.exp(script("search").fit(residuals, np.zeros(2), 1e-9))
    np.testing.assert_allclose(found, [3.0, 0.5], rtol=1e-3)


def test_a_constant_without_data_stays_where_it_started() -> None:
    found = script("search").fit(lambda point: point[:1] - 1.0, np.zeros(2), 1e-6)
    assert found[0] == pytest.approx(1.0, rel=1e-3)
    assert found[1] == 0.0


def test_the_fit_recovers_the_constants_that_made_the_rows(tables: dict[str, Any]) -> None:
    from modelstat.predict.kernels import norm

    plan, rows = script("plan"), script("rows")
    random = np.random.default_rng(7)
    count, width = 2.0 ** random.integers(10, 18, 900), 2.0 ** random.integers(8, 15, 900)
    features = norm.Features(count, width, 4 * count * width, 4 * count * width, np.ones(900))
    gpus = np.array(["p4", "v100-pcie-32", "a100-pcie-40"] * 300)
    known = copy.deepcopy(tables)
    truth = {"l2_share": 0.7, "l2_sharpness": 4.0, "row_cycles": 5000.0, "overlap": 2.5}
    for name, value in truth.items():
        known["norm"]["fp32"][name]["value"] = value
    made = rows.Rows(features, np.ones(900), gpus, "float32")
    constants, watch = plan.values(known["norm"]["fp32"]), {"host_s": 2e-5}
    seconds = plan.predicted(task("norm"), made, made.rates(plan.values(known["rates"]["values"])), constants, watch)
    found, stopwatch = plan.fit_task(task("norm"), rows.Rows(features, seconds, gpus, "float32"), tables, prior=1e-9)
    assert {name: found[name] for name in truth} == pytest.approx(truth, rel=0.02)
    assert stopwatch["host_s"] == pytest.approx(2e-5, rel=0.02)


def test_memory_constants_are_those_in_the_data_file(sets: dict[str, Any], tables: dict[str, Any]) -> None:
    again = copy.deepcopy(tables)
    script("plan").fit_memory(sets["element-wise"], sets["add fp16"], again)
    for name, entry in tables["rates"]["values"].items():
        assert again["rates"]["values"][name]["value"] == pytest.approx(entry["value"], rel=0.02), name


@pytest.mark.parametrize("name", ["norm", "softmax", "linear"])
def test_a_family_is_fitted_to_what_its_data_file_holds(name: str, sets: dict[str, Any], tables: dict[str, Any]) -> None:
    chosen = task(name)
    constants, stopwatch = script("plan").fit_task(chosen, sets[name], tables)
    stored = script("plan").values(tables[chosen.family][chosen.table])
    assert constants == pytest.approx(stored, rel=0.02)
    assert stopwatch == pytest.approx(script("plan").values(tables[chosen.family]["stopwatch"]), rel=0.02)


@pytest.mark.parametrize("name", ["element-wise", "linear", "bmm", "norm", "softmax"])
def test_the_goal_holds_on_a_gpu_that_took_no_part_in_the_fit(name: str, sets: dict[str, Any], tables: dict[str, Any]) -> None:
    error = script("report").left_out(task(name), sets, tables)
    assert np.mean(np.abs(error)) <= task(name).goal
