"""The roofline for a paper: the layers of one model on one GPU, or whole models under the roofs of several."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from typing import TYPE_CHECKING, Any

from modelstat import units
from modelstat.report.chart.device import Ceiling, Device
from modelstat.report.chart.palette import BOUND_COLOURS, SERIES
from modelstat.report.chart.point import Point
from modelstat.report.chart.view import View, whole_point
from modelstat.report.chart.window import Window, window
from modelstat.report.grid import printable
from modelstat.report.plot.names import draw_names
from modelstat.report.plot.theme import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Named = tuple[str, tuple[float, float]]
MARKERS = {"compute": "o", "memory": "D", "overhead": "^", "none": "x"}
NAMED = 5
"""How many of the heaviest layers are named in the chart, where there is room."""
LINE = 150
"""Places along a line, from one side of the chart to the other."""
LARGEST, WIDTH = 260.0, 7.5
"""Area of the point of the heaviest layer (square points) in a figure of this width (inches)."""


def paint(figure: Figure, views: Sequence[View], look: Look) -> None:
    """Draw into an empty figure."""
    axes = figure.add_subplot()
    boards = list({view.device.key: view.device for view in views}.values())
    points = [*(views[0].layers if len(views) == 1 else ()), *(whole_point(view) for view in views)]
    frame = window(boards, points)
    draw_plane(axes, frame)
    colours = {board.key: look.ink if len(boards) == 1 else SERIES[index % len(SERIES)] for index, board in enumerate(boards)}
    for board in boards:
        draw_roofs(axes, frame, board, colours[board.key], named=len(boards) == 1)
    layers = _layers(axes, frame, views[0], look, LARGEST * (figure.get_figwidth() / WIDTH) ** 2) if len(views) == 1 else []
    programs = _programs(axes, frame, views, colours, look)
    if axes.get_legend_handles_labels()[0]:
        for handle in axes.legend(loc="lower right", fontsize="small").legend_handles:
            handle.set_sizes([30.0])  # type: ignore[union-attr]
    view = views[0]
    batch = "batch as given" if view.batch is None else f"batch {view.batch}"
    single = f"{view.model}, {batch}, {view.precision}"
    title = f"{printable(single)}\n{printable(view.device.name)}" if len(views) == 1 else "whole models under their roofs"
    axes.set_title(title, loc="left", fontsize="medium")
    places = [place for _, place in (*layers, *programs)]
    lines = [place for board in boards for place in _along_roofs(frame, board)]
    draw_names(figure, axes, _telling(frame, layers) if len(views) == 1 else programs, [*places, *lines], look.ink)


def draw_plane(axes: Axes, frame: Window) -> None:
    """The two logarithmic axes."""
    axes.set(xscale="log", yscale="log", xlim=(frame.low, frame.high), ylim=(frame.bottom, frame.top))
    axes.set(xlabel="arithmetic intensity (FLOP/B)", ylabel="performance (FLOP/s)")
    axes.yaxis.set_major_formatter(lambda value, _: units.tick(value))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")


def draw_roofs(axes: Axes, frame: Window, board: Device, colour: str, *, named: bool) -> None:
    """The main memory up to the highest ceiling that is on, and these ceilings; ``named`` writes what they are beside them."""
    ceilings, top = _shown(frame, board)
    bandwidth = board.roofs[0].bandwidth
    ridge = top / bandwidth
    axes.plot([frame.low, ridge], [frame.low * bandwidth, top], color=colour, linewidth=1.2)
    for place, ceiling in enumerate(sorted(ceilings, key=lambda each: -each.flops)):
        axes.plot([ceiling.ridge, frame.high], [ceiling.flops] * 2, color=colour, linewidth=1.2 if place == 0 else 0.8,
                  linestyle="-" if place == 0 else "--")  # fmt: skip
        text = f"{ceiling.name if named else f'{board.name} {ceiling.precision}'} {units.flops_rate(ceiling.flops)}"
        _label(axes, text, (frame.high, ceiling.flops), (-2, 2), colour, ha="right", va="bottom")
    if named:
        start = (frame.low * ridge) ** 0.5
        text = f"{board.roofs[0].name} {units.bandwidth(bandwidth)}"
        _label(axes, text, (start, start * bandwidth), (-4, 2), colour, ha="right", va="bottom")


def _shown(frame: Window, board: Device) -> tuple[list[Ceiling], float]:
    """The ceilings that are drawn, and the height (FLOP/s) at which the main memory's line ends."""
    ceilings = [each for each in board.ceilings if each.on] or list(board.ceilings[:1])
    return ceilings, max((each.flops for each in ceilings), default=frame.top)


