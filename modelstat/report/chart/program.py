"""The whole model as one point: what it computes and moves, how long it takes, and how far from its roof that is."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from modelstat.cost.record import Cost
from modelstat.memory.peak import peak_memory
from modelstat.predict.prediction import Prediction
from modelstat.predict.roofline import Roofline
from modelstat.records import Trace
from modelstat.report.chart.point import quotient, total_seconds
from modelstat.report.prediction import throughput
from modelstat.report.rows import intensity


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """One model at one batch and precision on one GPU. Times in s, rates in FLOP/s and B/s, shares of one; None where not known.

    ``seconds`` is the predicted time, ``low_seconds`` and ``high_seconds`` its 90 % interval. ``roof_share`` is what the model reaches of
    what is attainable at its intensity, ``peak_share`` and ``bandwidth_share`` of the GPU's peak rate and bandwidth.
    """

    ops: int
    flops: int
    bytes: int
    intensity: float | None
    ideal_seconds: float | None
    seconds: float | None
    low_seconds: float | None
    high_seconds: float | None
    idle_seconds: float | None
    throughput: float | None
    rate: float | None
    bandwidth: float | None
    attainable: float | None
    roof_share: float | None
    peak: float | None
    peak_share: float | None
    bandwidth_share: float | None
    bound: str | None
    peak_bytes: int
    memory_bytes: float | None
    fits: bool | None
    missing: str | None


def program(trace: Trace, costs: Sequence[Cost], roofline: Roofline, prediction: Prediction) -> Program:
    """The totals of one trace on one GPU."""
    flops, moved = sum(cost.flops for cost in costs), sum(cost.bytes for cost in costs)
    seconds = total_seconds(roofline, prediction)
    rate, speed = quotient(flops, seconds), quotient(moved, seconds)
    peak = roofline.peak.flops if roofline.peak else None
    return Program(
        ops=sum(not op.view for op in trace.ops),
        flops=flops,
        bytes=moved,
        intensity=intensity(flops, moved),
        ideal_seconds=roofline.ideal_seconds,
        seconds=seconds,
        low_seconds=prediction.low_seconds,
        high_seconds=prediction.high_seconds,
        idle_seconds=prediction.idle_seconds,
        throughput=throughput(trace, prediction),
        rate=rate,
        bandwidth=speed,
        attainable=roofline.attainable_flops,
        roof_share=None if rate is None else quotient(rate, roofline.attainable_flops),
        peak=peak,
        peak_share=None if rate is None else quotient(rate, peak),
        bandwidth_share=None if speed is None else speed / roofline.gpu.bandwidth_bytes,
        bound=prediction.bound or roofline.bound,
        peak_bytes=peak_memory(trace).peak_bytes,
        memory_bytes=roofline.gpu.memory_bytes,
        fits=roofline.fits,
        missing=roofline.missing,
    )
