"""The time of a pass on a GPU, at best and as predicted."""

from __future__ import annotations

import msgspec

from modelstat.cost.registry import costs
from modelstat.hardware.gpu import Gpu
from modelstat.predict.execution import Execution
from modelstat.predict.prediction import predict
from modelstat.predict.roofline import roofline
from modelstat.records import Trace


class Span(msgspec.Struct, frozen=True):
    """The roofline's time, the predicted one with its 90 % interval, and what sets it. None where ``missing`` says why."""

    ideal_seconds: float | None
    predicted_seconds: float | None
    low_seconds: float | None
    high_seconds: float | None
    bound: str | None
    missing: str | None = None


def span(trace: Trace, gpu: Gpu, execution: Execution) -> Span:
    """The time of one pass."""
    cost = costs(trace)
    best = roofline(trace, cost, gpu)
    if best.missing is not None:
        return Span(None, None, None, None, None, best.missing)
    found = predict(trace, cost, gpu, execution)
    return Span(best.ideal_seconds, found.seconds, found.low_seconds, found.high_seconds, found.bound, found.missing)


def mean(first: Span, last: Span) -> Span:
    """The mean of two passes, bound as the later one is."""
    return Span(
        _mean(first.ideal_seconds, last.ideal_seconds),
        _mean(first.predicted_seconds, last.predicted_seconds),
        _mean(first.low_seconds, last.low_seconds),
        _mean(first.high_seconds, last.high_seconds),
        last.bound,
        last.missing,
    )


def _mean(first: float | None, last: float | None) -> float | None:
    return None if first is None or last is None else (first + last) / 2.0