def _layers(axes: Axes, frame: Window, view: View, look: Look, largest: float) -> list[Named]:
    """Draws them, and returns their names and places, the heaviest first."""
    most = max((point.seconds or 0.0 for point in view.layers), default=0.0)
    placed = [(point, place) for point in view.layers if (place := frame.position(point.intensity, point.rate, point.bandwidth))]
    for bound, marker in MARKERS.items():
        mine = [(point, place) for point, place in placed if (point.bound or "none") == bound]
        if mine:
            sizes = [max(5.0, largest * (point.seconds or 0.0) / most) if most else 5.0 for point, _ in mine]
            label = f"{bound}-bound" if bound != "none" else "no limit known"
            outline: dict[str, Any] = {} if marker == "x" else {"edgecolors": look.ink, "linewidths": 0.4}
            xs, ys = zip(*(place for _, place in mine), strict=True)
            axes.scatter(xs, ys, s=sizes, marker=marker, color=BOUND_COLOURS[bound], alpha=0.75, label=label, zorder=3, **outline)
    return [(_name(point), place) for point, place in sorted(placed, key=lambda pair: -(pair[0].seconds or 0.0))]


def _telling(frame: Window, layers: Sequence[Named]) -> list[Named]:
    """The heaviest layers, of those on one spot the first."""
    found: list[Named] = []
    for name, place in layers:
        if len(found) < NAMED and all(_apart(frame, place, other) for _, other in found):
            found.append((name, place))
    return found


def _apart(frame: Window, one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two points are on different spots: shares of the chart's width and height."""
    across = abs(log10(one[0] / other[0])) / log10(frame.high / frame.low)
    return across > 0.08 or abs(log10(one[1] / other[1])) / log10(frame.top / frame.bottom) > 0.04


def _along_roofs(frame: Window, board: Device) -> list[tuple[float, float]]:
    """Places on a board's lines, so close that no name fits between."""
    bandwidth = board.roofs[0].bandwidth
    shown, top = _shown(frame, board)
    xs = [frame.low * (frame.high / frame.low) ** (step / LINE) for step in range(LINE + 1)]
    sloped = [(x, x * bandwidth) for x in xs if x * bandwidth <= top]
    return sloped + [(x, each.flops) for each in shown for x in xs if x * bandwidth >= each.flops]


def _programs(axes: Axes, frame: Window, views: Sequence[View], colours: dict[str, str], look: Look) -> list[Named]:
    """Draws whole models, and returns their labels and places."""
    placed: list[Named] = []
    for view in views:
        whole = view.program
        place = frame.position(whole.intensity, whole.rate, whole.bandwidth)
        if place:
            axes.scatter(*place, s=110, marker="*", color=colours[view.device.key], edgecolors=look.ink, linewidths=0.4, zorder=4,
                         label="whole model" if len(views) == 1 else None)  # fmt: skip
            placed.append((printable(view.label), place))
    return placed


def _name(point: Point) -> str:
    return printable(point.path or point.name)


def _label(axes: Axes, text: str, place: tuple[float, float], offset: tuple[int, int], colour: str, *, ha: str, va: str) -> None:
    axes.annotate(
        text, place, xytext=offset, textcoords="offset points", fontsize="x-small", color=colour, ha=ha, va=va,
        annotation_clip=True, zorder=5,
    )  # fmt: skip
