"""Everything that one chart or page shows of one model, at one batch and precision, on one GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from modelstat.errors import UsageError
from modelstat.report.caption import inputs_text
from modelstat.report.chart.device import Device, device
from modelstat.report.chart.measured import Measured
from modelstat.report.chart.memory import Curve, curve
from modelstat.report.chart.point import HEAVIEST, Point, heaviest, layer_points, op_points
from modelstat.report.chart.program import Program, program
from modelstat.report.chart.transfer import transfers
from modelstat.report.chart.tree import Node, nodes
from modelstat.report.prediction import below_ideal

if TYPE_CHECKING:
    from modelstat.analysis import Analysis
    from modelstat.report.timing import GpuEntry


class View(msgspec.Struct, frozen=True, kw_only=True):
    """One model on one GPU. ``label`` tells it from the others; ``ops`` and ``layers`` are the heaviest, and the rest is summed up."""

    label: str
    model: str
    inputs: str
    batch: int | None
    precision: str
    execution: str
    device: Device
    program: Program
    ops: tuple[Point, ...]
    left_out_ops: int
    left_out_share: float
    layers: tuple[Point, ...]
    transfers: tuple[Point, ...]
    nodes: tuple[Node, ...]
    memory: Curve
    notes: tuple[str, ...]
    measured: Measured | None = None


def views(
    analyses: Sequence[Analysis], limit: int = HEAVIEST, names: Sequence[str] = (), measured: Measured | None = None
) -> tuple[View, ...]:
    """One view per analysis and GPU, in that order; each shows at most ``limit`` ops.

    ``names``, one per analysis, are what the labels call them; by default the models' own. ``measured`` is what was measured on the first
    view's GPU.

    Raises UsageError where no analysis has a GPU: a roofline is one of a GPU.
    """
    called = names or [analysis.trace.model for analysis in analyses]
    several = [
        (analysis, index, name) for analysis, name in zip(analyses, called, strict=True) for index in range(len(analysis.rooflines))
    ]
    if not several:
        raise UsageError("a roofline needs a GPU: add --gpu NAME (in Python gpu=...), such as v100")
    labels = _labels(several)
    found = [_view(analysis, index, label, limit) for (analysis, index, _), label in zip(several, labels, strict=True)]
    return (msgspec.structs.replace(found[0], measured=measured), *found[1:])


def _view(analysis: Analysis, index: int, label: str, limit: int) -> View:
    trace, costs, roofline, prediction = analysis.trace, analysis.costs, analysis.rooflines[index], analysis.predictions[index]
    every = op_points(trace, costs, roofline, prediction)
    shown = heaviest(every, limit)
    entry = analysis.gpus[index]
    return View(
        label=label,
        model=trace.model,
        inputs=inputs_text(analysis.document),
        batch=trace.batch,
        precision=trace.precision,
        execution=prediction.execution.text,
        device=device(trace, costs, roofline),
        program=program(trace, costs, roofline, prediction),
        ops=shown,
        left_out_ops=len(every) - len(shown),
        left_out_share=max(0.0, sum(each.share or 0.0 for each in every) - sum(each.share or 0.0 for each in shown)),
        layers=heaviest(layer_points(trace, costs, roofline, prediction), limit),
        transfers=transfers(trace, roofline.gpu),
        nodes=nodes(trace, costs, roofline, prediction),
        memory=curve(trace),
        notes=tuple(dict.fromkeys((*entry.notes, *_prediction_notes(entry), *analysis.warnings))),
    )


def _prediction_notes(entry: GpuEntry) -> list[str]:
    notes = [note for note in (entry.correction, below_ideal(entry)) if note]
    return notes + ([f"the interval is wide because: {'; '.join(entry.prediction_notes)}"] if entry.prediction_notes else [])


def whole_point(view: View) -> Point:
    """The whole model as a point among others."""
    whole = view.program
    return Point(
        path="", name=view.model, family="", dtype=view.precision, inputs=(), outputs=(), ops=whole.ops, flops=whole.flops,
        bytes=whole.bytes, intensity=whole.intensity, ideal_seconds=whole.ideal_seconds, seconds=whole.seconds,
        wait_seconds=whole.idle_seconds or 0.0, rate=whole.rate, bandwidth=whole.bandwidth, peak_share=whole.peak_share,
        bandwidth_share=whole.bandwidth_share, share=1.0, bound=whole.bound,
    )  # fmt: skip


def _labels(several: Sequence[tuple[Analysis, int, str]]) -> list[str]:
    """What tells the views apart: name, batch, precision and GPU, each only where it differs; everything where there is one view."""
    parts = [
        (
            name,
            "batch as given" if analysis.trace.batch is None else f"batch {analysis.trace.batch}",
            analysis.trace.precision,
            analysis.rooflines[index].gpu.name,
        )
        for analysis, index, name in several
    ]
    telling = [position for position in range(4) if len({part[position] for part in parts}) > 1] or list(range(4))
    labels = [", ".join(part[position] for position in telling) for part in parts]
    # Two of one name are told apart by their place.
    return [f"{label} ({number})" if labels.count(label) > 1 else label for number, label in enumerate(labels, 1)]
