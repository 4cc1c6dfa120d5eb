"""All sets of measured kernels, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from kernel_fit import aiconfigurator, deepbench, neusight, vidur
from kernel_fit.rows import Rows

SETS: Mapping[str, Callable[[Path], Rows]] = {
    "linear": neusight.linear,
    "bmm": neusight.batched,
    "element-wise": neusight.elements,
    "norm": neusight.layer_norms,
    "softmax": neusight.softmaxes,
    "conv": neusight.convolutions,
    "gemm bf16": aiconfigurator.half_gemm,
    "prefill bf16": aiconfigurator.prefill,
    "decode bf16": aiconfigurator.decode,
    "add fp16": vidur.half_add,
    "conv fp16": deepbench.half_convolutions,
    "DeepBench conv": deepbench.convolutions_fp32,
    "DeepBench gemm": deepbench.products_fp32,
    "vidur fp16": vidur.half_layers,
}
"""A function each, from the folder that holds the files."""
