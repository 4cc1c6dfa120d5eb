"""Measured points on a roof: filled where the measured time puts an op, hollow where the predicted time does, with a line between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

import msgspec

from modelstat import units
from modelstat.report.chart.measured import CROWDED, Mark, Measured, Place, mark_name, measured_window
from modelstat.report.chart.palette import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION
from modelstat.report.chart.view import View
from modelstat.report.chart.window import Window
from modelstat.report.grid import printable
from modelstat.report.overlay import error_text
from modelstat.report.plot.names import draw_names
from modelstat.report.plot.roofline import WIDTH, draw_plane, draw_roofs
from modelstat.report.plot.theme import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

NAMED, NAMED_SMALL = 8, 3
"""How many of the longest ops are named, and in a figure of one column."""
LEGEND_LINE = 0.16
"""Height (inches) that a line of the legend adds to a figure of this WIDTH."""
NAME, TITLE = 32, 92
"""Characters of a name, and of a line of the title."""
SMALLEST = 0.12
"""Area of the least mark of an op, as a share of the largest."""

Spot = tuple[float, float]


class Series(msgspec.Struct, frozen=True):
    """One kind of mark of the legend: the field of a Mark that it shows, and how. The shapes differ, so that no colour is needed."""

    kinds: tuple[str, ...]
    field: str
    label: str
    marker: str
    colour: str | None
    """None: hollow, in the colour of the ink."""
    area: float = 130.0
    """Area of the mark (square points) in a figure of this WIDTH; of an op it shrinks with its time, down to SMALLEST of it."""


SERIES = (
    Series(("op",), "predicted", "predicted", "o", None),
    Series(("op",), "measured", "measured", "o", BLUE),
    Series(("op", "kernel"), "counted", "by counters", "s", VERMILLION, 60.0),
    Series(("op", "kernel"), "l2", "over L2 bytes (no roof known)", "<", SKY, 26.0),
    Series(("op", "kernel"), "l1", "over L1 bytes", ">", PURPLE, 26.0),
    Series(("whole",), "predicted", "{whole}, predicted", "*", None, 210.0),
    Series(("whole",), "measured", "{whole}, measured", "*", BLUE, 210.0),
    Series(("whole",), "counted", "{whole}, by counters", "*", VERMILLION, 210.0),
    Series(("whole",), "l2", "{whole}, over L2 bytes", "v", SKY, 60.0),
    Series(("whole",), "l1", "{whole}, over L1 bytes", "^", PURPLE, 60.0),
    Series(("cut step",), "measured", "step, not complete", "+", GREEN, 34.0),
    Series(("step",), "measured", "step", "x", GREEN, 34.0),
    Series(("step", "cut step"), "counted", "step, by counters", "1", VERMILLION, 44.0),
    Series(("pass",), "predicted", "whole pass, predicted", "P", None, 90.0),
    Series(("pass",), "measured", "whole pass, by the stopwatch", "P", ORANGE, 90.0),
)
"""What is drawn, the lowest first."""


def paint(figure: Figure, view: View, found: Measured, look: Look) -> None:
    """Draw into an empty figure."""
    axes = figure.add_subplot()
    small = figure.get_figwidth() < WIDTH
    frame = measured_window(view.device, found, 0.6 if small else CROWDED)
    draw_plane(axes, frame)
    draw_roofs(axes, frame, view.device, look.ink, named=True)
    if any(mark.l1 for mark in found.marks):
        _first_cache(axes, frame, view, look)
    scale = (figure.get_figwidth() / WIDTH) ** 2
    roofs = [place for line in axes.lines for place in _along(line)]
    for mark in found.marks:
        _lines(axes, frame, mark, look)
    spots = [spot for series in SERIES for spot in _series(axes, frame, found.marks, series, look, scale)]
    labels, columns = axes.get_legend_handles_labels()[1], 2 if small else 3
    if labels:
        lines = ceil(len(labels) / columns)
        figure.set_figheight(figure.get_figheight() + lines * LEGEND_LINE * figure.get_figwidth() / WIDTH)
        legend = figure.legend(loc="outside lower left", ncols=columns, fontsize="small")
        for handle in legend.legend_handles:
            handle.set_sizes([34.0 * max(scale, 0.5)])  # type: ignore[union-attr]
    batch = "batch as given" if view.batch is None else f"batch {view.batch}"
    title = (f"{view.model}, {batch}, {view.precision}", f"{view.device.name}, measured: {found.source}")
    axes.set_title("\n".join(_short(line, TITLE) for line in title), loc="left", fontsize="medium")
    longest = [(mark, spot) for mark in found.marks if mark.kind in ("op", "kernel") and (spot := _main(frame, mark))]
    names = [(_called(mark), spot) for mark, spot in longest[: NAMED_SMALL if small else NAMED]]
    draw_names(figure, axes, names, [*spots, *roofs], look.ink)


def _short(text: str, most: int) -> str:
    """A text of so many characters, its middle left out where it is longer."""
    plain = printable(text)
    return plain if len(plain) <= most else f"{plain[: most // 2 - 1]}…{plain[-(most - most // 2) :]}"


def _called(mark: Mark) -> str:
    """Its name with the prediction's error."""
    error = error_text(mark.error)
    return _short(mark_name(mark), NAME) + (f" {error}" if error else "")


