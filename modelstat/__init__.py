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
    from modelstat.api import analyze, compare, formula, stat, swap
    from modelstat.deploy.size import size
    from modelstat.deploy.size_serving import size_serving
    from modelstat.errors import (
        BudgetError,
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
        ProfileError,
        SourceError,
        StrictError,
        SwapError,
        TraceError,
        UnknownGpuError,
        UnknownModelError,
        UsageError,
    )
    from modelstat.report.compare import Comparison
    from modelstat.serving.serve import serve
    from modelstat.sweeping.start import sweep
    from modelstat.sweeping.sweep import Sweep

__version__ = "0.1.0"

__all__ = [
    "Analysis",
    "BudgetError",
    "BuildError",
    "ClusterError",
    "Comparison",
    "CostError",
    "GpuDefinitionError",
    "InputError",
    "MissingExtraError",
    "MissingPeakError",
    "ModelFileError",
    "ModelstatError",
    "OutputError",
    "ProfileError",
    "SourceError",
    "StrictError",
    "SwapError",
    "Sweep",
    "TraceError",
    "UnknownGpuError",
    "UnknownModelError",
    "UsageError",
    "__version__",
    "analyze",
    "compare",
    "formula",
    "serve",
    "size",
    "size_serving",
    "stat",
    "swap",
    "sweep",
]

_HOMES = {
    "Analysis": "modelstat.analysis",
    "Comparison": "modelstat.report.compare",
    "Sweep": "modelstat.sweeping.sweep",
    "serve": "modelstat.serving.serve",
    "size": "modelstat.deploy.size",
    "size_serving": "modelstat.deploy.size_serving",
    "sweep": "modelstat.sweeping.start",
    **dict.fromkeys(("analyze", "compare", "formula", "stat", "swap"), "modelstat.api"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'modelstat' has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "modelstat.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
