"""Single ops by shape alone, without a model: what a back-of-the-envelope calculation starts from.

They are counted by the same formulas as the ops of a trace: ``cost_of(product(8, 4096, 4096))``.
"""

from __future__ import annotations

from modelstat.hardware.gpu import Gpu
from modelstat.records import ITEM_BYTES, Op, TensorSpec, natural_strides


def dot(length: int, dtype: str = "bfloat16") -> Op:
    """The dot product of two vectors (length) -> a scalar."""
    return Op("aten::dot", "default", (_dense(0, dtype, length), _dense(1, dtype, length)), ("self", "tensor"), (_dense(2, dtype),))


def product(rows: int, inner: int, columns: int, *, left: str = "bfloat16", right: str | None = None, result: str | None = None) -> Op:
    """left (rows, inner) @ right (inner, columns) -> (rows, columns); the right factor is the weight.

    The dtypes of ``right`` and of ``result`` are the left one's by default. Arithmetic is in the left one: int8 weights on bfloat16
    activations are widened on the way in.
    """
    inputs = (_dense(0, left, rows, inner), _dense(1, right or left, inner, columns))
    return Op("aten::mm", "default", inputs, ("self", "mat2"), (_dense(2, result or left, rows, columns),))


def products(batch: int, inner: int, columns: int, dtype: str = "int8") -> Op:
    """One row times a matrix of its own, for each of ``batch`` samples: (batch, 1, inner) @ (batch, inner, columns)."""
    inputs = (_dense(0, dtype, batch, 1, inner), _dense(1, dtype, batch, inner, columns))
    return Op("aten::bmm", "default", inputs, ("self", "mat2"), (_dense(2, dtype, batch, 1, columns),))


def critical_rows(
    gpu: Gpu,
    inner: int | None = None,
    columns: int | None = None,
    *,
    left: str = "bfloat16",
    right: str | None = None,
    result: str | None = None,
) -> float | None:
    """The rows B at which :func:`product` turns from memory- to compute-bound on a GPU; None where no number of rows suffices.

    Its intensity is 2BDF / (a BD + w DF + r BF), with D = ``inner``, F = ``columns`` and a, w, r the bytes of an element of the left
    factor, the right one and the result. It equals the ridge point R at B = R w / (2 - R (a/F + r/D)), and in the limit of a large D and F
    (``None``) at R w / 2. Raises MissingPeakError.
    """
    ridge = gpu.ridge(left)
    data, weight, output = (ITEM_BYTES[dtype] for dtype in (left, right or left, result or left))
    rest = 2.0 - ridge * ((data / columns if columns else 0.0) + (output / inner if inner else 0.0))
    return ridge * weight / rest if rest > 0.0 else None


def _dense(value: int, dtype: str, *shape: int) -> TensorSpec:
    return TensorSpec(shape, dtype, natural_strides(shape), value)
