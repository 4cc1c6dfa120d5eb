"""Measured points on a roof: each op or module with its measured time beside its predicted one, and what is on one side only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from modelstat.cost.record import Cost
from modelstat.measure.imports.record import MeasuredKernel, Profile, by_name, total, whole
from modelstat.measure.matching import Match, Matching, match, running
from modelstat.predict.prediction import Prediction
from modelstat.predict.roofline import Roofline
from modelstat.records import Trace

COMPLETE = 0.95
"""Share of the best step's matched ops that a step must have for it to be complete: a profiler starts and stops in the middle."""


class MeasuredPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One op, one module or one kernel, measured: the mean over complete steps.

    ``seconds`` (s) is measured, ``predicted_seconds`` and ``ideal_seconds`` are the model's; ``error`` is predicted / measured - 1.
    ``flops`` and ``bytes`` (B) are our counts, ``counted_*`` those of the GPU's counters. ``rate`` (FLOP/s) and ``bandwidth`` (B/s)
    are our counts over the measured time; ``roof_share`` is ideal over measured time. None: unknown, as for a kernel that no op is
    known for.
    """

    name: str
    path: str = ""
    ops: tuple[int, ...] = ()
    launches: float = 0
    seconds: float | None
    predicted_seconds: float | None = None
    ideal_seconds: float | None = None
    error: float | None = None
    flops: int | None = None
    bytes: int | None = None
    intensity: float | None = None
    rate: float | None = None
    bandwidth: float | None = None
    roof_share: float | None = None
    counted_flops: float | None = None
    counted_bytes: float | None = None
    counted_l2_bytes: float | None = None
    counted_l1_bytes: float | None = None
    counted_intensity: float | None = None
    counted_rate: float | None = None
    counted_bandwidth: float | None = None


class StepPoint(msgspec.Struct, frozen=True):
    """One pass of the model: its number, kernel time (s), matched ops, and whether it is one of those that the mean is over.

    ``rate`` (FLOP/s) and ``bandwidth`` (B/s) are our counts of the matched ops over the time of their kernels.
    """

    step: int | None
    seconds: float | None
    ops: int
    complete: bool
    rate: float | None
    bandwidth: float | None


class Overlay(msgspec.Struct, frozen=True, kw_only=True):
    """A profile on a model's roof.

    ``points`` are in the order of the model; ``kernels`` are those that the trace does not know, by name; ``uncovered`` ops that no
    kernel covers, with their predicted time. ``op_share`` is the share of the model's ops that have kernels, ``time_share`` that of
    the measured time in kernels that have ops. ``total`` sums the points and all other kernels.
    """

    model: str
    gpu: str
    file: str
    format: str
    how: str
    points: tuple[MeasuredPoint, ...]
    kernels: tuple[MeasuredPoint, ...]
    uncovered: tuple[MeasuredPoint, ...]
    steps: tuple[StepPoint, ...]
    total: MeasuredPoint
    op_share: float
    time_share: float | None
    notes: tuple[str, ...]


def overlay(trace: Trace, costs: Sequence[Cost], roofline: Roofline, prediction: Prediction, profile: Profile) -> Overlay:
    """Lay a profile on a model's roof, all of one GPU."""
    matching = match(trace, costs, profile)
    steps = _steps(costs, matching)
    complete = [step.step for step in steps if step.complete]
    sides = _Sides(trace, costs, roofline, prediction)
    groups: dict[tuple[int, ...], list[Match]] = {}
    for each in matching.matches:
        if each.step in complete:
            groups.setdefault(each.ops, []).append(each)
    points = [sides.point(ops, [kernel for one in found for kernel in one.kernels], len(complete)) for ops, found in groups.items()]
    points.sort(key=lambda point: point.ops)
    # Kernels that no op launched may carry a step or not; without one they belong to all of the run.
    strange = [kernel for kernel in matching.unknown if kernel.step is None or kernel.step in complete or not complete]
    passes = max(1, len(complete))
    kernels = [sides.kernel(kernel, passes) for kernel in by_name(tuple(strange))]
    covered = {index for ops in groups for index in ops}
    ops = running(trace, costs)
    uncovered = [sides.point((index,), None, 1) for index in ops if index not in covered]
    inside, outside = total(point.seconds for point in points), total(point.seconds for point in kernels)
    both = total((inside, outside))
    share = len(covered) / len(ops) if ops else 0.0
    return Overlay(
        model=trace.model,
        gpu=roofline.gpu.name,
        file=profile.file,
        format=profile.format,
        how=matching.how,
        points=tuple(points),
        kernels=tuple(kernels),
        uncovered=tuple(sorted(uncovered, key=lambda point: -(point.predicted_seconds or 0.0))),
        steps=tuple(steps),
        total=sides.total(points, kernels, both),
        op_share=share,
        time_share=None if not both else (inside or 0.0) / both,
        notes=(*_notes(matching, share, steps), *profile.problems),
    )


def _steps(costs: Sequence[Cost], matching: Matching) -> list[StepPoint]:
    groups: dict[int | None, list[Match]] = {}
    for each in matching.matches:
        groups.setdefault(each.step, []).append(each)
    counts = {step: len({index for each in found for index in each.ops}) for step, found in groups.items()}
    best = max(counts.values(), default=0)
    steps: list[StepPoint] = []
    for step in sorted(groups, key=lambda each: -1 if each is None else each):
        seconds = whole([kernel.seconds for each in groups[step] for kernel in each.kernels])
        indices = {index for each in groups[step] for index in each.ops}
        flops, moved = sum(costs[index].flops for index in indices), sum(costs[index].bytes for index in indices)
        enough = counts[step] >= COMPLETE * best
        steps.append(StepPoint(step, seconds, counts[step], enough, quotient(flops, seconds), quotient(moved, seconds)))
    return steps


