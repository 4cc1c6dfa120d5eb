"""Measured kernels as arrays of features."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from modelstat.hardware.database import find
from modelstat.predict.kernels import attention, batched_gemm, convolution, gemm
from modelstat.predict.kernels.constants import Constants
from modelstat.predict.kernels.rates import Rates, measured_rates

SCALARS = ("tensor", "family")
"""Fields of the rates that are the same for all rows of a set, or not used by a formula."""

@dataclass(frozen=True)
class Rows:
    """Kernels of one family and class of arithmetic.

    ``features`` holds arrays, ``seconds`` (s) what was measured, ``gpus`` each row's GPU, ``dtype`` the arithmetic. ``host`` (s) is a known
    part of the stopwatch's view of the host (None: fitted), ``hot`` 1 where the board was throttled.
    """

    features: Any
    seconds: NDArray[np.float64]
    gpus: NDArray[np.str_]
    dtype: str
    host: NDArray[np.float64] | None = None
    hot: NDArray[np.float64] | None = None

    def rates(self, constants: Constants) -> Rates:
        """The GPU of each row, as arrays."""
        keys, index = np.unique(self.gpus, return_inverse=True)
        each = [measured_rates(find(str(key)), self.dtype, constants) for key in keys]
        names = [name for name in Rates._fields if name not in SCALARS]
        columns: dict[str, Any] = {name: np.array([getattr(rates, name) for rates in each])[index] for name in names}
        return each[0]._replace(**columns)

    def select(self, chosen: NDArray[np.bool_]) -> Rows:
        """Some of the rows."""
        features = type(self.features)(*(column[chosen] if isinstance(column, np.ndarray) else column for column in self.features))
        host = None if self.host is None else self.host[chosen]
        hot = None if self.hot is None else self.hot[chosen]
        return Rows(features, self.seconds[chosen], self.gpus[chosen], self.dtype, host, hot)

    def ideal(self, rates: Rates) -> NDArray[np.float64]:
        """The bare roofline (s): FLOPs / datasheet peak against bytes / datasheet bandwidth."""
        flops, size = work(self.features)
        result: NDArray[np.float64] = np.maximum(flops / rates.peak, size / rates.bandwidth)
        return result


def work(f: Any) -> tuple[Any, Any]:
    """FLOPs of contractions and bytes of a kernel's features."""
    if isinstance(f, gemm.Features):
        return 2 * f.m * f.n * f.k, f.item_bytes * (f.m * f.k + f.k * f.n + f.m * f.n)
    if isinstance(f, batched_gemm.Features):
        return 2 * f.batch * f.m * f.n * f.k, f.size
    if isinstance(f, convolution.Features):
        return 2 * f.groups * f.m * f.n * f.k, f.data + f.weights + f.result
    if isinstance(f, attention.Features):
        share = np.where((f.causal > 0) & (f.queries > 1), 0.5, 1.0)
        flops = 4 * f.batch * f.heads * f.channels * f.queries * f.keys * share
        return flops, 2 * f.item_bytes * f.batch * f.channels * (f.queries * f.heads + f.keys * f.key_heads)
    return 0.0, f.read + f.written


def read(folder: Path, name: str, take: int = 1) -> pd.DataFrame:
    """Every ``take``-th row of a measured file."""
    return pd.read_csv(folder / f"{name}.csv.gz").iloc[::take].reset_index(drop=True)


def floats(frame: pd.DataFrame, *columns: str) -> list[NDArray[np.float64]]:
    """Columns as arrays."""
    return [frame[column].to_numpy(dtype=np.float64) for column in columns]


def first(frame: pd.DataFrame, *columns: str) -> NDArray[np.float64]:
    """The first of several columns that holds a number: its sheets spell them differently."""
    found = pd.Series(np.nan, index=frame.index)
    for column in columns:
        if column in frame:
            found = found.fillna(pd.to_numeric(frame[column], errors="coerce"))
    result: NDArray[np.float64] = found.to_numpy(dtype=np.float64)
    return result


def products(frame: pd.DataFrame, seconds: NDArray[np.float64], dtype: str) -> Rows:
    """Rows of matrix products from columns M, N and K; those that were too short to be timed (4 us) are left out."""
    m, n, k = (first(frame, name) for name in "MNK")
    item = 4.0 if dtype == "float32" else 2.0
    every = Rows(gemm.Features(m, n, k, item + 0 * m, 0 * m), seconds, frame["gpu"].to_numpy(dtype=np.str_), dtype, host=0 * seconds)
    return every.select(np.isfinite(seconds) & (seconds > 4e-6) & np.isfinite(m) & np.isfinite(n) & np.isfinite(k))
