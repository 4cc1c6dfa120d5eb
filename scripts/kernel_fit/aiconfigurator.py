"""aiconfigurator's bf16 kernels: replayed graphs, the kernel alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from kernel_fit.rows import Rows, floats, read
from modelstat.predict.kernels import attention, gemm

AICONFIGURATOR_GPUS = {"a100_sxm": "a100-sxm-80", "l40s": "l40s"}


def _aiconfigurator(folder: Path, name: str, take: int) -> pd.DataFrame:
    frames = []
    for short, gpu in AICONFIGURATOR_GPUS.items():
        frame = read(folder, f"aiconfigurator-{name}-{short}")
        frame["gpu"] = gpu
        if short == "l40s":
            if "gemm_dtype" in frame:
                frame = frame[frame["gemm_dtype"] == "bfloat16"]
            else:
                flash = frame["kernel_source"] == "vllm_flash_attn_fa2"
                frame = frame[flash & (frame["kv_cache_dtype"] == "bfloat16") & (frame["window_size"] == 0)]
            frame = frame.iloc[::take]
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def half_gemm(folder: Path) -> Rows:
    """aiconfigurator's bf16 products."""
    frame = _aiconfigurator(folder, "gemm", 4)
    m, n, k, latency = floats(frame, "m", "n", "k", "latency")
    return Rows(gemm.Features(m, n, k, 2.0 + 0 * m, 0 * m), latency * 1e-3, frame["gpu"].to_numpy(dtype=np.str_), "bfloat16")


def _half_attention(frame: pd.DataFrame, decode: bool) -> Rows:
    batch, heads, key_heads, channels, length, step, latency = floats(
        frame, "batch_size", "num_heads", "num_key_value_heads", "head_dim", "isl", "step", "latency"
    )
    one = 1.0 + 0 * batch
    queries = one if decode else length
    keys = step + 1 if decode else length
    # Its kernel splits the keys only where several query heads share them, and packs these into one tile.
    packed = ((heads > key_heads) if decode else length < 0) * one
    features = attention.Features(batch, heads, key_heads, queries, keys, channels, 2 * one, one, packed, one)
    return Rows(features, latency * 1e-3, frame["gpu"].to_numpy(dtype=np.str_), "bfloat16")


def prefill(folder: Path) -> Rows:
    """aiconfigurator's causal prefill."""
    frame = _aiconfigurator(folder, "context_attention", 2)
    return _half_attention(frame[(frame["step"] == 0) & (frame["isl"] > 1)].reset_index(drop=True), decode=False)


def decode(folder: Path) -> Rows:
    """aiconfigurator's decode steps."""
    return _half_attention(_aiconfigurator(folder, "generation_attention", 2), decode=True)
