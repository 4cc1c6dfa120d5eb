"""Which database columns hold the peak of a dtype: one table, most specific column first."""

from __future__ import annotations

VECTOR_COLUMNS = ("fp64", "fp32", "fp16", "int8_dp4a")
"""Rates of the vector lanes (CUDA cores, stream processors)."""

MATRIX_COLUMNS = (
    "fp64_tensor", "fp32_matrix", "tf32", "fp16_tensor_acc16", "fp16_tensor", "bf16_tensor",
    "fp8_tensor_acc16", "fp8_tensor", "fp4_tensor", "int8_tensor", "int4_tensor",
)  # fmt: skip
"""Rates of the matrix units (tensor cores, matrix cores, XMX, MME, MXU)."""

PEAK_COLUMNS = (*VECTOR_COLUMNS, *MATRIX_COLUMNS)

CONTRACTION_COLUMNS: dict[str, tuple[str, ...]] = {
    "fp64": ("fp64_tensor", "fp64"),
    "fp32": ("fp32_matrix", "fp32"),
    "tf32": ("tf32",),
    "fp16": ("fp16_tensor", "fp16"),
    "bf16": ("bf16_tensor",),
    "fp8": ("fp8_tensor",),
    "fp4": ("fp4_tensor",),
    "int8": ("int8_tensor", "int8_dp4a"),
    "int4": ("int4_tensor",),
}
"""Precision -> the columns that a contraction may run on; the first one that the GPU has counts."""

_PRECISIONS: dict[str, str] = {
    "float64": "fp64", "complex128": "fp64", "float32": "fp32", "complex64": "fp32", "tf32": "tf32",
    "float16": "fp16", "complex32": "fp16", "bfloat16": "bf16", "amp-fp16": "fp16", "amp-bf16": "bf16",
    "float8_e4m3fn": "fp8", "float8_e5m2": "fp8", "float8_e4m3fnuz": "fp8", "float8_e5m2fnuz": "fp8",
    "float4_e2m1fn_x2": "fp4", "int8": "int8", "uint8": "int8", "qint8": "int8", "quint8": "int8", "quint4x2": "int4",
    **{precision: precision for precision in CONTRACTION_COLUMNS},
}  # fmt: skip


def precision_of(dtype: str) -> str | None:
    """The short name of a torch dtype or of a model's precision; None where no GPU states a peak.

    >>> precision_of("bfloat16"), precision_of("complex64"), precision_of("amp-fp16"), precision_of("int64")
    ('bf16', 'fp32', 'fp16', None)
    """
    return _PRECISIONS.get(dtype)
