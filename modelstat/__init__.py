"""A static model analyzer for PyTorch: what every layer costs, and what sets its time on a GPU that you do not have.

>>> import modelstat
>>> modelstat.__version__.count(".")
2

Importing this package imports neither torch nor anything else that is slow: each public name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modelstat.analysis import Analysis
    from modelstat.api import analyze, formula, size, stat, sweep
    from modelstat.errors import (
        BuildError,
        ClusterError,
        CostError,
        GpuDefinitionError,
        InputError,
        MissingExtraError,
        MissingPeakError,
        ModelFileError,
        ModelstatError,
        OutputError,
        SourceError,
        StrictError,
        TraceError,
        UnknownGpuError,
        UnknownModelError,
        UsageError,
    )
    from modelstat.sweeping.sweep import Sweep

__version__ = "0.1.0"

__all__ = [
    "Analysis",
    "BuildError",
    "ClusterError",
    "CostError",
    "GpuDefinitionError",
    "InputError",
    "MissingExtraError",
    "MissingPeakError",
    "ModelFileError",
    "ModelstatError",
    "OutputError",
    "SourceError",
    "StrictError",
    "Sweep",
    "TraceError",
    "UnknownGpuError",
    "UnknownModelError",
    "UsageError",
    "__version__",
    "analyze",
    "formula",
    "size",
    "stat",
    "sweep",
]

_HOMES = {"Analysis": "modelstat.analysis", "Sweep": "modelstat.sweeping.sweep"} | dict.fromkeys(
    ("analyze", "formula", "size", "stat", "sweep"), "modelstat.api"
)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'modelstat' has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "modelstat.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
