"""The fitted numbers: one JSON file a family in ``modelstat/predict/data``.

A file holds ``fit`` (source, GPUs, date, error) and one table for each class of arithmetic: ``fp32`` for kernels on the vector lanes,
``half`` for kernels on tensor cores (fp16, bf16, and TF32, fp8 and int8, which run the same kernels at another rate). Every entry
is a value with its unit and its meaning. JSON, because its parser is in C: a prediction should not wait for its constants.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).parent.parent / "data"

Constants = Mapping[str, float]


@cache
def document(family: str) -> dict[str, Any]:
    """The whole file of a family."""
    loaded: dict[str, Any] = json.loads((DIRECTORY / f"{family}.json").read_text(encoding="utf-8"))
    return loaded


@cache
def constants(family: str, table: str) -> Constants:
    """The values of one table of a family, by name."""
    return {name: float(entry["value"]) for name, entry in document(family)[table].items()}


def table_of(tensor: bool) -> str:
    """The table for a kernel that runs on tensor cores, or does not."""
    return "half" if tensor else "fp32"
