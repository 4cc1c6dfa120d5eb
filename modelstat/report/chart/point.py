"""One point of a roofline: what an op or a layer computes and moves, how long it takes, and how far from its roofs that is."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from modelstat.cost.record import Cost
from modelstat.predict.prediction import IDLE, OpPrediction, Prediction
from modelstat.predict.roofline import OpTime, Roofline
from modelstat.records import Trace
from modelstat.report.prediction import below, op_predictions
from modelstat.report.rows import Shapes, intensity

HEAVIEST = 1000
"""How many points one chart shows: those that take most time."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One op, or one layer with the ops that ran in its own forward. Counts are for the whole batch.

    ``seconds`` (s) is the predicted time with the GPU's wait for its host, the ideal time where nothing is predicted, None where the GPU
    has no peak for it. ``rate`` (FLOP/s) and ``bandwidth`` (B/s) are what that amounts to, the shares what part of the GPU's peaks (0..1;
    more where a time is below the ideal one). ``share`` is its part of the model's time. ``bound`` is what limits it.
    """

    path: str
    name: str
    """The op (``aten::convolution``), or the layer's type."""
    family: str
    dtype: str
    inputs: Shapes
    outputs: Shapes
    ops: int
    flops: int
    bytes: int
    intensity: float | None
    ideal_seconds: float | None
    seconds: float | None
    wait_seconds: float
    rate: float | None
    bandwidth: float | None
    peak_share: float | None
    bandwidth_share: float | None
    share: float | None
    bound: str | None
    below_ideal: str | None = None
    """Why the time is below the ideal one, None where it is not."""
    transfer: bool = False
    """Data on its way between host and GPU, which no total holds."""


def op_points(trace: Trace, costs: Sequence[Cost], roofline: Roofline, prediction: Prediction) -> tuple[Point, ...]:
    """One point per op that is not a view and does something, in the order in which they ran."""
    whole = _Model(trace, costs, roofline, prediction)
    return tuple(
        _point(whole, [index], name=op.name)
        for index, op in enumerate(trace.ops)
        if not op.view and (costs[index].bytes or costs[index].flops)
    )


def layer_points(trace: Trace, costs: Sequence[Cost], roofline: Roofline, prediction: Prediction) -> tuple[Point, ...]:
    """One point per module whose own forward computes or moves something: together they are the model. In the order of its modules."""
    mine: dict[int, list[int]] = {}
    for index, op in enumerate(trace.ops):
        if not op.view and (costs[index].bytes or costs[index].flops):
            mine.setdefault(op.module, []).append(index)
    whole = _Model(trace, costs, roofline, prediction)
    return tuple(_point(whole, mine[module], name=trace.modules[module].type) for module in sorted(mine))


def heaviest(points: Sequence[Point], limit: int = HEAVIEST) -> tuple[Point, ...]:
    """The ``limit`` points of most time (of most bytes where the time is not known), in their own order."""
    if len(points) <= limit:
        return tuple(points)
    order = sorted(range(len(points)), key=lambda index: (-(points[index].seconds or 0.0), -points[index].bytes, index))
    return tuple(points[index] for index in sorted(order[:limit]))


def total_seconds(roofline: Roofline, prediction: Prediction) -> float | None:
    """The model's predicted time (s), its ideal time where nothing is predicted; None where the GPU has no peak for it."""
    return roofline.ideal_seconds if prediction.seconds is None else prediction.seconds


class _Model:
    """What all points of a model share."""

    def __init__(self, trace: Trace, costs: Sequence[Cost], roofline: Roofline, prediction: Prediction) -> None:
        self.trace, self.costs, self.roofline, self.prediction = trace, costs, roofline, prediction
        self.total = total_seconds(roofline, prediction)
        self.reasons = [row.below_ideal for row in op_predictions(trace, costs, roofline, prediction)]


def _point(whole: _Model, indices: Sequence[int], *, name: str) -> Point:
    """The point of several ops of one module."""
    trace, costs, roofline, prediction = whole.trace, whole.costs, whole.roofline, whole.prediction
    parts = [(costs[index], roofline.ops[index], _predicted(prediction, index)) for index in indices]
    flops, moved = sum(cost.flops for cost, _, _ in parts), sum(cost.bytes for cost, _, _ in parts)
    ideals = [time.ideal_seconds for _, time, _ in parts]
    ideal = None if None in ideals else sum(each or 0.0 for each in ideals)
    known = prediction.seconds is not None
    seconds = sum(mine.total_seconds for _, _, mine in parts) if known else ideal
    compute = [time.compute_seconds for _, time, _ in parts]
    first, last = trace.ops[indices[0]], trace.ops[indices[-1]]
    reasons = dict.fromkeys(reason for index in indices if (reason := whole.reasons[index]))
    main = max(parts, key=lambda part: (part[2].total_seconds, part[0].flops, part[0].bytes))[0]
    return Point(
        path=trace.modules[first.module].path,
        name=name,
        family=main.family,
        dtype=main.dtype,
        inputs=tuple(spec.shape for spec in first.inputs),
        outputs=tuple(spec.shape for spec in last.outputs),
        ops=len(indices),
        flops=flops,
        bytes=moved,
        intensity=intensity(flops, moved),
        ideal_seconds=ideal,
        seconds=seconds,
        wait_seconds=sum(mine.wait_seconds for _, _, mine in parts),
        rate=quotient(flops, seconds),
        bandwidth=quotient(moved, seconds),
        peak_share=None if None in compute else quotient(sum(each or 0.0 for each in compute), seconds),
        bandwidth_share=quotient(sum(time.memory_seconds for _, time, _ in parts), seconds),
        share=None if seconds is None else quotient(seconds, whole.total),
        below_ideal=", ".join(reasons) if reasons and seconds is not None and ideal is not None and below(seconds, ideal) else None,
        bound=_bound([mine for _, _, mine in parts]) if known else _ideal_bound([time for _, time, _ in parts]),
    )


def quotient(amount: float, seconds: float | None) -> float | None:
    """An amount per second; None where the time is unknown or zero.

    >>> quotient(6.0, 2.0), quotient(6.0, 0.0)
    (3.0, None)
    """
    return amount / seconds if seconds else None


def _predicted(prediction: Prediction, index: int) -> OpPrediction:
    return prediction.ops[index] if prediction.ops else IDLE


def _bound(ops: Sequence[OpPrediction]) -> str | None:
    running, waiting = sum(op.seconds for op in ops), sum(op.wait_seconds for op in ops)
    if not running + waiting:
        return None
    if waiting > running:
        return "overhead"
    return "compute" if sum(op.compute_seconds for op in ops) >= sum(op.memory_seconds for op in ops) else "memory"


def _ideal_bound(times: Sequence[OpTime]) -> str | None:
    compute = sum(time.compute_seconds or 0.0 for time in times)
    memory = sum(time.memory_seconds for time in times)
    if None in [time.compute_seconds for time in times] or not compute + memory:
        return None
    return "compute" if compute >= memory else "memory"
