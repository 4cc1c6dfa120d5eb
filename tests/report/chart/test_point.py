"""Points: what an op computes and moves, and how far it is from its roofs."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelstat.report.chart.point import Point, heaviest, layer_points, op_points, total_seconds
from modelstat.report.chart.view import View, views
from tests.report.chart.nets import analysis, copies, deep, net
from tests.report.sample import CONV, PIXELS, net_trace

PEAK, BANDWIDTH = 14.0e12, 900e9  # V100 PCIe 32GB in fp32
IMAGE = 4 * 8 * PIXELS


def view() -> View:
    return views([net()])[0]


def test_the_rows_behind_the_page() -> None:
    """path, op, family, FLOPs and bytes of each op that is no view, as products."""
    assert [(point.path, point.name, point.family, point.flops, point.bytes) for point in view().ops] == [
        ("block.conv", "aten::convolution", "convolution", 2 * 27 * 8 * PIXELS + 8 * PIXELS, 4 * (3 * PIXELS + 224) + IMAGE),
        ("block.act", "aten::relu", "activation", 8 * PIXELS, 2 * IMAGE),
        ("", "odd::sum", "unknown", 0, IMAGE + 4 * 8),
    ]


def test_what_the_convolution_reaches() -> None:
    conv = view().ops[0]
    assert conv.seconds is not None
    assert conv.intensity == CONV.flops / CONV.bytes
    assert conv.ideal_seconds == pytest.approx(max(CONV.flops / PEAK, CONV.bytes / BANDWIDTH))
    assert conv.rate == pytest.approx(CONV.flops / conv.seconds)
    assert conv.peak_share == pytest.approx(CONV.flops / conv.seconds / PEAK)
    assert conv.bandwidth_share == pytest.approx(CONV.bytes / conv.seconds / BANDWIDTH)
    assert (conv.inputs, conv.outputs) == (((1, 3, 32, 128), (8, 3, 3, 3), (8,)), ((1, 8, 32, 128),))


def test_vector_work_is_held_against_half_the_peak() -> None:
    relu = view().ops[1]
    assert relu.seconds is not None
    assert relu.peak_share == pytest.approx(relu.flops / relu.seconds / (PEAK / 2))


@pytest.mark.parametrize("level", ["ops", "layers"])
@pytest.mark.parametrize("blocks", [1, 7])
def test_points_are_the_whole_model(level: str, blocks: int) -> None:
    """Nothing is counted twice and nothing is lost, whether ops or layers are drawn."""
    shown = views([analysis(deep(blocks))])[0]
    points: tuple[Point, ...] = getattr(shown, level)
    assert sum(point.flops for point in points) == shown.program.flops
    assert sum(point.bytes for point in points) == shown.program.bytes
    assert sum(point.seconds or 0.0 for point in points) == pytest.approx(shown.program.seconds)
    assert sum(point.share or 0.0 for point in points) == pytest.approx(1.0)


def test_layers_are_modules_with_work_of_their_own() -> None:
    assert [(point.path, point.name, point.ops) for point in view().layers] == [
        ("", "Net", 1),
        ("block.conv", "Conv2d", 1),
        ("block.act", "ReLU", 1),
    ]


def test_a_missing_peak_leaves_the_time_unknown_and_not_zero() -> None:
    trace, _ = net_trace(precision="tf32")
    conv, relu, _ = views([analysis(trace)])[0].ops
    assert (conv.seconds, conv.rate, conv.share, conv.bound, conv.peak_share) == (None, None, None, None, None)
    assert relu.seconds == pytest.approx(2 * IMAGE / BANDWIDTH)  # the ideal time, where nothing is predicted


def test_copies_have_an_intensity_of_zero() -> None:
    for point in views([analysis(copies())])[0].ops:
        assert (point.flops, point.intensity, point.rate) == (0, 0.0, 0.0)
        assert point.bandwidth is not None
        assert point.bandwidth > 0


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=30), st.integers(0, 30))
def test_the_heaviest_are_kept_in_order(times: list[float | None], limit: int) -> None:
    sample = view().ops[0]
    points = [msgspec.structs.replace(sample, seconds=time, ops=index) for index, time in enumerate(times)]
    kept = heaviest(points, limit)
    assert len(kept) == min(limit, len(points))
    assert [each.ops for each in kept] == sorted(each.ops for each in kept)
    left = [each.seconds or 0.0 for each in points if each not in kept]
    assert max(left, default=0.0) <= min((each.seconds or 0.0 for each in kept), default=1.0)


def test_ops_and_layers_of_analysis_parts() -> None:
    found = net()
    parts = (found.trace, found.costs, found.rooflines[0], found.predictions[0])
    assert op_points(*parts) == views([found])[0].ops
    assert layer_points(*parts) == views([found])[0].layers
    assert total_seconds(found.rooflines[0], found.predictions[0]) == found.predictions[0].seconds


def test_a_time_below_the_ideal_one_says_why() -> None:
    """The convolution is bound by memory: where it takes less than its bytes need, they came out of the L2 cache."""
    found = net()
    prediction = found.predictions[0]
    fast = msgspec.structs.replace(prediction.ops[0], seconds=1e-9, wait_seconds=0.0)
    faster = msgspec.structs.replace(prediction, ops=(fast, *prediction.ops[1:]))
    parts = (found.trace, found.costs, found.rooflines[0], faster)
    assert [point.below_ideal for point in op_points(*parts)] == ["L2", None, None]
    assert {point.path: point.below_ideal for point in layer_points(*parts)} == {"": None, "block.conv": "L2", "block.act": None}
    assert view().ops[0].below_ideal is None
