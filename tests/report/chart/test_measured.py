"""Places of measured points: the sample files by hand arithmetic (tests/measure/data/README.md)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from modelstat.measure.measurement import Measurement
from modelstat.measure.stopwatch import timing
from modelstat.report.chart.measured import CACHED, CROWDED, MOST_STEPS, Mark, Place, measured, measured_window
from modelstat.report.chart.view import views
from tests.measure.overlays import CONV_BYTES, CONV_FLOPS, RELU_BYTES, RELU_FLOPS, analysis, laid


def at(place: Place | None) -> Any:
    assert place is not None
    return place.intensity, place.rate


def test_ops_stand_at_our_counts_over_both_times() -> None:
    conv, relu, whole = measured(laid("torch_gpu.json")).marks
    assert [mark.kind for mark in (conv, relu, whole)] == ["op", "op", "whole"]
    # Two kernels of 12 and 30 us, and one of 5 us.
    assert at(conv.measured) == (CONV_FLOPS / CONV_BYTES, pytest.approx(CONV_FLOPS / 42e-6))
    assert at(relu.measured) == (RELU_FLOPS / RELU_BYTES, pytest.approx(RELU_FLOPS / 5e-6))
    predicted = analysis().predictions[0].ops[0].seconds
    assert at(conv.predicted) == (CONV_FLOPS / CONV_BYTES, pytest.approx(CONV_FLOPS / predicted))
    assert conv.error == pytest.approx(predicted / 42e-6 - 1)
    assert conv.roof_share == pytest.approx(CONV_BYTES / 1555e9 / 42e-6)
    assert (conv.counted, conv.l2, conv.l1) == (None, None, None)
    assert whole.seconds == pytest.approx(54e-6)


def test_kernels_stand_where_their_counters_put_them() -> None:
    gemm, add, whole = measured(laid("ncu_raw.csv")).marks
    assert [mark.kind for mark in (gemm, add)] == ["kernel", "kernel"]
    assert at(gemm.counted) == (6_000_150 / 128_000, pytest.approx(6_000_150 / 37.5e-6))
    assert at(add.counted) == (32_768 / 256_000, pytest.approx(32_768 / 4e-6))
    assert (gemm.measured, gemm.predicted) == (None, None)
    # The whole model has both: our FLOPs beside those of the counters, over the same time.
    assert at(whole.counted) == (pytest.approx(6_032_918 / 384_000), pytest.approx(6_032_918 / 41.5e-6))
    assert whole.measured is not None
    assert whole.measured.rate == pytest.approx(analysis().totals.flops / 41.5e-6)


def test_caches_have_intensities_of_their_own_at_the_same_rate() -> None:
    found = measured(laid("ncu_caches.csv"))
    gemm, _, whole = found.marks
    assert at(gemm.l2) == (6_000_150 / 256_000, pytest.approx(6_000_150 / 37.5e-6))
    assert at(gemm.l1) == (6_000_150 / 1_024_000, pytest.approx(6_000_150 / 37.5e-6))
    assert at(whole.l2)[0] == pytest.approx(6_032_918 / (256_000 + 512_000))
    assert any("no source states the bandwidth of L2, so it has no roof" in note for note in found.notes)


def test_caches_are_drawn_for_the_longest_alone() -> None:
    overlay = laid("ncu_caches.csv")
    many = tuple(msgspec.structs.replace(overlay.kernels[0], name=f"k{index}", seconds=1.0 + index) for index in range(CACHED + 3))
    marks = [mark for mark in measured(msgspec.structs.replace(overlay, kernels=many)).marks if mark.kind == "kernel"]
    assert [mark.name for mark in marks if mark.l2] == [f"k{CACHED + 2 - index}" for index in range(CACHED)]
    assert all(mark.counted for mark in marks)


def test_what_is_on_one_side_only_is_told_with_its_time() -> None:
    match, kernels, ops = measured(laid("torch_gpu.json")).notes
    assert match == "Match: by ops: 50.0 % of the model's ops, with 87.0 % of the measured time"
    assert kernels == "Unknown kernels: 1, 7.00 us measured: lonely 7.00 us"
    assert ops.startswith("Ops without kernels: 2, ")


def test_steps_and_their_mean() -> None:
    overlay = laid("torch_cpu.json.gz")
    marks = measured(overlay).marks
    assert [mark.name for mark in marks[-3:]] == ["step 1", "step 2", "mean of 2 steps"]
    assert [mark.kind for mark in marks[-3:]] == ["step", "step", "whole"]
    first, second, mean = (mark.seconds or 0.0 for mark in marks[-3:])
    assert mean == pytest.approx((first + second) / 2)


def test_many_steps_are_thinned_out_and_said() -> None:
    overlay = laid("torch_cpu.json.gz")
    steps = tuple(msgspec.structs.replace(overlay.steps[0], step=index) for index in range(3 * MOST_STEPS))
    found = measured(msgspec.structs.replace(overlay, steps=steps))
    assert len([mark for mark in found.marks if mark.kind == "step"]) == MOST_STEPS
    assert f"{MOST_STEPS} of {3 * MOST_STEPS} steps are shown" in found.notes


def test_a_pass_by_the_stopwatch() -> None:
    overlay = laid("torch_cpu.json.gz")
    run = Measurement(
        device="cpu", timing=timing([0.5, 0.25, 0.25]), predicted_seconds=0.125, overlay=overlay, sensors="", software="", threads=1
    )
    mark = measured(overlay, run).marks[-1]
    flops = analysis().totals.flops
    assert (mark.kind, mark.error) == ("pass", 0.125 / 0.25 - 1)
    assert at(mark.measured)[1] == flops / 0.25
    assert at(mark.predicted)[1] == flops / 0.125


def test_the_lighter_are_left_out_and_counted() -> None:
    found = measured(laid("torch_cpu.json.gz"), limit=1)
    assert [mark.path for mark in found.marks if mark.kind == "op"] == ["0"]  # the convolution took longest
    assert found.left_out == 3


@pytest.mark.parametrize("name", ["torch_gpu.json", "torch_cpu.json.gz", "ncu_caches.csv"])
def test_the_window_holds_every_place(name: str) -> None:
    found = measured(laid(name))
    (view,) = views([analysis()], measured=found)
    frame = measured_window(view.device, found)
    for place in found.places:
        spot = frame.position(place.intensity, place.rate, place.bandwidth)
        assert spot is not None
        assert frame.low < spot[0] < frame.low * (frame.high / frame.low) ** (CROWDED + 1e-9)
        assert frame.bottom < spot[1] < frame.top


def test_what_lies_above_every_ceiling_is_in_the_window_too() -> None:
    found = measured(laid("torch_gpu.json"))
    fast = Mark(kind="op", name="fast", seconds=1e-9, measured=Place(CONV_FLOPS, CONV_BYTES, 1e-12))
    (view,) = views([analysis()])
    assert measured_window(view.device, msgspec.structs.replace(found, marks=(fast,))).top > CONV_FLOPS / 1e-12
