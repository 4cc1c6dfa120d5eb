"""Measured points on a roof: each op or module with its measured time beside its predicted one, and what is on one side only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from modelstat.cost.record import Cost
from modelstat.measure.imports.record import MeasuredKernel, Profile, by_name, total, whole
from modelstat.measure.matching import Match, Matching, match, running
from modelstat.measure.point import MeasuredPoint, Ours, compared, counted, mean_of
from modelstat.measure.steps import StepPoint, mean_point, step_points
from modelstat.predict.prediction import Prediction
from modelstat.predict.roofline import Roofline
from modelstat.records import Trace

ENOUGH = 0.5
"""Share of the model's ops that must have kernels for a profile to be taken as one of the whole model."""
LISTED = 20
"""Steps that a note names."""


class Overlay(msgspec.Struct, frozen=True, kw_only=True):
    """A profile on a model's roof.

    ``points`` are in the order of the model; ``kernels`` are those that the trace does not know, by name; ``uncovered`` ops that no
    kernel covers, with their predicted time. ``op_share`` is the share of the model's ops that have kernels, ``time_share`` that of
    the measured time in kernels that have ops. ``mean`` is that of the complete steps, over their matched ops; ``total`` the whole model
    over the points and all other kernels, or these alone where too few of its ops have kernels.
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
    mean: MeasuredPoint | None
    total: MeasuredPoint
    op_share: float
    time_share: float | None
    notes: tuple[str, ...]


def overlay(trace: Trace, costs: Sequence[Cost], roofline: Roofline, prediction: Prediction, profile: Profile) -> Overlay:
    """Lay a profile on a model's roof, all of one GPU."""
    matching = match(trace, costs, profile)
    sides = _Sides(trace, costs, roofline, prediction)
    steps = step_points(matching, sides.ours)
    complete = {step.step for step in steps if step.complete}
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
        mean=mean_point(steps),
        total=sides.total(points, kernels, both, ours=_is_of_model(matching, share)),
        op_share=share,
        time_share=None if not both else (inside or 0.0) / both,
        notes=(*_notes(matching, share, steps), *profile.problems),
    )


def _is_of_model(matching: Matching, share: float) -> bool:
    """Whether the kernels may be the whole model's: else its FLOPs over their time would be the rate of nothing."""
    return share >= ENOUGH or (matching.how == "none" and not _names_something(matching))


def _names_something(matching: Matching) -> bool:
    return any(kernel.calls or kernel.path for kernel in matching.unknown)


def _notes(matching: Matching, share: float, steps: Sequence[StepPoint]) -> Iterable[str]:
    if matching.how == "none" and _names_something(matching):
        yield "none of the ops and ranges that the profile names is the model's: is this a profile of another model, input or batch?"
    elif matching.how == "none":
        yield "no kernel could be matched to an op: the profile names neither ops nor modules, so kernels are points of their own"
    elif share < ENOUGH:
        yield f"only {share:.0%} of the model's ops were found: is this a profile of another model, input or batch?"
    if matching.how == "call order":
        yield "kernels were matched to ops by call order alone: the profile names no ops (record with shapes or NVTX ranges to be sure)"
    left = [str(step.step) for step in steps if not step.complete]
    if left:
        more = f" and {len(left) - LISTED} more" if len(left) > LISTED else ""
        yield f"steps left out because they are not complete: {', '.join(left[:LISTED])}{more}"


class _Sides:
    """Our side of each point: counts, ideal and predicted time."""

    def __init__(self, trace: Trace, costs: Sequence[Cost], roofline: Roofline, prediction: Prediction) -> None:
        self.trace, self.costs, self.roofline, self.prediction = trace, costs, roofline, prediction

    def point(self, ops: tuple[int, ...], kernels: Sequence[MeasuredKernel] | None, steps: int) -> MeasuredPoint:
        """The point of some ops; without kernels what the model says of them alone."""
        measured = None if kernels is None else mean_of(kernels, steps)
        module = self.trace.modules[self._module(ops)]
        name = self.trace.ops[ops[0]].name if len(ops) == 1 else module.type
        return compared(name, module.path, ops, self.ours(ops), measured)

    def kernel(self, kernel: MeasuredKernel, steps: int) -> MeasuredPoint:
        """The point of a kernel that belongs to no op: its counters alone."""
        one = mean_of([kernel], steps)
        return MeasuredPoint(name=kernel.name, seconds=one.seconds, launches=kernel.launches / steps, **counted(one))

    def total(
        self, points: Sequence[MeasuredPoint], kernels: Sequence[MeasuredPoint], seconds: float | None, *, ours: bool
    ) -> MeasuredPoint:
        """The whole model against all kernels of a step; without ``ours`` the kernels alone."""
        everything = [*points, *kernels]
        summed = MeasuredKernel(
            name="total",
            seconds=seconds,
            flops=whole([each.counted_flops for each in everything]) if everything else None,
            dram_bytes=whole([each.counted_bytes for each in everything]) if everything else None,
            l2_bytes=whole([each.counted_l2_bytes for each in everything]) if everything else None,
            l1_bytes=whole([each.counted_l1_bytes for each in everything]) if everything else None,
        )
        launches = sum(each.launches for each in everything)
        if not ours:
            return MeasuredPoint(name="total", seconds=seconds, launches=launches, **counted(summed))
        made = compared("total", "", (), self.ours(range(len(self.trace.ops))), summed)
        return msgspec.structs.replace(made, launches=launches)

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

    def ours(self, ops: Iterable[int]) -> Ours:
        """Counts and times of some ops."""
        indices = tuple(ops)
        # A profiler's time of a kernel holds no wait for the host; the model's total time does.
        predicted = sum(self.prediction.ops[index].seconds for index in indices) if self.prediction.ops else None
        return Ours(
            sum(self.costs[index].flops for index in indices),
            sum(self.costs[index].bytes for index in indices),
            predicted,
            whole([self.roofline.ops[index].ideal_seconds for index in indices]),
        )