def _spot(frame: Window, place: Place | None) -> Spot | None:
    return None if place is None else frame.position(place.intensity, place.rate, place.bandwidth)


def _main(frame: Window, mark: Mark) -> Spot | None:
    return _spot(frame, mark.measured) or _spot(frame, mark.counted)


def _lines(axes: Axes, frame: Window, mark: Mark, look: Look) -> None:
    """From the measured mark to the predicted one, and dotted to those of the counters."""
    main = _main(frame, mark)
    pairs = [(_spot(frame, mark.predicted), "-"), *((_spot(frame, each), ":") for each in (mark.counted, mark.l2, mark.l1))]
    for spot, style in pairs:
        if main and spot and spot != main:
            axes.plot([main[0], spot[0]], [main[1], spot[1]], color=look.faint, linewidth=0.8, linestyle=style, zorder=2)


def _series(axes: Axes, frame: Window, marks: Sequence[Mark], series: Series, look: Look, scale: float) -> Iterable[Spot]:
    """Draw one kind of mark; gives where they stand."""
    shown = [(mark, spot) for mark in marks if mark.kind in series.kinds and (spot := _spot(frame, getattr(mark, series.field)))]
    if not shown:
        return ()
    most = max(mark.weight for mark, _ in shown)
    by_time = "op" in series.kinds and series.field not in ("l2", "l1") and most > 0
    areas = [series.area * (max(SMALLEST, mark.weight / most) if by_time else 1.0) for mark, _ in shown]
    style: dict[str, Any] = {"facecolors": "none", "edgecolors": look.ink, "linewidths": 1.0}
    if series.colour and series.marker in "+x1":
        style = {"color": series.colour, "linewidths": 1.4}
    elif series.colour:
        style = {"color": series.colour, "edgecolors": look.ink, "linewidths": 0.5, "alpha": 0.85}
    whole = next((mark.name for mark, _ in shown if mark.kind == "whole"), "")
    xs, ys = zip(*(spot for _, spot in shown), strict=True)
    sizes = [area * scale for area in areas]
    label, order = series.label.format(whole=printable(whole)), 3 + SERIES.index(series) / 100
    axes.scatter(xs, ys, s=sizes, marker=series.marker, label=label, zorder=order, **style)
    return [spot for _, spot in shown]


def _along(line: Line2D) -> Iterable[Spot]:
    """Places along a straight line of two ends, on logarithmic axes."""
    (x0, x1), (y0, y1) = (tuple(map(float, each)) for each in (line.get_xdata(), line.get_ydata()))  # type: ignore[arg-type]
    return [(x0 * (x1 / x0) ** share, y0 * (y1 / y0) ** share) for share in (step / 100 for step in range(101))]


def _first_cache(axes: Axes, frame: Window, view: View, look: Look) -> None:
    """The roof of L1, where the GPU's is known."""
    for roof in view.device.roofs[1:]:
        top = max((each.flops for each in view.device.ceilings if each.on), default=frame.top)
        low = max(frame.low, frame.bottom / roof.bandwidth)
        end = top / roof.bandwidth
        if end > low:
            axes.plot([low, end], [low * roof.bandwidth, top], color=look.faint, linewidth=1.0, linestyle="--")
            axes.annotate(f"{roof.name} {units.bandwidth(roof.bandwidth)}", (end, top), xytext=(0, 3), textcoords="offset points",
                          fontsize="x-small", color=look.faint, ha="left", va="bottom")  # fmt: skip