def _notes(matching: Matching, share: float, steps: Sequence[StepPoint]) -> Iterable[str]:
    if matching.how == "none":
        yield "no kernel could be matched to an op: the profile names neither ops nor modules, so kernels are points of their own"
    elif share < 0.5:
        yield f"only {share:.0%} of the model's ops were found: is this a profile of another model, input or batch?"
    if matching.how == "call order":
        yield "kernels were matched to ops by call order alone: the profile names no ops (record with shapes or NVTX ranges to be sure)"
    left = [str(step.step) for step in steps if not step.complete]
    if left:
        yield f"steps left out because they are not complete: {', '.join(left)}"


def quotient(amount: float | None, seconds: float | None) -> float | None:
    """Amount per second, None where one is unknown or no time has passed."""
    return amount / seconds if amount is not None and seconds else None


class _Sides:
    """Our side of each point: counts, ideal and predicted time."""

    def __init__(self, trace: Trace, costs: Sequence[Cost], roofline: Roofline, prediction: Prediction) -> None:
        self.trace, self.costs, self.roofline, self.prediction = trace, costs, roofline, prediction

    def point(self, ops: tuple[int, ...], kernels: Sequence[MeasuredKernel] | None, steps: int) -> MeasuredPoint:
        """The point of some ops; without kernels what the model says of them alone."""
        measured = None if kernels is None else mean_of(kernels, steps)
        module = self.trace.modules[self._module(ops)]
        name = self.trace.ops[ops[0]].name if len(ops) == 1 else module.type
        return self._made(name, module.path, ops, measured)

    def kernel(self, kernel: MeasuredKernel, steps: int) -> MeasuredPoint:
        """The point of a kernel that belongs to no op: its counters alone."""
        one = mean_of([kernel], steps)
        return MeasuredPoint(name=kernel.name, seconds=one.seconds, launches=kernel.launches / steps, **_counted(one))

    def total(self, points: Sequence[MeasuredPoint], kernels: Sequence[MeasuredPoint], seconds: float | None) -> MeasuredPoint:
        """The whole model against all kernels of a step."""
        everything = [*points, *kernels]
        summed = MeasuredKernel(
            name="total",
            seconds=seconds,
            flops=whole([each.counted_flops for each in everything]) if everything else None,
            dram_bytes=whole([each.counted_bytes for each in everything]) if everything else None,
        )
        made = self._made("total", "", tuple(range(len(self.trace.ops))), summed)
        return msgspec.structs.replace(made, ops=(), launches=sum(each.launches for each in everything))

    def _module(self, ops: tuple[int, ...]) -> int:
        """The innermost module that all of them ran in."""
        chains = []
        for index in ops:
            at, chain = self.trace.ops[index].module, []
            while at >= 0:
                chain.append(at)
                at = self.trace.modules[at].parent
            chains.append(chain)
        return next(module for module in chains[0] if all(module in chain for chain in chains))

    def _made(self, name: str, path: str, ops: tuple[int, ...], measured: MeasuredKernel | None) -> MeasuredPoint:
        flops, moved = sum(self.costs[index].flops for index in ops), sum(self.costs[index].bytes for index in ops)
        ideals = [self.roofline.ops[index].ideal_seconds for index in ops]
        ideal = whole(list(ideals))
        # A profiler's time of a kernel holds no wait for the host; the model's total time does.
        predicted = sum(self.prediction.ops[index].seconds for index in ops) if self.prediction.ops else None
        seconds = None if measured is None else measured.seconds
        return MeasuredPoint(
            name=name,
            path=path,
            ops=ops,
            launches=0 if measured is None else measured.launches,
            seconds=seconds,
            predicted_seconds=predicted,
            ideal_seconds=ideal,
            error=predicted / seconds - 1.0 if predicted is not None and seconds else None,
            flops=flops,
            bytes=moved,
            intensity=flops / moved if moved else None,
            rate=quotient(flops, seconds),
            bandwidth=quotient(moved, seconds),
            roof_share=ideal / seconds if ideal is not None and seconds else None,
            **({} if measured is None else _counted(measured)),
        )


def mean_of(kernels: Sequence[MeasuredKernel], steps: int) -> MeasuredKernel:
    """All kernels of several steps as one of a step."""

    def mean(field: str) -> float | None:
        value = whole([getattr(kernel, field) for kernel in kernels])
        return None if value is None else value / steps

    return MeasuredKernel(
        name="",
        seconds=mean("seconds"),
        launches=round(sum(kernel.launches for kernel in kernels) / steps),
        flops=mean("flops"),
        dram_bytes=mean("dram_bytes"),
        l2_bytes=mean("l2_bytes"),
        l1_bytes=mean("l1_bytes"),
    )


def _counted(kernel: MeasuredKernel) -> dict[str, Any]:
    intensity = kernel.flops / kernel.dram_bytes if kernel.flops is not None and kernel.dram_bytes else None
    return {
        "counted_flops": kernel.flops,
        "counted_bytes": kernel.dram_bytes,
        "counted_l2_bytes": kernel.l2_bytes,
        "counted_l1_bytes": kernel.l1_bytes,
        "counted_intensity": intensity,
        "counted_rate": quotient(kernel.flops, kernel.seconds),
        "counted_bandwidth": quotient(kernel.dram_bytes, kernel.seconds),
    }

