"""DeepBench: kernels of real models, by the libraries of 2016 to 2019."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from kernel_fit.rows import Rows, first, products, read
from modelstat.predict.kernels import convolution

DEEPBENCH_GPUS = {"1080Ti": "gtx-1080-ti", "P100": "p100-sxm2", "T4": "t4", "TitanXp": "titan-xp", "V100": "v100-sxm2-16"}
"""The boards of its sheets that the database knows by name."""


def _deepbench(folder: Path, name: str, mixed: bool) -> pd.DataFrame:
    """DeepBench's training sheets in fp32, or with fp16 inputs on tensor cores."""
    frame = read(folder, f"deepbench-{name}")
    board = frame["file"].str.extract(r"train/DeepBench_NV_(\w+)\.xlsx$")[0]
    frame["gpu"] = board.map(DEEPBENCH_GPUS)
    sheet = frame["sheet"].str.contains("Mixed") if mixed else frame["sheet"].str.contains("FP32")
    return frame[frame["gpu"].notna() & sheet].reset_index(drop=True)


def _deepbench_convolutions(folder: Path, mixed: bool) -> Rows:
    frame = _deepbench(folder, "conv", mixed)
    width, height, channels, batch, out = (first(frame, name) for name in "WHCNK")
    high, wide = first(frame, "R", "R (Filter height)"), first(frame, "S", "S (Fitler width)", "S (Filter width)")
    down, across = first(frame, "Vertical stride", "Vertical Stride"), first(frame, "Horizontal stride", "Horizontal Stride")
    seconds = first(frame, "Forward (msec)") * 1e-3
    rows = np.floor((height + 2 * first(frame, "pad_h") - high) / down) + 1
    columns = np.floor((width + 2 * first(frame, "pad_w") - wide) / across) + 1
    zero, item = 0 * seconds, 2.0 if mixed else 4.0
    features = convolution.Features(
        batch, batch * rows * columns, out, channels * high * wide, 1 + zero, high * wide, rows, columns,
        ((high == 3) & (wide == 3) & (down == 1) & (across == 1)) + zero,
        item * batch * channels * height * width, item * channels * out * high * wide, item * batch * out * rows * columns,
        float(mixed) + zero, zero, zero,
    )  # fmt: skip
    dtype = "float16" if mixed else "float32"
    every = Rows(features, seconds, frame["gpu"].to_numpy(dtype=np.str_), dtype, host=zero)
    return every.select(np.isfinite(seconds) & np.isfinite(features.m) & (seconds > 0))


def convolutions_fp32(folder: Path) -> Rows:
    """DeepBench's fp32 convolutions: shapes of real models, kernels of all sizes and strides."""
    return _deepbench_convolutions(folder, mixed=False)


def half_convolutions(folder: Path) -> Rows:
    """DeepBench's convolutions with fp16 inputs on tensor cores; taken to be in the layout that the kernel wants."""
    return _deepbench_convolutions(folder, mixed=True)


def products_fp32(folder: Path) -> Rows:
    """DeepBench's fp32 products."""
    frame = _deepbench(folder, "gemm", mixed=False)
    frame = frame[(frame["section"] == "Dense Matrix Multiplication") & frame["A Transpose"].isin(("N", "T"))].reset_index(drop=True)
    return products(frame, first(frame, "Time (msec)") * 1e-3, "float32")
