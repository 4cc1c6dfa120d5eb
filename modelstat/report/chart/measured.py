"""Measured points of a roofline: where each stands by the measured time, by the predicted one, and by the GPU's own counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from modelstat.report.chart.device import Device
from modelstat.report.chart.point import HEAVIEST, quotient
from modelstat.report.chart.window import Window, window
from modelstat.report.overlay import facts, stopwatch_lines

if TYPE_CHECKING:
    from modelstat.measure.measurement import Measurement
    from modelstat.measure.overlay import Overlay
    from modelstat.measure.point import MeasuredPoint

Kind = Literal["op", "kernel", "cut step", "step", "whole", "pass"]
"""What was measured: an op (or a module), a kernel that no op is known for, one step (cut: not a complete one), the mean of the complete
steps (without steps the whole model), and a pass by the stopwatch, with all waits for the host."""

STOPWATCH = "whole pass, by the stopwatch"
MOST_STEPS = 200
"""Steps that one chart shows."""
CACHED = 8
"""Of so many ops and kernels, the longest, a chart shows the points of the caches: all of them would cover one another."""
CROWDED = 0.75
"""Share of a chart's width that points may take: the rest is for the names of the ceilings."""


class Place(msgspec.Struct, frozen=True):
    """Work in a time (s): FLOPs, and bytes (B) at one level of the memory. Its intensity and rates follow."""

    flops: float
    bytes: float
    seconds: float | None

    @property
    def intensity(self) -> float | None:
        """FLOP/B; None where nothing moves."""
        return self.flops / self.bytes if self.bytes else None

    @property
    def rate(self) -> float | None:
        """FLOP/s."""
        return quotient(self.flops, self.seconds)

    @property
    def bandwidth(self) -> float | None:
        """B/s."""
        return quotient(self.bytes, self.seconds)


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """One measured thing.

    ``measured`` and ``predicted`` are our counts over the one and the other time; ``counted`` the FLOPs and DRAM bytes of the GPU's
    counters over the measured time, ``l2`` and ``l1`` the same FLOPs with the bytes of those caches. None: unknown.

    ``error`` is predicted / measured - 1, ``roof_share`` the ideal over the measured time.
    """

    kind: Kind
    name: str
    path: str = ""
    launches: float = 0
    seconds: float | None
    error: float | None = None
    roof_share: float | None = None
    measured: Place | None = None
    predicted: Place | None = None
    counted: Place | None = None
    l2: Place | None = None
    l1: Place | None = None

    @property
    def places(self) -> tuple[Place, ...]:
        """All places that are known."""
        return tuple(each for each in (self.measured, self.predicted, self.counted, self.l2, self.l1) if each is not None)

    @property
    def weight(self) -> float:
        """The time (s) that ranks it among others."""
        return self.seconds or 0.0


class Measured(msgspec.Struct, frozen=True):
    """What was measured on one view's GPU.

    ``source`` says where it comes from; ``marks`` are ops and kernels from the longest on, then the steps, the whole, and the pass.
    ``left_out`` counts the ops and kernels that are not shown, ``notes`` are sentences about the profile: how much of it was matched, and
    what is on one side only, with its time.
    """

    source: str
    marks: tuple[Mark, ...]
    left_out: int
    notes: tuple[str, ...]

    @property
    def places(self) -> tuple[Place, ...]:
        """All places of all marks."""
        return tuple(place for mark in self.marks for place in mark.places)


