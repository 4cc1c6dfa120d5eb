"""What one op costs: counts, never a time."""

from __future__ import annotations

from typing import Literal

import msgspec

Unit = Literal["matmul", "vector", "none"]
"""Which part of a GPU runs it: the contraction units (tensor cores where the dtype has them), the vector lanes, or neither."""

Known = Literal["formula", "free", "unknown"]
"""formula: counted. free: known to cost nothing (a view, metadata). unknown: no formula, so only its bytes are known."""


class Cost(msgspec.Struct, frozen=True):
    """Counts of one op, for the whole batch.

    macs: multiply-accumulates of contractions, without bias. flops: all floating-point operations, a MAC = 2.
    madd: torchstat's multiplies and adds. activations: output elements of contractions. read, write: bytes (B).
    ``dtype`` is the dtype of the arithmetic (``float16`` for a convolution under autocast), which picks the peak.
    ``family`` is the op family ("convolution", "matmul", "attention", "rnn", "norm", "softmax", "activation", "elementwise",
    "pooling", "reduction", "embedding", "gather", "copy", "resample", "sort", "fft", "view", "unknown", ...).
    """

    macs: int = 0
    flops: int = 0
    madd: int = 0
    activations: int = 0
    read: int = 0
    write: int = 0
    unit: Unit = "vector"
    dtype: str = "float32"
    family: str = "elementwise"
    known: Known = "formula"

    @property
    def bytes(self) -> int:
        """MemRead + MemWrite (B)."""
        return self.read + self.write


FREE = Cost(unit="none", family="view", known="free")
