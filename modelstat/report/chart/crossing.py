"""Where a growing batch takes a model across its ridge point."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import exp, log


def crossing(batches: Sequence[int], intensities: Sequence[float | None], ridge: float | None) -> float | None:
    """The batch at which the intensity reaches the ridge point, straight between two batches on logarithmic axes.

    None where no two batches in a row lie on both sides of it.

    >>> round(crossing([1, 4, 16], [5.0, 10.0, 20.0], 14.142), 1)
    8.0
    """
    known = [(batch, each) for batch, each in zip(batches, intensities, strict=True) if each]
    if not ridge:
        return None
    for (batch, low), (larger, high) in pairwise(known):
        if min(low, high) <= ridge <= max(low, high) and low != high:
            return exp(log(batch) + (log(larger) - log(batch)) * (log(ridge) - log(low)) / (log(high) - log(low)))
    return None
