"""Laws from measured times: least squares of the relative error, with no part below zero."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import torch
from torch import Tensor

from modelstat.hardware.law import Law


class Point(NamedTuple):
    """A measured op: FLOPs, bytes of weights and other bytes (B), and what it took (s)."""

    flops: float
    weights: float
    others: float
    seconds: float


def fitted(points: Sequence[Point]) -> Law:
    """The law with the least sum of squared relative errors over the points. Raises ValueError without points.

    Four parts at most: each set of them is fitted by itself, and of those that need no negative part the best is taken.

    >>> fitted([Point(1e6, 0, 0, 3e-6), Point(2e6, 0, 0, 4e-6), Point(8e6, 0, 0, 10e-6)])
    Law(launch_us=2.0, flops=1000000000000.0)
    """
    if not points:
        raise ValueError("a law needs measured points")
    seconds = torch.tensor([point.seconds for point in points], dtype=torch.float64)
    parts = torch.tensor([[1.0, point.flops, point.weights, point.others] for point in points], dtype=torch.float64)
    scale = parts.amax(0).clamp(min=1e-300)
    shares = parts / scale / seconds[:, None]
    best: Tensor | None = None
    chosen: tuple[int, ...] = ()
    error = float("inf")
    for size in range(1, min(4, len(points)) + 1):
        for columns in combinations([column for column in range(4) if parts[:, column].any()], size):
            found = torch.linalg.lstsq(shares[:, columns], torch.ones(len(points), 1, dtype=torch.float64)).solution[:, 0]
            left = float((shares[:, columns] @ found - 1.0).square().sum())
            if bool((found > 0).all()) and left < error * (1.0 - 1e-9):
                best, chosen, error = found, columns, left
    assert best is not None  # one part alone is always positive
    return _law(best, chosen, scale)


def _law(found: Tensor, columns: tuple[int, ...], scale: Tensor) -> Law:
    times = {column: float(value / scale[column]) for column, value in zip(columns, found, strict=True)}
    rates = {name: float(f"{1.0 / times[column]:.4g}") for column, name in ((1, "flops"), (2, "weights"), (3, "bytes")) if column in times}
    return Law(launch_us=float(f"{times.get(0, 0.0) * 1e6:.4g}"), **rates)
