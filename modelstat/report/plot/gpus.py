"""One model over many GPUs: predicted time with its interval, and the roofline's ideal time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from modelstat import units
from modelstat.report.chart.palette import BLUE, VERMILLION
from modelstat.report.chart.view import View
from modelstat.report.grid import printable
from modelstat.report.plot.theme import Look

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def paint(figure: Figure, views: Sequence[View], look: Look) -> None:
    """Draw into an empty figure: a bar per GPU, the fastest on top; one without a time says why."""
    axes = figure.add_subplot()
    figure.set_figheight(max(figure.get_figheight() * 0.5, 0.9 + 0.28 * len(views)))
    ordered = sorted(views, key=lambda view: (view.program.seconds is None, view.program.seconds or 0.0))
    places = range(len(ordered))
    for place, view in zip(places, ordered, strict=True):
        whole = view.program
        if whole.seconds is None:
            axes.annotate("no peak for this precision", (0, place), xytext=(3, 0), textcoords="offset points", va="center",
                          fontsize="x-small", color=look.ink)  # fmt: skip
            continue
        high = whole.high_seconds if whole.high_seconds is not None else whole.seconds
        low = whole.low_seconds if whole.low_seconds is not None else whole.seconds
        axes.barh(place, whole.seconds * 1e3, color=BLUE, alpha=0.8, height=0.62, label="predicted, 90 % interval" if place == 0 else None)
        axes.plot([low * 1e3, high * 1e3], [place, place], color=look.ink, linewidth=1.0)
        if whole.ideal_seconds is not None:
            axes.plot([whole.ideal_seconds * 1e3], [place], marker="|", markersize=11, markeredgewidth=2, color=VERMILLION, linestyle="",
                      label="ideal (roofline)" if place == 0 else None)  # fmt: skip
        axes.annotate(units.seconds(whole.seconds), (high * 1e3, place), xytext=(4, 0), textcoords="offset points", va="center",
                      fontsize="x-small", color=look.ink)  # fmt: skip
    axes.set_yticks(list(places), [printable(view.device.name) for view in ordered])
    axes.set_ylim(len(ordered) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.margins(x=0.12)
    axes.set_xlim(left=0)
    axes.set_xlabel("time of one pass (ms)")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper right", fontsize="small")
    view = ordered[0]
    batch = "batch as given" if view.batch is None else f"batch {view.batch}"
    axes.set_title(printable(f"{view.model}, {batch}, {view.precision}, {view.execution}"), loc="left", fontsize="medium")