def measured(overlay: Overlay, measurement: Measurement | None = None, limit: int = HEAVIEST) -> Measured:
    """The points of a profile; ``measurement`` adds the pass that a stopwatch took. At most ``limit`` ops and kernels are shown."""
    ops = [_mark("op", point, point.name) for point in overlay.points]
    # A kernel of its own has a place only where counters say what it did.
    kernels = [_mark("kernel", point, point.name) for point in overlay.kernels if point.counted_flops is not None]
    heavy = sorted((*ops, *kernels), key=lambda mark: -mark.weight)
    several = len(overlay.steps) > 1
    steps = [_mark("step" if step.complete else "cut step", step.point, step.point.name) for step in overlay.steps] if several else []
    mean = overlay.mean if several else None
    whole = _mark("whole", overlay.total, "whole model") if mean is None else _mark("whole", mean, mean.name)
    heavy[CACHED:] = [msgspec.structs.replace(mark, l2=None, l1=None) for mark in heavy[CACHED:]]
    marks = [*heavy[:limit], *_spread(steps), whole, *([] if measurement is None else [_pass(overlay, measurement)])]
    source = f"{overlay.file} ({overlay.format})"
    told = [f"{label}: {text}" for label, text in (*(stopwatch_lines(measurement) if measurement else ()), *facts(overlay))]
    return Measured(source, tuple(marks), max(0, len(heavy) - limit), (*told, *_remarks(marks, steps), *overlay.notes))


def _mark(kind: Kind, point: MeasuredPoint, name: str) -> Mark:
    def counted(size: float | None) -> Place | None:
        return None if point.counted_flops is None or size is None else Place(point.counted_flops, size, point.seconds)

    ours = point.flops is not None and point.bytes is not None
    return Mark(
        kind=kind,
        name=name,
        path=point.path,
        launches=point.launches,
        seconds=point.seconds,
        error=point.error,
        roof_share=point.roof_share,
        measured=Place(point.flops or 0, point.bytes or 0, point.seconds) if ours else None,
        predicted=Place(point.flops or 0, point.bytes or 0, point.predicted_seconds) if ours and point.predicted_seconds else None,
        counted=counted(point.counted_bytes),
        l2=counted(point.counted_l2_bytes),
        l1=counted(point.counted_l1_bytes),
    )


def _pass(overlay: Overlay, found: Measurement) -> Mark:
    flops, moved, seconds = overlay.total.flops, overlay.total.bytes, found.timing.median
    if flops is None or moved is None:
        return Mark(kind="pass", name=STOPWATCH, seconds=seconds, error=found.error)
    ideal = overlay.total.ideal_seconds
    return Mark(
        kind="pass",
        name=STOPWATCH,
        seconds=seconds,
        error=found.error,
        roof_share=None if ideal is None else ideal / seconds,
        measured=Place(flops, moved, seconds),
        predicted=Place(flops, moved, found.predicted_seconds) if found.predicted_seconds else None,
    )


def _spread(steps: Sequence[Mark]) -> Sequence[Mark]:
    """At most MOST_STEPS of them, evenly spread, the first and the last among them."""
    if len(steps) <= MOST_STEPS:
        return steps
    return [steps[round(place * (len(steps) - 1) / (MOST_STEPS - 1))] for place in range(MOST_STEPS)]


def _remarks(marks: Sequence[Mark], steps: Sequence[Mark]) -> list[str]:
    found: list[str] = []
    levels = [level.upper() for level in ("l2", "l1") if any(getattr(mark, level) for mark in marks)]
    if levels:
        no_roof = "; no source states the bandwidth of L2, so it has no roof" if "L2" in levels else ""
        found.append(
            f"{' and '.join(levels)}: the counted FLOPs over the bytes of that cache, of the {CACHED} longest and the whole{no_roof}"
        )
    without = [mark for mark in marks if mark.kind == "op" and mark.measured and not mark.measured.seconds]
    if without:
        found.append(f"{len(without)} ops have counters but no measured time, so they have no place")
    if len(steps) > MOST_STEPS:
        found.append(f"{MOST_STEPS} of {len(steps)} steps are shown")
    return found


def measured_window(device: Device, found: Measured, crowded: float = CROWDED) -> Window:
    """The part of the plane that holds all places in its left part, so that the names of the ceilings have room on their right."""
    frame = window([device], found.places)
    furthest = max((place.intensity for place in found.places if place.intensity), default=frame.low)
    return msgspec.structs.replace(frame, high=max(frame.high, frame.low * (furthest / frame.low) ** (1 / crowded)))


def mark_name(mark: Mark) -> str:
    """What a chart calls it: its path where it has one."""
    return mark.path or mark.name
