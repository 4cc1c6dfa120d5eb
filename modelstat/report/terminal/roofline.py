"""The roofline in a terminal: roofs, the heaviest layers as letters, and a key below."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import TYPE_CHECKING, TextIO

import msgspec

from modelstat import units
from modelstat.report.chart.device import Device
from modelstat.report.chart.view import View, whole_point
from modelstat.report.chart.window import Window, window
from modelstat.report.grid import printable
from modelstat.report.table import STYLES
from modelstat.report.terminal.canvas import Canvas

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

WIDTH = 80
ROWS = 20
MARGIN = 8
"""Columns of the labels on the vertical axis."""
NAMED = 10
"""How many of the heaviest points get a letter and a line of the key."""


class Mark(msgspec.Struct, frozen=True):
    """One point to draw: where it stands, what limits it, and the cells of its line in the key."""

    intensity: float | None
    rate: float | None
    bandwidth: float | None
    seconds: float | None
    bound: str | None
    name: str
    share: float | None
    roof_share: float | None


def draw(views: Sequence[View], file: TextIO, *, width: int | None = None, ops: bool = False) -> None:
    """Write the chart: the layers (or the ``ops``) of one view, the whole models of several; of a view with measurements those.

    At least 60 columns, by default 80.
    """
    from rich.console import Console

    width = max(60, width or WIDTH)
    console = Console(file=file, width=width, highlight=False)
    if views[0].measured is not None:
        from modelstat.report.terminal.measured import display as shown

        parts = shown(views[0], views[0].measured, width=width, fine=_fine(file))
    else:
        parts = display(views, width=width, ops=ops, fine=_fine(file))
    for part in parts:
        console.print(part)


def display(views: Sequence[View], *, width: int = WIDTH, ops: bool = False, fine: bool = True) -> list[Text | Table]:
    """The chart and its key as rich renderables."""
    from rich.text import Text

    single = len(views) == 1
    marks = _layer_marks(views[0], ops=ops) if single else [_program_mark(view) for view in views]
    boards = list({view.device.key: view.device for view in views}.values())
    points = (views[0].ops if ops else views[0].layers) if single else tuple(whole_point(view) for view in views)
    frame = window(boards, points)
    order = sorted(range(len(marks)), key=lambda index: -(marks[index].seconds or 0.0)) if single else list(range(len(marks)))
    letters = {index: chr(ord("A") + place) for place, index in enumerate(order[: NAMED if single else 26])}
    canvas = Canvas(width - MARGIN - 1, ROWS, fine=fine)
    for board in boards:
        draw_roofs(canvas, frame, board, named=single)
    for index in reversed(order):
        mark = marks[index]
        place = frame.position(mark.intensity, mark.rate, mark.bandwidth)
        if place:
            canvas.mark(*share_of(frame, *place), letters.get(index, "•" if fine else "o"), STYLES.get(mark.bound or "", "") + " bold")
    what = "ops" if ops else "layers"
    title = f"Roofline of {printable(views[0].model)} on {printable(boards[0].name)}: {what}" if single else "Rooflines: whole models"
    head = Text(title, style="bold")
    key = _key([(letter, marks[index]) for index, letter in letters.items()], single)
    missing = [f"{board.name}: {reason}" for board in boards for reason in board.left_out if reason.startswith("ceiling")]
    if single:
        head.append(f"\n{limits(boards[0])}", style="not bold")
    return [head, *framed(canvas, frame, fine=fine), key, *(Text(printable(text)) for text in missing)]


def limits(board: Device) -> str:
    """The lines of one board: ``HBM2 900 GB/s; fp32 CUDA cores 14.0 TFLOP/s``."""
    ceilings = (f"{each.name} {units.flops_rate(each.flops)}" for each in board.ceilings if each.on)
    return "; ".join((f"{board.roofs[0].name} {units.bandwidth(board.roofs[0].bandwidth)}", *ceilings))


def share_of(frame: Window, x: float, y: float) -> tuple[float, float]:
    """A place in the plane as shares of the chart's width and height."""
    across = log10(x / frame.low) / log10(frame.high / frame.low)
    return across, log10(y / frame.bottom) / log10(frame.top / frame.bottom)


