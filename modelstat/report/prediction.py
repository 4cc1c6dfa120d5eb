"""The predicted time in the JSON contract, and its lines in the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from modelstat import units
from modelstat.cost.record import Cost
from modelstat.predict.fusion import role
from modelstat.predict.kernels import convolution
from modelstat.predict.prediction import OpPrediction, Prediction
from modelstat.predict.roofline import OpTime, Roofline
from modelstat.predict.variant import samples
from modelstat.records import Op, Trace

if TYPE_CHECKING:
    from modelstat.report.timing import GpuEntry

LEAST_SHARE = 0.01
"""Families of ops below this share of the time are summed up in the report."""

REASONS = {
    "measured": "a measurement corrected the times",
    "fused": "fused kernels do not write and read again what is between their ops",
    "Winograd": "Winograd's convolutions multiply less than their definition",
    "L2": "the cache holds what was just written",
    "vector rate": "fused multiply-adds run above half of the fp32 peak, which the roofline takes for vector work",
    "clock": "the board runs above the boost clock of its datasheet",
}
"""Why a predicted time may be below the ideal one, see :func:`reason`, and how the report says so."""


class FamilyTime(msgspec.Struct, frozen=True):
    """Predicted time (ms) of one family of ops, the GPU's waits before them included, and its share of the total (0..1)."""

    family: str
    predicted_ms: float
    share: float


class RowPrediction(msgspec.Struct, frozen=True):
    """One row of layers or ops: time (s) with the GPU's waits, what limits it, and why it is below the ideal time where it is."""

    seconds: float | None = None
    bound: str | None = None
    below_ideal: str | None = None


UNKNOWN = RowPrediction()


class _Sum:
    """Ops of one row, added up."""

    def __init__(self) -> None:
        self.compute = self.memory = self.running = self.waiting = self.ideal = 0.0
        self.reasons: dict[str, None] = {}

    def add(self, op: OpPrediction, ideal: float, why: str | None) -> None:
        self.compute += op.compute_seconds
        self.memory += op.memory_seconds
        self.running += op.seconds
        self.waiting += op.wait_seconds
        self.ideal += ideal
        if why:
            self.reasons[why] = None

    def row(self) -> RowPrediction:
        total = self.running + self.waiting
        if not total:
            return RowPrediction(0.0)
        bound = "overhead" if self.waiting > self.running else "compute" if self.compute >= self.memory else "memory"
        why = ", ".join(name for name in REASONS if name in self.reasons) if below(total, self.ideal) else ""
        return RowPrediction(total, bound, why or None)


def below(predicted: float, ideal: float) -> bool:
    """Whether a predicted time is below the ideal one, by more than rounding.

    >>> below(1.0, 1.0 + 1e-12), below(0.9, 1.0)
    (False, True)
    """
    return predicted < ideal * (1.0 - 1e-9)


def reason(op: Op, cost: Cost, ideal: OpTime, predicted: OpPrediction, prediction: Prediction) -> str | None:
    """Why an op is predicted to be faster than its roofline, None where it is not.

    fused: a compiler keeps its operands in registers. Winograd: the convolution multiplies less than its definition. L2: its operands
    come out of the cache, not from memory. vector rate: the roofline holds vector work against half the fp32 peak, which a kernel of
    fused multiply-adds exceeds. clock: the board runs above the boost clock of its datasheet. measured: a measurement corrected it.
    """
    if ideal.ideal_seconds is None or not below(predicted.total_seconds, ideal.ideal_seconds):
        return None
    if prediction.execution.mode == "compile" and role(op, cost) in ("pointwise", "reduction"):
        return "fused"
    if prediction.scale < 1.0 and not below(predicted.total_seconds / prediction.scale, ideal.ideal_seconds):
        return "measured"
    if ideal.bound == "memory":
        return "L2"
    if cost.family == "convolution" and convolution.features(op, cost).winograd:
        return "Winograd"
    return "vector rate" if cost.unit == "vector" else "clock"


