"""What one SM (CU, Xe-core, GPU core) of an architecture does per clock."""

from __future__ import annotations

import msgspec


class ArchitectureRates(msgspec.Struct, frozen=True, kw_only=True):
    """One row of arch_rates.csv: operations per SM and clock by peak column, a fused multiply-add is 2; None means that it has none."""

    arch: str
    """Short name of the chip family, such as ``tu10x``."""
    name: str
    """What the ``architecture`` column of a GPU says."""
    tensor_class: str
    compute_capability: str = ""
    cores_per_sm: int | None = None
    l1_kb_per_sm: float | None = None
    smem_kb_per_sm: float | None = None
    fp64: float | None = None
    fp64_tensor: float | None = None
    fp32: float | None = None
    fp32_matrix: float | None = None
    tf32: float | None = None
    fp16: float | None = None
    fp16_tensor_acc16: float | None = None
    fp16_tensor: float | None = None
    bf16_tensor: float | None = None
    fp8_tensor_acc16: float | None = None
    fp8_tensor: float | None = None
    fp4_tensor: float | None = None
    int8_tensor: float | None = None
    int4_tensor: float | None = None
    int8_dp4a: float | None = None
    source: str = ""

    def rate(self, column: str) -> float | None:
        """Operations per SM and clock of a peak column."""
        value: float | None = getattr(self, column)
        return value


def peak_clock(column: str, boost_mhz: float | None, tensor_mhz: float | None) -> float | None:
    """The clock (MHz) that a column's peak is defined at.

    Matrix peaks are defined at the tensor clock where a vendor states one; vector peaks and fp64 matrix peaks at the boost clock
    (H100 SXM: 132 SMs x 256 x 1.98 GHz = 66.9 TFLOP/s fp64, 132 x 4096 x 1.83 GHz = 989.4 TFLOP/s fp16).
    """
    at_boost = tensor_mhz is None or column in {"fp64", "fp32", "fp16", "int8_dp4a", "fp64_tensor"}
    return boost_mhz if at_boost else tensor_mhz