def draw_roofs(canvas: Canvas, frame: Window, board: Device, *, named: bool) -> None:
    """The main memory up to each ceiling that the model runs on (of several boards the highest); names stand where there is room."""
    ceilings = ([each for each in board.ceilings if each.on] or list(board.ceilings[:1]))[: None if named else 1]
    bandwidth = board.roofs[0].bandwidth
    for ceiling in ceilings:
        ridge = share_of(frame, max(ceiling.ridge, frame.low), min(ceiling.flops, frame.high * bandwidth))
        canvas.line(*share_of(frame, frame.low, frame.low * bandwidth), *ridge)
        canvas.line(*ridge, *share_of(frame, frame.high, ceiling.flops))
    if not ceilings:
        canvas.line(*share_of(frame, frame.low, frame.low * bandwidth), *share_of(frame, frame.high, frame.high * bandwidth))
    for ceiling in ceilings[:1]:  # the heading names the others: below the highest line, points would cover them
        text = f"{ceiling.name if named else printable(board.name)} {units.flops_rate(ceiling.flops)}"
        row = canvas.row_of(share_of(frame, frame.high, ceiling.flops)[1])
        canvas.text(row - 1, canvas.columns - len(text), text)
    if named:
        text = f"{board.roofs[0].name} {units.bandwidth(bandwidth)}"
        middle = (frame.low * (ceilings[0].ridge if ceilings else frame.high)) ** 0.5
        x, y = share_of(frame, middle, middle * bandwidth)
        canvas.text(canvas.row_of(y) - 1, max(0, canvas.column_of(x) - len(text) - 2), text)


def framed(canvas: Canvas, frame: Window, *, fine: bool) -> list[Text]:
    """The canvas between its axes, with a label at each power of ten (every second one where they are many)."""
    from rich.text import Text

    labels = dict.fromkeys(range(canvas.rows), "")
    for exponent in _decades(frame.bottom, frame.top, canvas.rows // 3):
        _, y = share_of(frame, frame.low, 10.0**exponent)
        labels[canvas.row_of(y)] = units.tick(10.0**exponent)
    labels[0] = "FLOP/s"
    bar, corner, dash = ("┤", "└", "─") if fine else ("|", "+", "-")
    rows = []
    for row, content in enumerate(canvas.line_texts()):
        line = Text(f"{labels[row]:>{MARGIN - 1}} {bar}" if labels[row] else f"{'':>{MARGIN}}{'│' if fine else '|'}")
        line.append_text(content)
        rows.append(line)
    axis = [" "] * canvas.columns
    axis[-len("FLOP/B") :] = "FLOP/B"
    for exponent in _decades(frame.low, frame.high, canvas.columns // 10):
        text = f"{10.0**exponent:g}"
        start = canvas.column_of(share_of(frame, 10.0**exponent, frame.bottom)[0])
        if start + len(text) < canvas.columns - len("FLOP/B"):
            axis[start : start + len(text)] = text
    return [*rows, Text(f"{'':>{MARGIN}}{corner}{dash * canvas.columns}"), Text(f"{'':>{MARGIN + 1}}{''.join(axis).rstrip()}")]


def _decades(low: float, high: float, most: int) -> list[int]:
    """Exponents of the powers of ten between two numbers, thinned out to at most ``most``."""
    every = list(range(ceil(log10(low)), floor(log10(high)) + 1))
    return every[:: max(1, -(-len(every) // max(most, 1)))]


def _key(named: Sequence[tuple[str, Mark]], single: bool) -> Table:
    """A line for each letter."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, collapse_padding=True, header_style="bold")
    table.add_column("", no_wrap=True)
    table.add_column("layer" if single else "model", overflow="fold", ratio=1)
    for header in ("bound", "time", *(("share",) if single else ()), "FLOP/B", "FLOP/s", "of roof"):
        table.add_column(header, justify="left" if header == "bound" else "right", no_wrap=True)
    for letter, mark in named:
        cells = [
            "-" if mark.seconds is None else units.seconds(mark.seconds),
            *(["-" if mark.share is None else units.percent(mark.share)] if single else []),
            "-" if mark.intensity is None else units.ratio(mark.intensity),
            "-" if not mark.rate else units.flops_rate(mark.rate).removesuffix("FLOP/s"),
            "-" if mark.roof_share is None else units.percent(mark.roof_share),
        ]
        style = STYLES.get(mark.bound or "", "")
        table.add_row(Text(letter, style=f"{style} bold"), Text(mark.name), Text(mark.bound or "-", style=style), *cells)
    return table


def _layer_marks(view: View, *, ops: bool) -> list[Mark]:
    return [
        Mark(
            point.intensity,
            point.rate,
            point.bandwidth,
            point.seconds,
            point.bound,
            printable(f"{point.path or 'root'} ({point.name})"),
            point.share,
            None if point.ideal_seconds is None or not point.seconds else point.ideal_seconds / point.seconds,
        )
        for point in (view.ops if ops else view.layers)
    ]


def _program_mark(view: View) -> Mark:
    whole = view.program
    return Mark(
        whole.intensity, whole.rate, whole.bandwidth, whole.seconds, whole.bound, printable(view.label), None, whole.roof_share
    )


def _fine(file: TextIO) -> bool:
    """Whether a stream can write braille."""
    try:
        "⣿•┤".encode(getattr(file, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