def op_predictions(trace: Trace, costs: Sequence[Cost], roofline: Roofline, prediction: Prediction | None) -> tuple[RowPrediction, ...]:
    """One per op of the trace, views included."""
    if prediction is None or prediction.seconds is None:
        return (UNKNOWN,) * len(trace.ops)
    return tuple(
        RowPrediction(mine.total_seconds, mine.bound, reason(op, cost, ideal, mine, prediction))
        for op, cost, ideal, mine in zip(trace.ops, costs, roofline.ops, prediction.ops, strict=True)
    )


def layer_predictions(
    trace: Trace, roofline: Roofline, prediction: Prediction | None, ops: Sequence[RowPrediction]
) -> tuple[RowPrediction, ...]:
    """One per module, with all below it, in the order of ``trace.modules``; the root's is the total."""
    if prediction is None or prediction.seconds is None:
        return (UNKNOWN,) * len(trace.modules)
    sums = [_Sum() for _ in trace.modules]
    for op, mine, ideal, row in zip(trace.ops, prediction.ops, roofline.ops, ops, strict=True):
        index = op.module
        while index >= 0:
            sums[index].add(mine, ideal.ideal_seconds or 0.0, row.below_ideal)
            index = trace.modules[index].parent
    return tuple(one.row() for one in sums)


def family_times(costs: Sequence[Cost], prediction: Prediction) -> tuple[FamilyTime, ...]:
    """Predicted time by family of ops, the largest first; they sum to the total."""
    if not prediction.seconds:
        return ()
    sums: dict[str, float] = {}
    for cost, op in zip(costs, prediction.ops, strict=True):
        if op.total_seconds:
            sums[cost.family] = sums.get(cost.family, 0.0) + op.total_seconds
    found = [FamilyTime(family, seconds * 1e3, seconds / prediction.seconds) for family, seconds in sums.items()]
    return tuple(sorted(found, key=lambda each: -each.predicted_ms))


def throughput(trace: Trace, prediction: Prediction) -> float | None:
    """Samples per second; None where the batch is unknown or nothing runs."""
    count = samples(trace)
    return count / prediction.seconds if count and prediction.seconds else None


def below_ideal(gpu: GpuEntry) -> str | None:
    """Why the predicted time is less than the ideal one, None where it is not."""
    reasons = gpu.layers[0].below_ideal if gpu.layers else None
    return None if reasons is None else f"less than the ideal: {'; '.join(REASONS[name] for name in reasons.split(', '))}"


def prediction_lines(gpu: GpuEntry) -> list[tuple[str, str]]:
    """The predicted time with its interval and what widened it, its share by family, and what would help."""
    if gpu.predicted_ms is None or gpu.predicted_low_ms is None or gpu.predicted_high_ms is None:
        return []
    predicted, low, high = (units.seconds(ms / 1e3) for ms in (gpu.predicted_ms, gpu.predicted_low_ms, gpu.predicted_high_ms))
    rate = "" if gpu.throughput is None else f", {units.per_second(gpu.throughput)} samples/s"
    idle = 0.0 if not gpu.predicted_ms else (gpu.idle_ms or 0.0) / gpu.predicted_ms
    limit = f", {gpu.predicted_bound}-bound" if gpu.predicted_bound else ""
    text = f"{predicted} (90 %: {low} to {high}){rate}; {gpu.execution}; GPU idle {units.percent(idle)}{limit}"
    lines = [("Predicted", text)]
    if gpu.correction:
        lines.append(("", gpu.correction))
    if (reason := below_ideal(gpu)) is not None:
        lines.append(("", reason))
    if gpu.prediction_notes:
        lines.append(("", f"the interval is wide because: {'; '.join(gpu.prediction_notes)}"))
    if gpu.families:
        named = [f"{each.family} {units.percent(each.share)}" for each in gpu.families if each.share >= LEAST_SHARE]
        rest = sum(each.share for each in gpu.families if each.share < LEAST_SHARE)
        lines.append(("Time by op", ", ".join([*named, *([f"other {units.percent(rest)}"] if rest else [])])))
    lines += [("Would help" if index == 0 else "", advice.text) for index, advice in enumerate(gpu.advice or ())]
    return lines
