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
        thin_growth=0.4, thin_growth_last=0.4,
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
    *_free("attention", "half", efficiency_64=0.15, prologue=0.15, overlap=0.15),
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


def predicted(data: Dataset, values: Tables) -> Any:
    """Predicted seconds (s) of each row: kernels only, as at a large batch."""
    times = np.zeros(len(data.rows))
    for name in sorted({row.gpu for row in data.rows}):
        chosen = np.array([row.gpu == name for row in data.rows])
        total = np.zeros(int(data.runs.max()) + 1)
        for (family, contraction), (lines, counts, runs) in data.columns.items():
            rates = measured_rates(find(name), "float16" if contraction else "float32", values["rates", "values"])
            given = rates if contraction else rates._replace(tensor=False)
            table = values[family, "half" if contraction else "fp32"]
            one = FAMILIES[family]
            features = _struct(one.features)(*lines.T)
            with np.errstate(all="ignore"):
                seconds = np.broadcast_to(np.nan_to_num(one.seconds(features, given, table).total), counts.shape)
            total += np.bincount(runs, weights=seconds * counts, minlength=len(total))
        times[chosen] = total[data.runs[chosen]]
    return times


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

    def residuals(x: Any) -> Any:
        return np.log(np.maximum(predicted(data, applied(x)), 1e-9) / data.measured)[chosen]

    def objective(r: Any, x: Any) -> float:
        size = np.abs(r)
        return float(np.where(size < BEND, r * r / 2, BEND * (size - BEND / 2)).sum() + PRIOR**2 / 2 * (((x - origin) / sigma) ** 2).sum())

    x, damping = origin.copy(), 1e-2
    r = residuals(x)
    best = objective(r, x)
    for _ in range(rounds):
        slopes = np.stack([(residuals(x + 0.02 * unit) - r) / 0.02 for unit in np.eye(len(x))], axis=1)
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
