"""Kernels and ops brought together, with the sums of the sample files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from modelstat.analysis import Analysis
from modelstat.hardware.database import find
from modelstat.measure.imports.read import read_profile
from modelstat.measure.imports.record import MeasuredKernel, OpCall, Profile
from modelstat.measure.join import joined
from modelstat.measure.overlay import Overlay, overlay
from modelstat.trace.capture import capture
from tests.measure.models import Recurrent, Twice, small

DATA = Path(__file__).parent / "data"
GPU = find("a100")


def laid(profile: Profile, model: torch.nn.Module, *shape: int) -> Overlay:
    analysis = Analysis(capture(model, (torch.empty(shape, device="meta"),), {}), [GPU])
    return overlay(analysis.trace, analysis.costs, analysis.rooflines[0], analysis.predictions[0], profile)


def kernel(name: str, seconds: float, *calls: OpCall, path: str = "", step: int | None = None) -> MeasuredKernel:
    return MeasuredKernel(name=name, seconds=seconds, calls=calls, path=path, step=step)


def profile(*kernels: MeasuredKernel, ordered: bool = True) -> Profile:
    return Profile(file="p", format="test", kernels=kernels, ordered=ordered)


@pytest.fixture(scope="module")
def gpu() -> Overlay:
    return laid(read_profile(DATA / "torch_gpu.json"), small(), 2, 3, 32, 32)


def test_kernels_of_a_trace_belong_to_the_ops_around_them(gpu: Overlay) -> None:
    assert [(point.path, point.name, point.launches) for point in gpu.points] == [("0", "aten::convolution", 2), ("1", "aten::relu", 1)]
    assert [point.seconds for point in gpu.points] == pytest.approx([30e-6 + 12e-6, 5e-6])
    assert [point.name for point in gpu.kernels] == ["lonely"]
    assert gpu.kernels[0].seconds == pytest.approx(7e-6)
    assert [point.name for point in gpu.uncovered] == ["aten::mean", "aten::addmm"]
    assert (gpu.how, gpu.op_share) == ("ops", 2 / 4)
    assert gpu.time_share == pytest.approx(47 / 54)


def test_rates_are_counts_over_measured_time(gpu: Overlay) -> None:
    convolution = gpu.points[0]
    outputs = 2 * 8 * 32 * 32
    assert convolution.flops == outputs * (2 * 27 + 1)
    assert convolution.bytes == 4 * (2 * 3 * 32 * 32 + 8 * 27 + 8 + outputs)
    assert convolution.seconds is not None
    assert convolution.rate == pytest.approx(outputs * 55 / 42e-6)
    assert convolution.bandwidth == pytest.approx(convolution.bytes / 42e-6)
    # The A100 has 19.5 TFLOP/s and 1555 GB/s: this convolution is bound by memory.
    assert convolution.ideal_seconds == pytest.approx(convolution.bytes / GPU.bandwidth_bytes)
    assert convolution.roof_share == pytest.approx(convolution.bytes / GPU.bandwidth_bytes / 42e-6)
    assert convolution.predicted_seconds is not None
    assert convolution.error == pytest.approx(convolution.predicted_seconds / 42e-6 - 1)


def test_a_trace_of_the_cpu_covers_every_op_in_two_steps() -> None:
    found = laid(read_profile(DATA / "torch_cpu.json.gz"), small(), 2, 3, 32, 32)
    assert [point.name for point in found.points] == ["aten::convolution", "aten::relu", "aten::mean", "aten::addmm"]
    assert [(step.step, step.ops, step.complete) for step in found.steps] == [(1, 4, True), (2, 4, True)]
    assert found.uncovered == ()
    # aten::conv2d (309.871 and 120.679 us) with all inside it; relu 10.856 and 8.132; mean 47.150 and 21.782; addmm 16.925 and 11.887.
    measured = [point.seconds for point in found.points]
    assert measured == pytest.approx([215.275e-6, 9.494e-6, 34.466e-6, 14.406e-6], abs=1e-9)


def test_another_batch_is_said() -> None:
    other = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(9)])
    found = laid(read_profile(DATA / "torch_gpu.json"), other, 2, 4)
    assert found.points == ()
    assert found.notes[0].startswith("none of the ops and ranges that the profile names is the model's")
    bare = laid(profile(kernel("k", 1e-6)), other, 2, 4)
    assert "the profile names neither ops nor modules" in bare.notes[0]
    few = profile(kernel("k", 1e-6, OpCall("aten::addmm", 0, ((4,), (2, 4), (4, 4)))))
    assert "only 11% of the model's ops were found" in laid(few, other, 2, 4).notes[0]


def test_equal_layers_are_told_apart_by_their_order() -> None:
    shapes = ((8,), (2, 8), (8, 8))
    product, relu = ("aten::addmm", shapes), ("aten::relu", ((2, 8),))
    calls = [product, relu, product, relu, product]
    kernels = [kernel(f"k{place}", place + 1.0, OpCall(name, place, dims)) for place, (name, dims) in enumerate(calls)]
    found = laid(profile(*kernels), Twice(), 2, 8)
    assert [(point.path, point.seconds) for point in found.points] == [
        ("second", 1.0), ("", 2.0), ("first", 3.0), ("", 4.0), ("second", 5.0),
    ]  # fmt: skip


def test_passes_without_marks_are_steps() -> None:
    once = [("aten::addmm", 4.0), ("aten::relu", 2.0), ("aten::addmm", 4.0), ("aten::relu", 2.0), ("aten::addmm", 4.0)]
    kernels = [kernel(name, time, OpCall(name, place)) for place, (name, time) in enumerate(once * 3)]
    found = laid(profile(*kernels), Twice(), 2, 8)
    assert [step.point.seconds for step in found.steps] == [16.0, 16.0, 16.0]
    assert [point.seconds for point in found.points] == [4.0, 2.0, 4.0, 2.0, 4.0]


def test_a_step_that_is_cut_off_is_left_out() -> None:
    once = [("aten::addmm", 4.0), ("aten::relu", 2.0), ("aten::addmm", 4.0), ("aten::relu", 2.0), ("aten::addmm", 4.0)]
    kernels = [kernel(name, time, OpCall(name, place), step=1) for place, (name, time) in enumerate(once)]
    kernels += [kernel(name, 100.0, OpCall(name, 9 + place), step=2) for place, (name, _) in enumerate(once[:2])]
    found = laid(profile(*kernels), Twice(), 2, 8)
    assert [step.complete for step in found.steps] == [True, False]
    assert sum(point.seconds or 0 for point in found.points) == 16.0
    assert found.notes == ("steps left out because they are not complete: 2",)


def test_layers_of_a_recurrent_net_are_one_call() -> None:
    found = laid(profile(kernel("cell", 3.0, OpCall("aten::lstm", 0, ((5, 2, 8),)))), Recurrent(), 5, 2, 8)
    assert [(point.path, point.seconds, len(point.ops)) for point in found.points] == [("lstm", 3.0, 2)]
    assert {point.name for point in found.uncovered} == {"aten::zeros"}  # the states that torch makes before the call


def test_ranges_that_name_modules_place_kernels_there() -> None:
    found = laid(profile(kernel("a", 1.0, path="net/first"), kernel("b", 2.0, path="second"), kernel("c", 4.0, path="x")), Twice(), 2, 8)
    assert found.how == "modules"
    # The module called twice has both its products.
    assert [(point.path, point.seconds, len(point.ops)) for point in found.points] == [("second", 2.0, 2), ("first", 1.0, 1)]
    assert [point.name for point in found.kernels] == ["c"]
    assert [point.name for point in found.uncovered] == ["aten::relu", "aten::relu"]


@pytest.mark.parametrize(
    ("names", "how"),
    [
        (["sgemm", "relu", "sgemm", "relu", "sgemm"] * 2, "call order"),
        (["relu", "sgemm", "relu", "sgemm", "relu"], "none"),
        (["sgemm", "relu", "sgemm"], "none"),
    ],
)
def test_call_order_alone_is_believed_where_names_agree(names: list[str], how: str) -> None:
    found = laid(profile(*[kernel(name, 1.0) for name in names]), Twice(), 2, 8)
    assert found.how == how
    assert len(found.points) == (5 if how == "call order" else 0)


def test_counters_of_one_file_go_to_the_kernels_of_another() -> None:
    both = joined([read_profile(DATA / "nsys_trace.csv"), read_profile(DATA / "ncu_raw.csv")])
    # Two launches of gemm have 6,000,150 FLOPs and 128,000 bytes: half of it each.
    assert [each.flops for each in both.kernels] == [3_000_075, 3_000_075, 32_768]
    assert [each.dram_bytes for each in both.kernels] == [64_000, 64_000, 256_000]
    assert both.seconds == pytest.approx(41.5e-6)
    assert both.format == "Nsight Systems kernel trace and Nsight Compute CSV"


def test_counted_rates_stand_beside_our_own() -> None:
    found = laid(read_profile(DATA / "ncu_raw.csv"), small(), 2, 3, 32, 32)
    assert found.total.counted_flops == 6_032_918
    assert found.total.counted_intensity == pytest.approx(6_032_918 / 384_000)
    assert found.total.counted_rate == pytest.approx(6_032_918 / 41.5e-6)
    assert found.total.counted_bandwidth == pytest.approx(384_000 / 41.5e-6)


def test_two_files_of_a_kind_are_steps_of_one_run() -> None:
    one = read_profile(DATA / "torch_gpu.json")
    found = laid(joined([one, one]), small(), 2, 3, 32, 32)
    assert len(found.steps) == 2
    assert [point.seconds for point in found.points] == pytest.approx([42e-6, 5e-6])
