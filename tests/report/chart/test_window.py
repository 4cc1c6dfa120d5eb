"""The plane that a chart shows."""

from __future__ import annotations

import pytest

from modelstat.report.chart.view import views
from modelstat.report.chart.window import window
from tests.report.chart.nets import analysis, copies, deep, hostile


@pytest.mark.parametrize("trace", [deep(3), copies(), hostile()], ids=["deep", "copies", "net"])
@pytest.mark.parametrize("gpu", ["v100", "tpu-v4", "m1", "h100"])
def test_every_point_with_a_time_is_inside(trace: object, gpu: str) -> None:
    shown = views([analysis(trace, gpu)])[0]  # type: ignore[arg-type]
    points = [*shown.ops, *shown.transfers]
    frame = window([shown.device], points)
    places = [frame.position(point.intensity, point.rate, point.bandwidth) for point in points if point.seconds]
    assert None not in places
    for place in places:
        assert place is not None
        assert frame.low < place[0] < frame.high
        assert frame.bottom < place[1] < frame.top


def test_what_computes_nothing_stands_left_of_what_computes_something() -> None:
    shown = views([analysis(hostile())])[0]
    frame = window([shown.device], shown.ops)
    conv, relu, odd = shown.ops
    assert frame.bytes_only < min(conv.intensity or 0, relu.intensity or 0)
    place = frame.position(odd.intensity, odd.rate, odd.bandwidth)
    assert place is not None
    # Its distance to the memory's roof is the one of its bandwidth.
    assert place[1] / (place[0] * shown.device.roofs[0].bandwidth) == pytest.approx(odd.bandwidth_share)
