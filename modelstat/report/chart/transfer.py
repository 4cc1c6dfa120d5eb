"""Inputs and outputs on their way between host and GPU. No total holds them: a loop that keeps its data on the GPU has none."""

from __future__ import annotations

from math import prod

from modelstat.hardware.gpu import Gpu
from modelstat.hardware.link import link_bytes
from modelstat.records import ITEM_BYTES, Trace
from modelstat.report.chart.point import Point, quotient
from modelstat.report.rows import Shapes


def transfers(trace: Trace, gpu: Gpu) -> tuple[Point, ...]:
    """The inputs to the GPU and the outputs back, one point each, at the full rate of its PCIe link; none where no link is known."""
    speed = link_bytes(gpu)
    if speed is None:
        return ()
    given = sum(round(prod(each.shape) * ITEM_BYTES[each.dtype]) for each in trace.inputs)
    returned = sum(value.bytes for value in trace.values if value.output and value.kind not in ("parameter", "buffer"))
    shapes = tuple(each.shape for each in trace.inputs)
    both = (_point("input to the GPU", given, speed, shapes), _point("output to the host", returned, speed, trace.outputs))
    return tuple(point for point in both if point.bytes)


def _point(name: str, size: int, speed: float, shapes: Shapes) -> Point:
    seconds = size / speed
    return Point(
        path="",
        name=name,
        family="transfer",
        dtype="",
        inputs=shapes,
        outputs=shapes,
        ops=1,
        flops=0,
        bytes=size,
        intensity=0.0 if size else None,
        ideal_seconds=seconds,
        seconds=seconds,
        wait_seconds=0.0,
        rate=0.0,
        bandwidth=quotient(size, seconds),
        peak_share=None,
        bandwidth_share=None,
        share=None,
        bound="transfer",
        transfer=True,
    )
