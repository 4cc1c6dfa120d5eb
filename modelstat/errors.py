"""Every error that modelstat raises on purpose. Each message is one line that names the input and the way out.

::

    ModelstatError                    exit code 2
    ├── SourceError                   a model spec that leads to no model
    │   ├── UnknownModelError         no origin knows the name
    │   ├── ModelFileError            a .py or .yaml file that cannot be read, or has a mistake on a line
    │   └── BuildError                the constructor raised
    ├── InputError                    an input spec that cannot be read or that the model does not take
    ├── TraceError                    the model raised while it was walked
    ├── UnknownGpuError               no row and no definition by that name
    ├── GpuDefinitionError            a definition or a database row that contradicts itself
    ├── MissingPeakError              the GPU has no peak for that dtype
    ├── MissingExtraError             an optional package is not installed
    ├── ProfileError                  a profiler's file that cannot be read, or holds nothing of use
    ├── OutputError                   a file that cannot be written
    ├── BudgetError                   a budget file with a mistake, or a budget that cannot be checked
    ├── UsageError                    options that do not go together
    ├── SwapError                     a swap that does not exist, cannot be read, or that no layer takes
    ├── ClusterError                  a Dask cluster that cannot be reached, or whose workers cannot do the work
    ├── CostError                     a formula that cannot be registered, or that failed
    └── StrictError                   --strict and an op without a formula (exit code 3)
"""

from __future__ import annotations


class ModelstatError(Exception):
    """Base of all. ``exit_code`` is what the command line exits with."""

    exit_code = 2


class SourceError(ModelstatError):
    """A model spec that leads to no model."""


class UnknownModelError(SourceError):
    """No origin knows the name."""


class ModelFileError(SourceError):
    """A file that cannot be read, or has a mistake on a line."""


class BuildError(SourceError):
    """The constructor raised."""


class InputError(ModelstatError):
    """An input spec that cannot be read, or that the model does not take."""


class TraceError(ModelstatError):
    """The model raised while it was walked."""


class UnknownGpuError(ModelstatError):
    """No row and no definition by that name."""


class GpuDefinitionError(ModelstatError):
    """A definition or a database row that contradicts itself."""


class MissingPeakError(ModelstatError):
    """The GPU has no peak for that dtype and unit."""


class MissingExtraError(ModelstatError):
    """An optional package is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{package} is not installed, {purpose} needs it: install the extra with `pip install -e '.[{extra}]'`")
        self.package = package
        self.extra = extra


class ProfileError(ModelstatError):
    """A profiler's file that cannot be read, or holds nothing of use."""


class OutputError(ModelstatError):
    """A file that cannot be written."""


class BudgetError(ModelstatError):
    """A budget file with a mistake, or a budget that cannot be checked."""


class UsageError(ModelstatError):
    """Options that do not go together."""


class SwapError(ModelstatError):
    """A swap that does not exist, cannot be read, or that no layer takes."""


class ClusterError(ModelstatError):
    """A Dask cluster that cannot be reached, or whose workers cannot do the work."""


class CostError(ModelstatError):
    """A formula that cannot be registered, or that failed."""


class StrictError(ModelstatError):
    """An op has no formula, and the user asked for none to be missing."""

    exit_code = 3
