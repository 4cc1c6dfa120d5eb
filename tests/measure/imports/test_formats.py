"""Details of the formats: numbers, units, summaries, ranges, tensor cores."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelstat.measure.imports import counters, nsys_sqlite
from modelstat.measure.imports.numbers import decimal_of, number
from modelstat.measure.imports.read import read_profile

DATA = Path(__file__).parents[1] / "data"
LANES = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"


@given(st.integers(0, 10**12), st.integers(0, 99), st.sampled_from([",", "."]))
def test_grouped_numbers_with_either_decimal_point_are_read_back(whole: int, hundredths: int, decimal: str) -> None:
    other = "." if decimal == "," else ","
    text = f"{whole:,}.{hundredths:02d}".translate({ord(","): other, ord("."): decimal})
    assert decimal_of([text]) == decimal
    assert number(text, decimal) == pytest.approx(whole + hundredths / 100)


@pytest.mark.parametrize("text", ["", "abc", "nan", "inf", "1,23", "1..2", "1.2.3"])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        number(text)


@pytest.mark.parametrize(
    ("metrics", "capability", "flops"),
    [
        ({LANES.format("hfma"): 10, LANES.format("hadd"): 1}, "8.0", 2 * 10 + 1),
        ({LANES.format("dfma"): 10, LANES.format("dmul"): 4}, "8.0", 2 * 10 + 4),
        ({LANES.format("ffma"): 10, "sm__inst_executed_pipe_tensor.sum": 3}, "7.0", 2 * 10 + 512 * 3),
        ({LANES.format("ffma"): 10, "sm__inst_executed_pipe_tensor.sum": 3}, "8.0", None),  # an instruction of unknown size
        ({LANES.format("ffma"): 10, "sm__inst_executed_pipe_tensor.sum": 0}, "8.0", 2 * 10),
        ({"sm__ops_path_tensor_src_fp16_dst_fp32.sum": 4096, LANES.format("ffma"): 1}, "8.0", 4096 + 2),
        (
            {f"sm__ops_path_tensor_src_fp16_dst_fp32{part}.sum": n for part, n in (("", 7), ("_sparsity_on", 3), ("_sparsity_off", 4))},
            "9.0",
            7,  # the total, not the total and its parts
        ),
        ({"sm__ops_path_tensor_src_int8.sum": 9, LANES.format("fadd"): 5}, "8.0", 5),  # integers are no FLOPs
        ({"dram__bytes.sum": 5}, "8.0", None),
    ],
)
def test_flops_from_counters(metrics: dict[str, float], capability: str, flops: float | None) -> None:
    assert counters.kernel("k", metrics, metrics.keys(), capability=capability).flops == flops


def test_bytes_of_every_level() -> None:
    metrics = {
        "dram__bytes.sum": 1_000.0, "dram__sectors_read.sum": 99.0, "lts__t_sectors.sum": 100.0, "l1tex__t_bytes.sum": 5_000.0,
    }  # fmt: skip
    kernel = counters.kernel("k", metrics, metrics.keys())
    assert (kernel.dram_bytes, kernel.l2_bytes, kernel.l1_bytes) == (1_000, 32 * 100, 5_000)


def test_a_summary_by_kernel_is_an_average_times_its_invocations(tmp_path: Path) -> None:
    path = tmp_path / "summary.csv"
    path.write_text(
        '"Process ID","Kernel Name","Invocations","Section Name","Metric Name","Metric Unit","Minimum","Maximum","Average"\n'
        '"1","gemm","4","Command line profiler metrics","gpu__time_duration.sum","usecond","1.0","3.0","2.0"\n',
        encoding="utf-8",
    )
    profile = read_profile(path)
    assert [kernel.launches for kernel in profile.kernels] == [4]
    assert profile.seconds == pytest.approx(8e-6)
    assert not profile.ordered


def test_a_log_may_start_with_the_number_of_its_process(tmp_path: Path) -> None:
    path = tmp_path / "kernels.txt"
    log = (DATA / "ncu_log.txt").read_text(encoding="utf-8")
    path.write_text(log[log.index("[4242]") :], encoding="utf-8")
    assert read_profile(path).flops == 6_032_918


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_marks_of_an_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "kernels.csv"
    path.write_bytes((DATA / "ncu_raw.csv").read_text(encoding="utf-8").encode(encoding))
    assert read_profile(path).flops == 6_032_918


def test_a_trace_may_be_zipped(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress((DATA / "torch_gpu.json").read_bytes()))
    assert read_profile(path).kernels == read_profile(DATA / "torch_gpu.json").kernels


def test_ranges_of_nsight_systems(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    process = 5 * 0x1000000
    with sqlite3.connect(path) as database:
        database.executescript(
            "CREATE TABLE StringIds (id INTEGER, value TEXT);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL"
            " (start INTEGER, end INTEGER, globalPid INTEGER, correlationId INTEGER, demangledName INTEGER);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER);"
            "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, text TEXT, textId INTEGER, globalTid INTEGER);"
        )
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", [(1, "gemm"), (2, "add"), (3, "layer1.0")])
        # The launch of another process has the same correlation id.
        database.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?)",
            [(9_000, 11_000, process, 1, 1), (12_000, 12_500, process, 2, 2), (20_000, 21_000, 0, 1, 2)],
        )
        launches = [(150, 160, process + 7, 1), (450, 460, process + 7, 2)]
        database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?)", launches)
        database.executemany(
            "INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?)",
            [
                (100, 400, None, 3, process + 7),
                (120, 300, "aten::linear, seq = 4, sizes = [[2, 8], [10, 8]]", None, process + 7),
                (0, 1_000, "of another thread", None, process + 8),
                (0, 1_000, "iteration 3", None, process + 7),
            ],
        )
    database.close()
    gemm, add, foreign = read_profile(path).kernels
    assert [(kernel.name, kernel.seconds) for kernel in (gemm, add)] == [("gemm", 2e-6), ("add", 0.5e-6)]
    assert (gemm.path, gemm.step) == ("layer1.0", 3)
    assert [(call.name, call.shapes) for call in gemm.calls] == [("aten::linear", ((2, 8), (10, 8)))]
    assert (add.path, add.step, add.calls) == ("", 3, ())
    assert (foreign.path, foreign.step) == ("", None)
    first = nsys_sqlite.read(path, most=1)
    assert first.kernels == (gemm,)
    assert first.problems == ("only the first 1 kernels were read: a profile of fewer steps says as much",)
