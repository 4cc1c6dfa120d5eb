"""The constants that only whole models show: robust least squares on the logarithm of predicted over measured time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from model_fit.features import Dataset
from modelstat.hardware.database import find
from modelstat.predict.kernels import dispatch
from modelstat.predict.kernels.constants import constants
from modelstat.predict.kernels.rates import measured_rates


class Free(NamedTuple):
    """A constant to fit: its file, table and name, and how far (a standard deviation of its logarithm) it may move from where it is."""

    family: str
    table: str
    name: str
    sigma: float


def _free(family: str, table: str, **sigmas: float) -> list[Free]:
    return [Free(family, table, name, sigma) for name, sigma in sigmas.items()]


HALF = [
    *_free(
        "convolution", "half", direct_efficiency=0.3, prologue=0.5, direct_tail=0.5, direct_ramp=0.5, thin_efficiency=1.0, thin_memory=0.5,
        thin_efficiency_last=0.4, thin_memory_last=0.5, layout_passes=1.0, overlap=0.5, bias_passes=1.0, grouped=1.0, grouped_last=1.0,
        thin_growth=0.4, thin_growth_last=0.4, relaid_passes=0.5, grouped_odd_last=0.5, bands=1.0, thin_again=1.0, grouped_again=1.0,
    ),
    *_free("elementwise", "fp32", l2_gain=0.1, instructions_per_flop=0.4),
    *_free("norm", "fp32", relayout_passes=0.4),
    *_free("softmax", "fp32", l2_share=0.3),
    *_free("reduction", "fp32", memory_share=0.3),
    *_free("pooling", "fp32", memory_share=0.3, instructions_per_flop=0.5),
    *_free("copy", "fp32", transpose_share=0.5),
    *_free("gather", "fp32", memory_share=0.5),
    *_free("resample", "fp32", step_cycles=0.3, memory_share=0.3),
    *_free("gemm", "half", tile_256x128=0.1, tile_128x128=0.1, prologue=0.1, overlap=0.1, l2_activations=0.1),
    *_free("batched_gemm", "half", prologue=0.2, overlap=0.2, misaligned=0.2),
    *_free("attention", "half", efficiency_64=0.15, prologue=0.15, overlap=0.15, memory_efficient=0.3, unfused_passes=0.3),
    *_free("rates", "values", memory_gddr=0.1, clock_geforce=0.1),
]  # fmt: skip
"""What half-precision models of images move. Everything else stays as single kernels gave it."""

BEND = 0.08
"""Errors above this (of the logarithm) count linearly: a model that ran in another way must not pull the rest."""
PRIOR = 0.04
"""Weight of the starting values: that of a row with an error of this size."""

Tables = dict[tuple[str, str], dict[str, float]]
FAMILIES = {family.name: family for family in (*dispatch.FAMILIES.values(), dispatch.BATCHED_GEMM, dispatch.GENERIC)}


def tables(data: Dataset) -> Tables:
    """The constants as they are."""
    keys = {(family, "half" if contraction else "fp32") for family, contraction in data.columns} | {("rates", "values")}
    keys |= {(free.family, free.table) for free in HALF}
    return {key: dict(constants(*key)) for key in keys}


class Times:
    """Predicted seconds (s) of each row, kept by GPU and family: a constant that changes moves its own family only."""

    def __init__(self, data: Dataset) -> None:
        self.data = data
        self.gpus = {name: np.array([row.gpu == name for row in data.rows]) for name in sorted({row.gpu for row in data.rows})}
        self.parts: dict[tuple[str, str, bool], Any] = {}

    def changed(self, values: Tables, moved: tuple[str, str] | None = None) -> Any:
        """All rows' times with other values; ``moved`` is the one table (family, name) that differs from those kept."""
        parts = {key: self._part(*key, values) if self._concerns(key, moved) else self.parts[key] for key in self._keys()}
        return self._sum(parts)

    def keep(self, values: Tables) -> Any:
        """All rows' times, kept for what follows."""
        self.parts = {key: self._part(*key, values) for key in self._keys()}
        return self._sum(self.parts)

    def _keys(self) -> list[tuple[str, str, bool]]:
        return [(name, *column) for name in self.gpus for column in self.data.columns]

    @staticmethod
    def _concerns(key: tuple[str, str, bool], moved: tuple[str, str] | None) -> bool:
        return moved is None or moved[0] == "rates" or moved == (key[1], "half" if key[2] else "fp32")

    def _part(self, name: str, family: str, contraction: bool, values: Tables) -> Any:
        """Seconds (s) of one family in each run, on one GPU."""
        lines, counts, runs = self.data.columns[family, contraction]
        rates = measured_rates(find(name), "float16" if contraction else "float32", values["rates", "values"])
        given = rates if contraction else rates._replace(tensor=False)
        features = _struct(FAMILIES[family].features)(*lines.T)
        with np.errstate(all="ignore"):
            seconds = FAMILIES[family].seconds(features, given, values[family, "half" if contraction else "fp32"]).total
        weights = np.broadcast_to(np.nan_to_num(seconds), counts.shape) * counts
        return np.bincount(runs, weights=weights, minlength=int(self.data.runs.max()) + 1)

    def _sum(self, parts: dict[tuple[str, str, bool], Any]) -> Any:
        times = np.zeros(len(self.data.rows))
        for name, chosen in self.gpus.items():
            total = sum(part for key, part in parts.items() if key[0] == name)
            times[chosen] = total[self.data.runs[chosen]]
        return times


