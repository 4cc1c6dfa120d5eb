"""Measurements of whole models: one row a measurement, in the format that docs/accuracy.md describes."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

REQUIRED = ("source", "gpu", "model", "input", "batch", "precision", "mode", "measured_ms")


class Row(NamedTuple):
    """One measured forward pass of a whole batch; ``line`` in the file, ``params_m`` and ``gmacs`` where the source counted them."""

    line: int
    source: str
    gpu: str
    model: str
    input: str
    batch: int
    precision: str
    layout: str
    mode: str
    measured_seconds: float
    params_m: float | None
    gmacs: float | None

    @property
    def group(self) -> tuple[str, str, str, str, str]:
        """What is scored together: source, GPU, layout, mode and precision."""
        return self.source, self.gpu, self.layout or "nchw", self.mode, self.precision


def read(path: Path) -> tuple[list[Row], list[str]]:
    """All rows, and a line for each that cannot be read."""
    rows: list[Row] = []
    bad: list[str] = []
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = [name for name in REQUIRED if name not in (reader.fieldnames or ())]
        if missing:
            return [], [f"{path}: no column {', '.join(missing)}"]
        for given in reader:
            try:
                rows.append(_row(reader.line_num, given))
            except (TypeError, ValueError) as error:
                bad.append(f"{path}, line {reader.line_num}: {error}")
    return rows, bad


def _row(line: int, given: dict[str, str]) -> Row:
    measured = float(given["measured_ms"])
    batch = int(given["batch"])
    if not measured > 0 or batch < 1:
        raise ValueError(f"measured_ms {measured:g} and batch {batch} must be positive")
    if given["mode"] not in ("eager", "compile"):
        raise ValueError(f"mode {given['mode']!r}: eager or compile")
    optional = [float(given[name]) if given.get(name) else None for name in ("params_m", "gmacs")]
    return Row(
        line, given["source"], given["gpu"], given["model"], given["input"], batch, given["precision"], given.get("layout") or "nchw",
        given["mode"], measured / 1e3, *optional,
    )  # fmt: skip


def by_model(rows: list[Row]) -> Iterator[tuple[tuple[str, ...], list[Row]]]:
    """Rows of one model, input, precision and layout together: they come from the same traces."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.model, row.input, row.precision, row.layout), []).append(row)
    yield from groups.items()
