"""What is not what it should be: a file costs one line that names the way out, a row costs that row."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import pytest

from modelstat.errors import ProfileError
from modelstat.measure.imports.read import read_profile

DATA = Path(__file__).parents[1] / "data"
RAW = (DATA / "ncu_raw.csv").read_text(encoding="utf-8")
DETAILS = (DATA / "ncu_details.csv").read_text(encoding="utf-8")
TRACE = (DATA / "torch_gpu.json").read_bytes()
HEAD = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'


def message(tmp_path: Path, name: str, content: bytes) -> str:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ProfileError) as caught:
        read_profile(path)
    text = str(caught.value)
    assert str(path) in text
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("empty.csv", b"", "is empty"),
        ("spaces.csv", b" \n\n", "is empty"),
        ("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0", "is binary"),
        ("kernels.ncu-rep", b"NVR\0", "ncu --import"),
        ("run.nsys-rep", b"\0\1", "nsys stats --report cuda_gpu_trace"),
        ("letter.txt", b"Dear all,\nfind enclosed\n", "its first line is 'Dear all,'"),
        ("other.csv", b"a,b,c\n1,2,3\n", "none of the formats"),
        ("report.json", b'{"schema": "modelstat/1", "layers": []}', "export_chrome_trace"),
        ("none.json", b'{"traceEvents": []}', "no traceEvents"),
        ("cut.json", TRACE[: len(TRACE) // 2], "is cut off after event"),
        ("cut.json.gz", gzip.compress(TRACE)[:-20], "is cut off or damaged"),
        ("broken.json", b'{"traceEvents": [}', "is not JSON"),
        ("log.txt", b"==PROF== Connected to process 1\n", "without a kernel"),
        ("denied.txt", b"==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - The user has no permission\n", "line 2: ncu was not allowed"),
        ("metrics.csv", (HEAD + '"0","gemm","Registers Per Thread","register/thread","32"\n').encode(), "no kernel in it"),
        ("ends.csv", RAW.partition('"0",')[0].encode(), "the file ends before the first one"),
        ("api.csv", b"Time (%),Total Time (ns),Num Calls,Name\n100.0,99000,3,cudaLaunchKernel\n", "a table of nsys, but of no kernels"),
        ("header.csv", b"name,ms\n", "there is only the header"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, name: str, content: bytes, part: str) -> None:
    assert part in message(tmp_path, name, content)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="No such file"):
        read_profile(tmp_path / "nowhere.csv")


def test_missing_metrics_name_the_command_that_collects_them(tmp_path: Path) -> None:
    lines = RAW.splitlines()
    head = lines[5].replace("dram__sectors", "other__metric").replace("gpu__time_duration", "gpu__cycles").replace("op_f", "op_x")
    text = message(tmp_path, "kernels.csv", "\n".join([head, *lines[6:]]).encode())
    assert "ncu --csv --page raw --metrics gpu__time_duration.sum,dram__sectors_read.sum" in text


def test_a_metric_that_is_missing_leaves_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "kernels.csv"
    path.write_text(RAW.replace("dram__sectors_write.sum", "other__metric.sum"), encoding="utf-8")
    profile = read_profile(path)
    assert profile.flops == 6_032_918
    assert profile.dram_bytes is None  # half of the traffic is not the traffic
    assert "the metrics for DRAM bytes are missing; collect them with `ncu" in profile.problems[0]


FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ('"1","4242","python3.11"', "line 9: 3 cells where the header has 17"),
        (RAW.splitlines()[8].replace('"2,000,000"', '"two"'), f"line 9: {FFMA}: 'two' is not a number"),
        (RAW.splitlines()[8].replace('"2,000,000"', '"2,00,0"'), f"line 9: {FFMA}: '2,00,0'"),
    ],
)
def test_a_bad_row_costs_that_row(tmp_path: Path, row: str, problem: str) -> None:
    lines = RAW.splitlines()
    lines[8] = row
    path = tmp_path / "kernels.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    profile = read_profile(path)
    assert profile.flops == 2_000_100 + 32_768
    assert len(profile.problems) == 1
    assert problem in profile.problems[0]


def test_a_bad_row_of_a_details_page_costs_its_launch_that_count_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "kernels.csv"
    path.write_text(DETAILS.replace('"inst","2,000,000"', '"furlong","2,000,000"'), encoding="utf-8")
    profile = read_profile(path)
    assert [kernel.flops for kernel in profile.kernels] == [2_000_100, None, 32_768]
    assert profile.dram_bytes == 384_000
    assert "unit 'furlong' is not known" in profile.problems[0]


def test_a_details_page_that_is_cut_off_in_a_row_says_so(tmp_path: Path) -> None:
    path = tmp_path / "kernels.csv"
    rows = DETAILS.splitlines()
    path.write_text("\n".join(["the program's own line", *rows[:10], rows[10][:90]]), encoding="utf-8")
    profile = read_profile(path)
    assert profile.problems == ("line 12: 12 cells where the header has 15; left out",)


def test_a_counter_that_ncu_could_not_read_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "kernels.csv"
    path.write_text(DETAILS.replace('"inst","2,000,000"', '"","n/a"'), encoding="utf-8")
    profile = read_profile(path)
    assert [kernel.flops for kernel in profile.kernels] == [2_000_100, None, 32_768]
    assert profile.problems == ()


@pytest.mark.parametrize(("row", "said"), [("x,abc", "'abc' is not a"), ("x", "1 cells"), ("x,-1", "not above 0"), (",1", "no name")])
def test_a_bad_row_of_a_plain_csv(tmp_path: Path, row: str, said: str) -> None:
    path = tmp_path / "times.csv"
    path.write_text(f"name,ms\nconv,1.5\n{row}\n", encoding="utf-8")
    profile = read_profile(path)
    assert [kernel.name for kernel in profile.kernels] == ["conv"]
    assert profile.problems[0].startswith("line 3: ")
    assert said in profile.problems[0]


def test_a_bad_event_costs_that_event(tmp_path: Path) -> None:
    trace = json.loads(TRACE)
    trace["traceEvents"].append({"ph": "X", "cat": "kernel", "name": "bad", "ts": 1.0, "dur": None})
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(trace), encoding="utf-8")
    profile = read_profile(path)
    assert len(profile.kernels) == 4
    assert profile.problems[0].startswith(f"event {len(trace['traceEvents'])}: ")


@pytest.mark.parametrize("kernels", [None, 0])
def test_a_database_without_kernels(tmp_path: Path, kernels: int | None) -> None:
    path = tmp_path / "run.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        if kernels == 0:
            database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, demangledName INTEGER)")
    database.close()
    with pytest.raises(ProfileError, match="no kernel in it" if kernels == 0 else "a database without kernels"):
        read_profile(path)


def test_a_damaged_database(tmp_path: Path) -> None:
    assert "cannot be read as a database" in message(tmp_path, "run.sqlite", b"SQLite format 3\0" + b"\1" * 200)
