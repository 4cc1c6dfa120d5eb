"""Errors of predicted times, group by group."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from model_fit.rows import Row


class Scored(NamedTuple):
    """A row with what was predicted (s): the time, its interval, and the roofline's."""

    row: Row
    predicted: float
    low: float
    high: float
    ideal: float

    @property
    def error(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted / self.row.measured_seconds - 1.0

    @property
    def covered(self) -> bool:
        """Whether the interval holds what was measured."""
        return self.low <= self.row.measured_seconds <= self.high


def figures(scored: Sequence[Scored]) -> dict[str, float | int | None]:
    """n, median and mean absolute percentage error, bias, rank correlation and coverage, and the roofline's errors."""
    errors = [abs(one.error) for one in scored]
    ideal = [abs(one.ideal / one.row.measured_seconds - 1.0) for one in scored]
    return {
        "n": len(scored),
        "median_percent": 100 * median(errors),
        "mean_percent": 100 * sum(errors) / len(errors),
        "bias_percent": 100 * sum(one.error for one in scored) / len(scored),
        "spearman": spearman([one.predicted for one in scored], [one.row.measured_seconds for one in scored]),
        "coverage_percent": 100 * sum(one.covered for one in scored) / len(scored),
        "roofline_median_percent": 100 * median(ideal),
        "roofline_mean_percent": 100 * sum(ideal) / len(ideal),
    }


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Rank correlation, None for fewer than three pairs."""
    if len(first) < 3:
        return None
    one, other = _ranks(first), _ranks(second)
    mean = (len(first) - 1) / 2
    top = sum((a - mean) * (b - mean) for a, b in zip(one, other, strict=True))
    bottom = (sum((a - mean) ** 2 for a in one) * sum((b - mean) ** 2 for b in other)) ** 0.5
    return top / bottom if bottom else None


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    for rank, index in enumerate(order):
        ranks[index] = float(rank)
    return ranks


def table(scored: Sequence[Scored]) -> str:
    """One line a group, then the twenty worst rows."""
    from tabulate import tabulate

    groups: dict[tuple[str, ...], list[Scored]] = {}
    for one in scored:
        groups.setdefault(one.row.group, []).append(one)
    lines = [[*group, *(figures(members).values())] for group, members in sorted(groups.items())]
    headers = [
        "source", "gpu", "layout", "mode", "precision", "n", "median %", "mean %", "bias %", "Spearman", "in 90 %",
        "roofline median %", "mean %",
    ]  # fmt: skip
    formats = ("",) * 5 + ("d", ".1f", ".1f", "+.1f", ".3f", ".0f", ".1f", ".1f")
    text = tabulate(lines, headers, floatfmt=formats, missingval="-")
    worst = sorted(scored, key=lambda one: -abs(one.error))[:20]
    rows = []
    for one in worst:
        row = one.row
        rows.append([row.model, row.input, row.batch, *row.group[1:], row.measured_seconds * 1e3, one.predicted * 1e3, 100 * one.error])
    return f"{text}\n\nThe 20 worst rows:\n" + tabulate(
        rows, ["model", "input", "batch", "gpu", "layout", "mode", "precision", "measured ms", "predicted ms", "error %"], floatfmt=".4g"
    )
