"""Least squares over positive constants: a small, deterministic Levenberg-Marquardt in the logarithms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SOFT = 0.1
"""Residual beyond which a row counts less than its square: measurements have outliers."""
STEPS = 60
DIFFERENCE = 1e-4


def fit(residuals: Callable[[Array], Array], start: Array, prior: float) -> Array:
    """Logarithms of constants that minimise the mean soft-L1 of ``residuals`` plus ``prior`` x the squared distance from ``start``.

    A constant that the rows say nothing about stays at its start.
    """
    if not len(start):
        return start
    point, damping = start.copy(), 1e-3
    cost, rows = _cost(residuals, point, start, prior)
    for _ in range(STEPS):
        jacobian = np.column_stack([(residuals(_moved(point, index)) - rows) / DIFFERENCE for index in range(len(point))])
        weights = 1.0 / np.sqrt(1.0 + (rows / SOFT) ** 2) / len(rows)
        gradient = jacobian.T @ (weights * rows) + prior * (point - start)
        curvature = (jacobian.T * weights) @ jacobian + prior * np.eye(len(point))
        improved = False
        for _ in range(8):
            step = np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), -gradient)
            trial = point + np.clip(step, -0.5, 0.5)
            trial_cost, trial_rows = _cost(residuals, trial, start, prior)
            if trial_cost < cost:
                improved = cost - trial_cost > 1e-9 * cost
                point, cost, rows, damping = trial, trial_cost, trial_rows, damping * 0.3
                break
            damping *= 4.0
        if not improved:
            break
    return np.asarray(point)


def _moved(point: Array, index: int) -> Array:
    moved = point.copy()
    moved[index] += DIFFERENCE
    return np.asarray(moved)


def _cost(residuals: Callable[[Array], Array], point: Array, start: Array, prior: float) -> tuple[float, Array]:
    rows = residuals(point)
    soft = SOFT**2 * (np.sqrt(1.0 + (rows / SOFT) ** 2) - 1.0)
    return float(np.mean(soft) + prior / 2.0 * np.sum((point - start) ** 2)), rows
