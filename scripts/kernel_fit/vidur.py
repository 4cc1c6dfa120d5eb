"""vidur's fp16 layers of language models, A40 and A100."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kernel_fit.rows import Rows, first, floats, products, read
from modelstat.predict.kernels import elementwise


def half_add(folder: Path) -> Rows:
    """vidur's fp16 additions of large tensors on the A40."""
    frame = read(folder, "vidur-fp16")
    frame = frame[(frame["op"] == "add") & (frame["gpu"] == "a40") & (frame["num_tokens"] * frame["n_embd"] > 1 << 23)]
    tokens, width, latency = floats(frame.reset_index(drop=True), "num_tokens", "n_embd", "median_ms")
    size = 2 * tokens * width
    return Rows(elementwise.Features(2 * size, size, tokens * width), latency * 1e-3, np.array(["a40"] * len(size)), "float16")


def half_layers(folder: Path) -> Rows:
    """vidur's fp16 linear layers of language models on the A40 and the A100."""
    frame = read(folder, "vidur-fp16", 5)
    frame = frame[frame["K"].notna()].reset_index(drop=True)
    frame["gpu"] = frame["gpu"].map({"a40": "a40", "a100": "a100-sxm-80"})
    return products(frame, first(frame, "median_ms") * 1e-3, "float16")
