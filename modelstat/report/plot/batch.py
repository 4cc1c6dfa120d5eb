"""Throughput and intensity against the batch, with the batch at which a model crosses its ridge point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from modelstat import units
from modelstat.report.chart.crossing import crossing
from modelstat.report.chart.palette import SERIES
from modelstat.report.chart.view import View
from modelstat.report.grid import printable
from modelstat.report.plot.theme import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def paint(figure: Figure, views: Sequence[View], look: Look) -> None:
    """Draw into an empty figure: a line per model, precision and GPU."""
    from matplotlib.ticker import LogLocator, NullFormatter

    above, below = figure.subplots(2, 1, sharex=True)
    series: dict[tuple[str, str, str], list[View]] = {}
    for view in views:
        if view.batch is not None:
            series.setdefault((view.model, view.precision, view.device.name), []).append(view)
    telling = [position for position in range(3) if len({key[position] for key in series}) > 1]
    curves: set[tuple[float | None, ...]] = set()
    for index, (key, several) in enumerate(series.items()):
        ordered = sorted(several, key=lambda view: view.batch or 0)
        label = ", ".join(key[position] for position in telling) or None
        curve = tuple(view.program.intensity for view in ordered)
        # A model has one intensity on every GPU: what is drawn already is not drawn over.
        _line(above, below, ordered, SERIES[index % len(SERIES)], label, look, intensity=curve not in curves)
        curves.add(curve)
    above.set(xscale="log", yscale="log", ylabel="predicted samples/s")
    below.set(xscale="log", yscale="log", xlabel="batch", ylabel="intensity (FLOP/B)")
    ticks = sorted({view.batch for view in views if view.batch is not None})
    below.set_xticks(ticks, [str(each) for each in ticks])
    below.minorticks_off()
    for axes in (above, below):
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
    if telling:
        above.legend(fontsize="small")
    view = views[0]
    constant = [part for position, part in enumerate((view.model, view.precision, view.device.name)) if position not in telling]
    above.set_title(printable(", ".join(constant)), loc="left", fontsize="medium")


def _line(above: Axes, below: Axes, views: Sequence[View], colour: str, label: str | None, look: Look, *, intensity: bool) -> None:
    batches = [view.batch or 0 for view in views]
    known = [view for view in views if view.program.throughput]
    xs = [view.batch or 0 for view in known]
    speeds = [view.program.throughput or 0.0 for view in known]
    above.plot(xs, speeds, marker="o", markersize=4, color=colour, label=label)
    slow = [speed * (view.program.seconds or 0.0) / (view.program.high_seconds or 1.0) for view, speed in zip(known, speeds, strict=True)]
    fast = [speed * (view.program.seconds or 0.0) / (view.program.low_seconds or 1.0) for view, speed in zip(known, speeds, strict=True)]
    above.fill_between(xs, slow, fast, color=colour, alpha=0.15, linewidth=0)
    intensities = [view.program.intensity for view in views]
    if intensity:
        below.plot(batches, [each or float("nan") for each in intensities], marker="o", markersize=4, color=look.ink)
    peak, bandwidth = views[0].program.peak, views[0].device.roofs[0].bandwidth
    ridge = peak / bandwidth if peak else None
    if ridge is None:
        return
    below.axhline(ridge, color=colour, linestyle="--", linewidth=0.8)
    below.annotate(f"ridge {units.ratio(ridge)}", (1.0, ridge), xycoords=("axes fraction", "data"), xytext=(-2, 2),
                   textcoords="offset points", ha="right", va="bottom", fontsize="x-small", color=colour)  # fmt: skip
    where = crossing(batches, intensities, ridge)
    if where is not None:
        for axes in (above, below):
            axes.axvline(where, color=colour, linestyle=":", linewidth=0.8)
        below.plot([where], [ridge], marker="*", markersize=11, color=colour, markeredgecolor=look.ink, markeredgewidth=0.4)
        below.annotate(f"compute-bound from batch {where:.3g}", (where, ridge), xytext=(6, -9), textcoords="offset points",
                       fontsize="x-small", color=look.ink, va="top")  # fmt: skip