def predicted(data: Dataset, values: Tables) -> Any:
    """Predicted seconds (s) of each row: kernels only, as at a large batch."""
    return Times(data).changed(values)


def _struct(features: Any) -> Any:
    """The Features class that a family's function returns."""
    import sys

    return sys.modules[features.__module__].Features


def fit(data: Dataset, free: list[Free], chosen: Any, rounds: int = 8) -> Tables:
    """Levenberg and Marquardt's method on the logarithms of the constants, from where they are, on the chosen rows."""
    start = tables(data)
    origin = np.log([start[one.family, one.table][one.name] for one in free])
    sigma = np.array([one.sigma for one in free])

    def applied(x: Any) -> Tables:
        values = {key: dict(table) for key, table in start.items()}
        for one, value in zip(free, x, strict=True):
            values[one.family, one.table][one.name] = float(np.exp(value))
        return values

    times, measured = Times(data), data.measured

    def residuals(x: Any, moved: tuple[str, str] | None = None) -> Any:
        return np.log(np.maximum(times.changed(applied(x), moved), 1e-9) / measured)[chosen]

    def objective(r: Any, x: Any) -> float:
        size = np.abs(r)
        return float(np.where(size < BEND, r * r / 2, BEND * (size - BEND / 2)).sum() + PRIOR**2 / 2 * (((x - origin) / sigma) ** 2).sum())

    x, damping = origin.copy(), 1e-2
    r = residuals(x)
    best = objective(r, x)
    for _ in range(rounds):
        times.keep(applied(x))
        moves = zip(free, np.eye(len(x)), strict=True)
        slopes = np.stack([(residuals(x + 0.02 * unit, (one.family, one.table)) - r) / 0.02 for one, unit in moves], axis=1)
        weight = np.where(np.abs(r) < BEND, 1.0, BEND / np.maximum(np.abs(r), 1e-9))[:, None]
        curve, pull = (slopes * weight).T @ slopes, -(slopes * weight).T @ r
        prior = np.diag(PRIOR**2 / sigma**2)
        for _ in range(6):
            lhs = curve + prior + damping * np.diag(np.diag(curve) + 1e-9)
            step = np.clip(np.linalg.solve(lhs, pull - prior @ (x - origin)), -0.5, 0.5)
            tried = residuals(x + step)
            value = objective(tried, x + step)
            if value < best:
                break
            damping *= 4
        else:
            break
        gain, x, r, best, damping = best - value, x + step, tried, value, max(damping / 4, 1e-4)
        if gain < 1e-3 * best:
            break
    return applied(x)
