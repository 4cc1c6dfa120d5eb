"""What `import modelstat` offers, name by name: a change here is a change for every user."""

from __future__ import annotations

import subprocess
import sys

import pytest

import modelstat
from modelstat import errors

ERRORS = [
    "BudgetError", "BuildError", "ClusterError", "CostError", "GpuDefinitionError", "InputError", "MissingExtraError",
    "MissingPeakError", "ModelFileError",
    "ModelstatError", "OutputError", "ProfileError", "SourceError", "StrictError", "SwapError",
    "TraceError", "UnknownGpuError", "UnknownModelError", "UsageError",
]  # fmt: skip


def test_all_is_exactly_this() -> None:
    classes = ["Analysis", *sorted([*ERRORS, "Comparison", "Sweep"])]
    functions = ["analyze", "compare", "formula", "serve", "size", "size_serving", "stat", "swap", "sweep"]
    assert modelstat.__all__ == [*classes, "__version__", *functions]


def test_every_error_class_is_public() -> None:
    classes = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert classes == set(ERRORS)
    for name in ERRORS:
        assert getattr(modelstat, name) is getattr(errors, name)


@pytest.mark.parametrize(
    ("name", "home"),
    [
        ("Analysis", "modelstat.analysis"),
        ("Comparison", "modelstat.report.compare"),
        ("Sweep", "modelstat.sweeping.sweep"),
        ("analyze", "modelstat.api"),
        ("size", "modelstat.deploy.size"),
        ("size_serving", "modelstat.deploy.size_serving"),
        ("compare", "modelstat.api"),
        ("stat", "modelstat.api"),
        ("swap", "modelstat.api"),
        ("sweep", "modelstat.sweeping.start"),
    ],
)
def test_names_are_loaded_from_their_home(name: str, home: str) -> None:
    assert getattr(modelstat, name).__module__ == home


def test_formula_is_callable() -> None:
    assert callable(modelstat.formula)


def test_dir_lists_what_is_not_loaded_yet() -> None:
    program = "import sys, modelstat; assert set(modelstat.__all__) <= set(dir(modelstat)); assert 'modelstat.api' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'analyse'"):
        modelstat.analyse  # noqa: B018


def test_exit_codes() -> None:
    assert {name: getattr(errors, name).exit_code for name in ERRORS} == {name: 3 if name == "StrictError" else 2 for name in ERRORS}
