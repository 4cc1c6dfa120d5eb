"""NeuSight's fp32 kernels: one op between two events, TF32 off, the L2 cache warm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kernel_fit.rows import Rows, floats, read
from modelstat.predict.kernels import batched_gemm, convolution, elementwise, gemm, norm, softmax

TWO_OPERANDS = ("add", "mul", "div", "pow")
"""NeuSight's names of kernels that read two tensors; the others read one."""


def _neusight(frame: pd.DataFrame, features: Any, dtype: str = "float32", **more: Any) -> Rows:
    return Rows(features, frame["Latency"].to_numpy(dtype=np.float64) * 1e-3, frame["gpu"].to_numpy(dtype=np.str_), dtype, **more)


def linear(folder: Path) -> Rows:
    """NeuSight's linear layers: A is (B M, N), B is (N, K)."""
    frame = read(folder, "neusight-models-linear")
    batch, rows, inner, columns = floats(frame, "B", "M", "N", "K")
    return _neusight(frame, gemm.Features(batch * rows, columns, inner, 4.0 + 0 * rows, 0 * rows))


def batched(folder: Path) -> Rows:
    """NeuSight's batched products."""
    frame = read(folder, "neusight-models-bmm")
    batch, m, k, n = floats(frame, "B", "M", "N", "K")
    return _neusight(frame, batched_gemm.Features(batch, m, n, k, 4 * batch * (m * k + k * n + m * n)))


def elements(folder: Path) -> Rows:
    """NeuSight's element-wise kernels."""
    frame = read(folder, "neusight-models-elem")
    rows, width = floats(frame, "B", "H")
    operands = frame["OPName"].isin(TWO_OPERANDS).to_numpy() + 1.0
    return _neusight(frame, elementwise.Features(4 * rows * width * operands, 4 * rows * width, rows * width))


def layer_norms(folder: Path) -> Rows:
    """NeuSight's LayerNorms."""
    frame = read(folder, "neusight-models-ln")
    rows, width = floats(frame, "B", "H")
    return _neusight(frame, norm.Features(rows, width, 4 * rows * width, 4 * rows * width, 1.0 + 0 * rows))


def softmaxes(folder: Path) -> Rows:
    """NeuSight's softmaxes."""
    frame = read(folder, "neusight-models-softmax")
    rows, width = floats(frame, "B", "H")
    return _neusight(frame, softmax.Features(rows, width, 4 * rows * width, 4 * rows * width))


def convolutions(folder: Path, take: int = 2) -> Rows:
    """NeuSight's convolutions, all 3 x 3 with stride 1; its P4, P100 and T4 were throttled. The host takes about the shortest time."""
    frame = read(folder, "neusight-conv", take)
    batch, channels, out, side, kernel, stride, pad = floats(
        frame, "B", "Input_Channel", "Output_Channel", "Input_Size", "Kernel_Szie", "Stride", "Padding"
    )
    result = np.floor((side + 2 * pad - kernel) / stride) + 1
    zero = 0 * batch
    features = convolution.Features(
        batch, batch * result**2, out, channels * kernel**2, 1 + zero, kernel**2, result, result,
        ((kernel == 3) & (stride == 1)) + zero,
        4 * batch * channels * side**2, 4 * channels * out * kernel**2, 4 * batch * out * result**2, zero, zero, zero,
    )  # fmt: skip
    seconds = frame["Latency"].to_numpy(dtype=np.float64) * 1e-3
    gpus = frame["gpu"].to_numpy(dtype=np.str_)
    host = np.zeros_like(seconds)
    for gpu in np.unique(gpus):
        host[gpus == gpu] = np.quantile(seconds[gpus == gpu], 0.01)
    return _neusight(frame, features, host=host, hot=(gpus != "v100-pcie-32") + zero)
