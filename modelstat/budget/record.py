"""A budget: one model under stated circumstances, and what it may cost there."""

from __future__ import annotations

from pathlib import Path

import msgspec

from modelstat.hardware.gpu import Gpu
from modelstat.predict.execution import Execution


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """One ``[[budget]]`` of a file, read and checked. ``limits`` are in SI units by name, ``regression`` shares of one by quantity."""

    name: str
    model: str
    folder: Path
    """Of the budget file: what its paths are relative to."""
    line: int | None = None
    """Where it starts in the file, None where that cannot be told."""
    input: str | None = None
    batch: int | None = None
    precision: str | None = None
    eval: bool = False
    gpu: Gpu | None = None
    execution: Execution = Execution()
    limits: dict[str, float] = {}
    regression: dict[str, float] = {}
    baseline: Path
    """The committed report that it is held against; it need not exist without a ``max_regression``."""
