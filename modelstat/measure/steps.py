"""The passes of a profile, each as a point of its own, and the mean of those that are complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from modelstat.measure.imports.record import MeasuredKernel, whole
from modelstat.measure.matching import Match, Matching
from modelstat.measure.point import MeasuredPoint, Ours, compared, mean_of

COMPLETE = 0.95
"""Share of the best step's matched ops that a step must have for it to be complete: a profiler starts and stops in the middle."""


class StepPoint(msgspec.Struct, frozen=True):
    """One pass of the model: its number, the count of its matched ops, and whether it is one of those that the mean is over.

    ``point`` has our counts of the matched ops over the time of all kernels of the step, those that belong to no op included.
    """

    step: int | None
    ops: int
    complete: bool
    point: MeasuredPoint


def step_points(matching: Matching, ours: Callable[[Iterable[int]], Ours]) -> list[StepPoint]:
    """One point a step, in their order; ``ours`` is what the model says of some ops."""
    groups: dict[int | None, list[Match]] = {}
    for each in matching.matches:
        groups.setdefault(each.step, []).append(each)
    strange: dict[int | None, list[MeasuredKernel]] = {}
    for kernel in matching.unknown:
        strange.setdefault(kernel.step, []).append(kernel)
    indices = {step: sorted({index for each in found for index in each.ops}) for step, found in groups.items()}
    best = max(map(len, indices.values()), default=0)
    steps: list[StepPoint] = []
    for step in sorted(groups, key=lambda each: -1 if each is None else each):
        kernels = [*(kernel for each in groups[step] for kernel in each.kernels), *strange.get(step, ())]
        name = "pass" if step is None else f"step {step}"
        point = compared(name, "", (), ours(indices[step]), mean_of(kernels, 1))
        steps.append(StepPoint(step, len(indices[step]), len(indices[step]) >= COMPLETE * best, point))
    return steps


def mean_point(steps: Sequence[StepPoint]) -> MeasuredPoint | None:
    """The mean of the complete steps: their FLOPs, bytes and times summed and divided by their number. None without any.

    Its rates lie between those of the steps.
    """
    points = [step.point for step in steps if step.complete]
    if not points:
        return None

    def mean(field: str) -> float | None:
        value = whole([getattr(point, field) for point in points])
        return None if value is None else value / len(points)

    ours = Ours(
        round(mean("flops") or 0), round(mean("bytes") or 0), mean("predicted_seconds"), mean("ideal_seconds")
    )
    measured = MeasuredKernel(
        name="",
        seconds=mean("seconds"),
        launches=round(mean("launches") or 0),
        flops=mean("counted_flops"),
        dram_bytes=mean("counted_bytes"),
        l2_bytes=mean("counted_l2_bytes"),
        l1_bytes=mean("counted_l1_bytes"),
    )
    return compared("mean" if len(points) == 1 else f"mean of {len(points)} steps", "", (), ours, measured)
