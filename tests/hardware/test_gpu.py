"""Which column a dtype and a unit pick, and what is said where there is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelstat.cost.record import Unit
from modelstat.errors import MissingPeakError
from modelstat.hardware.database import all_gpus, find
from modelstat.hardware.gpu import Gpu
from modelstat.hardware.precision import CONTRACTION_COLUMNS


@pytest.mark.parametrize(
    ("name", "dtype", "tera", "column"),
    [
        # published figures, dense with fp32 accumulation
        ("v100", "float32", 14.0, "fp32"),
        ("v100", "float16", 112, "fp16_tensor"),
        ("v100-sxm2", "float16", 125, "fp16_tensor"),
        ("t4", "float32", 8.1, "fp32"),
        ("t4", "float16", 65, "fp16_tensor"),
        ("t4", "int8", 130, "int8_tensor"),
        ("a100", "float32", 19.5, "fp32"),
        ("a100", "tf32", 156, "tf32"),
        ("a100", "bfloat16", 312, "bf16_tensor"),
        ("a100", "float64", 19.5, "fp64_tensor"),
        ("a100", "int8", 624, "int8_tensor"),
        ("h100", "float32", 66.9, "fp32"),
        ("h100", "tf32", 494.7, "tf32"),
        ("h100", "float16", 989.4, "fp16_tensor"),
        ("h100", "float8_e4m3fn", 1978.9, "fp8_tensor"),
        ("h100 pcie", "bfloat16", 756, "bf16_tensor"),
        ("4090", "float32", 82.6, "fp32"),
        ("4090", "float16", 165.2, "fp16_tensor"),
        ("4090", "float8_e5m2", 330.3, "fp8_tensor"),
        ("5090", "float4_e2m1fn_x2", 1676, "fp4_tensor"),
        # matrix units for fp32 (CDNA)
        ("mi100", "float32", 46.1, "fp32_matrix"),
        # fp16 without tensor cores: the faster of the two vector rates
        ("1080 ti", "float16", 11.3, "fp32"),
        ("p100", "float16", 21.2, "fp16"),
        ("p40", "int8", 47.03, "int8_dp4a"),
        # complex arithmetic is that of its parts
        ("v100", "complex64", 14.0, "fp32"),
        ("v100", "complex128", 7.0, "fp64"),
        ("v100", "complex32", 112, "fp16_tensor"),
        # a model's precision
        ("v100", "amp-fp16", 112, "fp16_tensor"),
        ("a100", "fp32", 19.5, "fp32"),
    ],
)
def test_contraction_peaks(name: str, dtype: str, tera: float, column: str) -> None:
    peak = find(name).peak(dtype)
    assert peak.flops == pytest.approx(tera * 1e12)
    assert peak.column == column
    assert "dense" in peak.source


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "float8_e4m3fn", "complex64", "int64"])
def test_the_vector_unit_is_half_the_fp32_peak_whatever_is_stored(dtype: str) -> None:
    peak = find("v100").peak(dtype, "vector")
    assert (peak.flops, peak.column) == (14e12 / 2, "fp32")
    assert "half" in peak.source


def test_the_vector_unit_in_double_precision_is_half_the_fp64_peak() -> None:
    assert find("v100").peak("float64", "vector").flops == 7e12 / 2
    assert find("v100").peak("complex128", "vector").flops == 7e12 / 2


@pytest.mark.parametrize(
    ("name", "dtype", "unit", "words"),
    [
        ("v100", "bfloat16", "matmul", ("Tesla V100 PCIe 32GB", "bfloat16", "bf16_tensor", "fp64, fp32, fp16")),
        ("v100", "tf32", "matmul", ("tf32",)),
        ("v100", "int8", "matmul", ("int8_tensor or int8_dp4a",)),
        ("v100", "int64", "matmul", ("int64",)),
        ("tpu-v4", "float32", "matmul", ("fp32_matrix or fp32", "bf16, int8")),
        ("tpu-v4", "float32", "vector", ("vector", "fp32 column")),
        ("jetson-nano", "float64", "vector", ("fp64 column",)),
        # tensor cores whose rate is not published: the vector rate would be a silent fall-back
        ("5090 d v2", "float16", "matmul", ("fp16_tensor", "capped by firmware")),
        ("gb10", "float16", "matmul", ("fp16_tensor",)),
        ("a770", "float16", "matmul", ("fp16_tensor",)),
        ("m4 max", "float32", "matmul", ("no peak at all",)),
        ("v100", "float32", "none", ("no unit",)),
    ],
)
def test_a_missing_peak_says_what_is_missing_and_what_is_there(name: str, dtype: str, unit: Unit, words: tuple[str, ...]) -> None:
    with pytest.raises(MissingPeakError) as caught:
        find(name).peak(dtype, unit)
    assert all(word in str(caught.value) for word in words)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "dtype", "ridge"),
    [
        ("v100", "float32", 14_000 / 900),
        ("v100", "float16", 112_000 / 900),
        ("2070 super,clock=1815MHz", "float32", 9_292.8 / 448),
        ("h100", "bfloat16", 989_400 / 3352),
    ],
)
def test_ridge_points(name: str, dtype: str, ridge: float) -> None:
    assert find(name).ridge(dtype) == pytest.approx(ridge)


def test_the_owners_ridge_points_divide_by_gib() -> None:
    assert round(14_000 / 900, 1) == 15.6
    assert round(14_000e9 / (900 * 2**30), 1) == 14.5
    assert round(9_292.8 / 448, 1) == 20.7
    assert round(9_292.8e9 / (448 * 2**30), 1) == 19.3


def test_a_source_tells_a_document_from_the_clock() -> None:
    v100 = find("v100")
    assert v100.peak("float32").source.startswith("vendor-doc: NVIDIA V100 datasheet")
    assert v100.peak("float16").source.endswith("dense, fp32 accumulate")
    assert find("rtx 2080").peak("float32").source == "derived from clock and units; dense, fp32 accumulate"


def test_memory_is_gib_printed_as_gb() -> None:
    assert find("v100").memory_bytes == 32 * 2**30
    assert find("m1").memory_bytes is None
    assert find("v100").bandwidth_bytes == 900e9


@given(st.sampled_from(all_gpus()), st.sampled_from(sorted(CONTRACTION_COLUMNS)))
def test_a_precision_is_listed_exactly_when_it_has_a_peak(gpu: Gpu, precision: str) -> None:
    if precision in gpu.precisions:
        peak = gpu.peak(precision)
        assert peak.flops == getattr(gpu, peak.column) * 1e12 > 0
        assert gpu.ridge(precision) == peak.flops / gpu.bandwidth_bytes
    else:
        with pytest.raises(MissingPeakError):
            gpu.peak(precision)
