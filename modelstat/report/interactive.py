"""The roofline as a plotly figure, for a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from modelstat import units
from modelstat.errors import MissingExtraError
from modelstat.report.chart.palette import BOUND_COLOURS, BOUND_SYMBOLS
from modelstat.report.chart.point import Point
from modelstat.report.chart.view import View, whole_point
from modelstat.report.chart.window import window
from modelstat.report.grid import printable, shape_text

if TYPE_CHECKING:
    import plotly.graph_objects as go


def figure(view: View, *, layers: bool = False) -> go.Figure:
    """One view as a figure: its ops (or ``layers``) under the roofs of its GPU. Raises MissingExtraError without plotly."""
    try:
        import plotly.graph_objects as go
    except ImportError as error:
        raise MissingExtraError("plotly", "html", "plot()") from error

    points = view.layers if layers else view.ops
    frame = window([view.device], [*points, whole_point(view)])
    drawn = go.Figure()
    _roofs(drawn, view, frame.low, frame.high)
    most = max((point.seconds or 0.0 for point in points), default=0.0) or 1.0
    placed = [(point, place) for point in points if (place := frame.position(point.intensity, point.rate, point.bandwidth))]
    for bound, colour in BOUND_COLOURS.items():
        mine = [(point, place) for point, place in placed if (point.bound or "none") == bound]
        if mine:
            drawn.add_scatter(
                x=[place[0] for _, place in mine],
                y=[place[1] for _, place in mine],
                mode="markers",
                name=f"{bound}-bound" if bound != "none" else "no limit known",
                marker={
                    "color": colour,
                    "symbol": BOUND_SYMBOLS[bound],
                    "opacity": 0.8,
                    "size": [6 + 20 * ((point.seconds or 0.0) / most) ** 0.5 for point, _ in mine],
                    "line": {"width": 0.6, "color": "#444"},
                },
                hovertext=[_hover(point) for point, _ in mine],
                hoverinfo="text",
            )
    whole = frame.position(view.program.intensity, view.program.rate, view.program.bandwidth)
    if whole:
        drawn.add_scatter(x=[whole[0]], y=[whole[1]], mode="markers", name="whole model", hovertext=[plain(view.label)], hoverinfo="text",
                          marker={"symbol": "star", "size": 15, "color": "#222", "line": {"width": 1, "color": "#fff"}})  # fmt: skip
    axis: dict[str, Any] = {"type": "log", "dtick": 1}
    drawn.update_layout(
        title=plain(view.label),
        template="plotly_white",
        hovermode="closest",
        height=520,
        xaxis={**axis, "title": "arithmetic intensity (FLOP/B)"},
        yaxis={**axis, "title": "performance (FLOP/s)", "exponentformat": "SI"},
    )
    return drawn


def plain(text: str) -> str:
    """Text that plotly shows as it is: it reads some tags in its labels.

    >>> plain("<b>")
    '&lt;b&gt;'
    """
    return escape(printable(text), quote=False)


def _roofs(drawn: go.Figure, view: View, low: float, high: float) -> None:
    """The main memory up to the highest ceiling that the model runs on, and each of these ceilings."""
    roof = view.device.roofs[0]
    ceilings = [each for each in view.device.ceilings if each.on] or list(view.device.ceilings[:1])
    end = max((each.ridge for each in ceilings), default=high)
    style: dict[str, Any] = {"mode": "lines", "hoverinfo": "name", "showlegend": False}
    name = plain(f"{roof.name} {units.bandwidth(roof.bandwidth)}")
    drawn.add_scatter(x=[low, end], y=[low * roof.bandwidth, end * roof.bandwidth], name=name, line={"color": "#777"}, **style)
    for ceiling in ceilings:
        name = plain(f"{ceiling.name} {units.flops_rate(ceiling.flops)}")
        line = {"color": "#777", "dash": "solid" if ceiling.ridge == end else "dash"}
        drawn.add_scatter(x=[ceiling.ridge, high], y=[ceiling.flops] * 2, name=name, line=line, **style)


def _hover(point: Point) -> str:
    """What a point says, a line each."""
    told = [
        f"<b>{plain(point.path or 'root')}</b>",
        plain(f"{point.name} ({point.family}, {point.dtype})"),
        f"{shape_text(point.inputs)} to {shape_text(point.outputs)}",
        f"{units.count(point.flops)} FLOPs, {units.bytes_(point.bytes)}",
    ]
    if point.intensity is not None:
        told.append(f"{units.ratio(point.intensity)} FLOP/B")
    if point.ideal_seconds is not None and point.seconds is not None:
        told.append(f"ideal {units.seconds(point.ideal_seconds)}, predicted {units.seconds(point.seconds)}")
    if point.peak_share is not None and point.bandwidth_share is not None:
        told.append(f"{units.percent(point.peak_share)} of peak FLOP/s, {units.percent(point.bandwidth_share)} of peak bandwidth")
    told.append(f"bound by {point.bound or 'nothing that is known'}")
    return "<br>".join([*told, *([f"below ideal: {point.below_ideal}"] if point.below_ideal else [])])
