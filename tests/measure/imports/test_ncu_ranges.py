"""NVTX ranges in the CSV of ncu."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelstat.measure.imports.ncu_ranges import around, names_of
from modelstat.measure.imports.read import read_profile
from tests.measure.overlays import CONV_BYTES, CONV_FLOPS, DATA, laid, laid_over

FILE = DATA / "ncu_nvtx.csv"


@given(st.lists(st.text(st.characters(blacklist_characters='"', blacklist_categories=["Cs", "Cc"]), min_size=1), max_size=4))
def test_whatever_a_range_is_called_its_name_is_read_back(names: list[str]) -> None:
    cell = "17  " + "  ".join(f'"<default domain>:{name}:none:none:none:none:none:none"' for name in names)
    assert names_of(cell if names else "") == tuple(names)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('7  "CCCL:cub::DeviceReduce:none:none:none:none:REGISTERED:cub::DeviceReduce"', "cub::DeviceReduce"),
        ('7  "NVTX:layer1:UNSIGNED_INT64:5:ARGB:0xff00ff00:ASCII:layer1"', "layer1"),
        ('"0:<default domain>:compute:all:none:none:none:none:none:none"', "compute:all"),  # a range of the process has a number
        ("7  lonely", "lonely"),
    ],
)
def test_other_fields_of_a_range(text: str, name: str) -> None:
    assert names_of(text) == (name,)


def test_a_range_open_at_two_launches_in_a_row_is_one_call() -> None:
    launches = [("aten::a", "aten::b"), ("aten::a", "aten::c"), ("aten::a",), (), ("aten::a",)]
    calls = [[(call.name, call.index) for call in found[0]] for found in around(launches)]
    assert calls == [[("aten::a", 0), ("aten::b", 1)], [("aten::a", 0), ("aten::c", 2)], [("aten::a", 0)], [], [("aten::a", 3)]]


def test_kernels_know_the_ops_and_the_step_around_them() -> None:
    profile = read_profile(FILE)
    assert [kernel.step for kernel in profile.kernels] == [0, 0, 1, 1]
    assert [[call.name for call in kernel.calls] for kernel in profile.kernels] == [
        ["aten::conv2d", "aten::convolution", "aten::cudnn_convolution"], ["aten::relu", "aten::clamp_min"],
    ] * 2  # fmt: skip
    assert profile.kernels[0].calls[1].shapes == ((2, 3, 32, 32), (8, 3, 3, 3), (8,))
    assert profile.flops == 2_000_100 + 4_000_050 + 2 * 32_768


def test_counters_stand_beside_our_counts_op_by_op() -> None:
    found = laid("ncu_nvtx.csv")
    assert found.how == "ops"
    convolution, relu = found.points
    assert (convolution.path, convolution.flops, convolution.bytes) == ("0", CONV_FLOPS, CONV_BYTES)
    assert convolution.seconds == pytest.approx((12.5e-6 + 25e-6) / 2)
    assert convolution.counted_flops == (2_000_100 + 4_000_050) / 2
    assert convolution.counted_rate == pytest.approx(3_000_075 / 18.75e-6)
    assert convolution.rate == pytest.approx(CONV_FLOPS / 18.75e-6)
    assert (relu.path, relu.counted_flops) == ("1", 32_768)
    assert relu.seconds == pytest.approx(4e-6)
    assert [step.point.seconds for step in found.steps] == pytest.approx([16.5e-6, 29e-6])
    assert [step.point.counted_rate for step in found.steps] == pytest.approx([2_032_868 / 16.5e-6, 4_032_818 / 29e-6])


def test_the_details_page_has_the_same_ranges(tmp_path: Path) -> None:
    lines = FILE.read_text(encoding="utf-8").splitlines()
    head = next(line for line in lines if line.startswith('"ID"'))
    prefix = head.partition('"dram__')[0]
    path = tmp_path / "details.csv"
    # The same columns up to the metrics; one metric a row.
    rows = [line.rpartition('","8.0",')[0] + '","8.0","gpu__time_duration.sum","usecond","5.0"' for line in lines if line[1:2].isdigit()]
    path.write_text("\n".join([prefix + '"Metric Name","Metric Unit","Metric Value"', *rows]) + "\n", encoding="utf-8")
    details, raw = ([(each.calls, each.step) for each in read_profile(each_path).kernels] for each_path in (path, FILE))
    assert details == raw


def test_ranges_that_name_modules(tmp_path: Path) -> None:
    path = tmp_path / "modules.csv"
    text = re.sub(r"aten::\w*conv[^:]*", "0", FILE.read_text(encoding="utf-8"))
    path.write_text(re.sub(r"aten::(relu|clamp)[^:]*", "1", text), encoding="utf-8")
    found = laid_over(read_profile(path))
    assert found.how == "modules"
    assert [point.path for point in found.points] == ["0", "1"]
    assert [point.seconds for point in found.points] == pytest.approx([18.75e-6, 4e-6])
