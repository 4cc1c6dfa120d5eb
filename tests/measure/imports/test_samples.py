"""The sample files, whose totals are worked out in data/README.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from modelstat.measure.imports.read import read_profile
from modelstat.measure.imports.record import by_name

DATA = Path(__file__).parents[1] / "data"
NCU = ("ncu_raw.csv", "ncu_details.csv", "ncu_details_comma.csv", "ncu_log.txt")


@pytest.mark.parametrize("name", NCU)
def test_counters_of_nsight_compute(name: str) -> None:
    profile = read_profile(DATA / name)
    assert [kernel.flops for kernel in profile.kernels] == [2 * 1_000_000 + 100, 2 * 2_000_000 + 50, 32_768]
    assert [kernel.dram_bytes for kernel in profile.kernels] == [32 * 1_500, 32 * 2_500, 32 * 8_000]
    assert [kernel.seconds for kernel in profile.kernels] == pytest.approx([12.5e-6, 25e-6, 4e-6])
    assert (profile.flops, profile.dram_bytes) == (6_032_918, 384_000)
    assert profile.seconds == pytest.approx(41.5e-6)
    assert profile.ordered
    assert profile.problems == ()


@pytest.mark.parametrize("name", NCU)
def test_launches_of_one_name_are_summed(name: str) -> None:
    longest, other = by_name(read_profile(DATA / name).kernels)
    assert (longest.launches, other.launches) == (2, 1)
    assert longest.flops == 2_000_100 + 4_000_050
    assert longest.dram_bytes == 48_000 + 80_000
    assert longest.seconds == pytest.approx(37.5e-6)


def test_names_in_a_log_are_those_of_the_kernels_alone() -> None:
    assert [kernel.name for kernel in read_profile(DATA / "ncu_log.txt").kernels] == [
        "gemm(float*, int)", "gemm(float*, int)", "void add<(int)4, float>(float*)",
    ]  # fmt: skip


def test_tables_of_nsight_systems() -> None:
    summed, trace = read_profile(DATA / "nsys_kern_sum.csv"), read_profile(DATA / "nsys_trace.csv")
    assert [(kernel.name, kernel.launches) for kernel in summed.kernels] == [("gemm(float *, int)", 2), ("add", 1)]
    assert [kernel.seconds for kernel in summed.kernels] == pytest.approx([37.5e-6, 4e-6])
    assert [kernel.seconds for kernel in trace.kernels] == pytest.approx([12.5e-6, 25e-6, 4e-6])
    assert (summed.ordered, trace.ordered) == (False, True)
    assert summed.flops is None  # it has no counters: unknown, not zero


def test_a_plain_csv() -> None:
    conv, other = read_profile(DATA / "plain.csv").kernels
    assert (conv.seconds, conv.flops, conv.dram_bytes) == (0.5e-3, 1e9, 4e6)
    assert (other.seconds, other.flops, other.dram_bytes) == (0.25e-3, None, None)


def test_a_trace_of_a_gpu() -> None:
    profile = read_profile(DATA / "torch_gpu.json")
    assert [(kernel.name, [call.name for call in kernel.calls]) for kernel in profile.kernels] == [
        ("implicit_convolve_sgemm", ["aten::conv2d", "aten::convolution", "aten::cudnn_convolution"]),
        ("elementwise_add", ["aten::conv2d", "aten::convolution", "aten::add_"]),
        ("elementwise_relu", ["aten::relu", "aten::clamp_min"]),
        ("lonely", []),
    ]
    assert [kernel.seconds for kernel in profile.kernels] == pytest.approx([30e-6, 12e-6, 5e-6, 7e-6])
    assert [kernel.step for kernel in profile.kernels] == [1, 1, 1, 1]
    convolution = profile.kernels[0].calls[1]
    assert convolution.shapes == ((2, 3, 32, 32), (8, 3, 3, 3), (8,))
    assert profile.kernels[1].calls[1] is convolution  # one call, two kernels


def test_a_trace_of_a_cpu_has_each_op_without_the_ops_inside_it() -> None:
    profile = read_profile(DATA / "torch_cpu.json.gz")
    steps = {kernel.step for kernel in profile.kernels}
    assert steps == {1, 2}
    # The model has five layers: two steps call the outermost five ops of each.
    outermost = {(kernel.calls[0].index, kernel.calls[0].name) for kernel in profile.kernels}
    names = [name for _, name in sorted(outermost)]
    assert names == ["aten::conv2d", "aten::relu", "aten::adaptive_avg_pool2d", "aten::flatten", "aten::linear"] * 2
    # The first convolution took 309.871 us with all that is inside it.
    first = min(index for index, _ in outermost)
    assert sum(kernel.seconds or 0 for kernel in profile.kernels if kernel.calls[0].index == first) == pytest.approx(309.871e-6)
