"""Measured points in a terminal: a capital letter where the measured time puts an op, its small letter where the predicted one does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from modelstat import units
from modelstat.report.chart.measured import Mark, Measured, Place, mark_name
from modelstat.report.chart.view import View
from modelstat.report.chart.window import Window, window
from modelstat.report.grid import printable
from modelstat.report.overlay import error_text
from modelstat.report.terminal.canvas import Canvas
from modelstat.report.terminal.roofline import MARGIN, NAMED, ROWS, WIDTH, draw_roofs, framed, limits, share_of

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

SIGNS = {"step": "x", "cut step": "-", "whole": "*", "pass": "@"}
"""Signs of what is no op, where the measured time puts it."""
ORDER = ("cut step", "step", "kernel", "op", "pass", "whole")
"""Kinds, the lowest first."""
PREDICTED, COUNTED, L2, L1 = "o", "#", "2", "1"
"""Signs of the predicted place of what has no letter, and of the places that counters give."""
STYLE = {"measured": "bold cyan", "predicted": "dim", "counted": "bold red", "l2": "magenta", "l1": "magenta"}


def display(view: View, found: Measured, *, width: int = WIDTH, fine: bool = True) -> list[Text | Table]:
    """The chart and its key as rich renderables."""
    from rich.text import Text

    heavy = [mark for mark in found.marks if mark.kind in ("op", "kernel") and mark.places][:NAMED]
    whole = [mark for mark in found.marks if mark.kind in ("whole", "pass")]
    told = [place for mark in (*heavy, *whole) for place in mark.places]
    # Of the others the predicted place is not drawn.
    frame = window([view.device], [*told, *(mark.measured for mark in found.marks if mark.measured)])
    canvas = Canvas(width - MARGIN - 1, ROWS, fine=fine)
    named = {id(mark): chr(ord("A") + place) for place, mark in enumerate(heavy)}
    signs: set[str] = set()
    # What is drawn last stands over everything else.
    for mark in sorted(found.marks, key=lambda each: (ORDER.index(each.kind), each.weight)):
        letter = named.get(id(mark))
        sign = letter or SIGNS.get(mark.kind, "•" if fine else ".")
        predicted = letter.lower() if letter else PREDICTED if mark.kind in ("whole", "pass") else None
        signs |= {sign, *_draw(canvas, frame, mark, sign, predicted)}
    draw_roofs(canvas, frame, view.device, named=True)  # after the marks: its names keep to what they leave free
    key = [*zip(named.values(), heavy, strict=True), *((SIGNS[mark.kind], mark) for mark in whole)]
    head = Text(f"Measured on the roof of {printable(view.device.name)}: {printable(view.model)}", style="bold")
    head.append(f"\n{limits(view.device)}", style="not bold")
    return [head, *framed(canvas, frame, fine=fine), Text(_legend(signs)), _key(key)]


def _draw(canvas: Canvas, frame: Window, mark: Mark, measured: str, predicted: str | None) -> set[str]:
    """One mark with its places (the predicted one where that has a sign); gives the signs of counters that it drew."""
    main = mark.measured or mark.counted
    drawn: set[str] = set()
    for field, sign in (("l1", L1), ("l2", L2), ("counted", COUNTED), ("predicted", predicted), ("measured", measured)):
        place: Place | None = getattr(mark, field)
        spot = _spot(frame, place)
        # Where every op had all its signs, none could be told from another.
        if spot is None or sign is None or (predicted is None and field == "counted" and mark.measured is not None):
            continue
        at = share_of(frame, *spot)
        start = _spot(frame, main)
        if field == "predicted" and start:
            canvas.line(*share_of(frame, *start), *at)
        if field == "counted" and mark.measured is None and measured.isalpha():
            sign = measured  # a kernel stands where its counters put it
        canvas.mark(*at, sign, STYLE[field])
        drawn.add(sign)
    return drawn & {COUNTED, L2, L1}


def _spot(frame: Window, place: Place | None) -> tuple[float, float] | None:
    return None if place is None else frame.position(place.intensity, place.rate, place.bandwidth)


def _legend(signs: set[str]) -> str:
    """What the signs of a chart mean, as far as the key below does not say it."""
    meanings = (
        ("A", "A measured, a predicted"), ("*", "o predicted whole"), ("x", "x a step"), ("-", "- a step that is not complete"),
        (COUNTED, f"{COUNTED} by counters"), (L2, f"{L2} over L2 bytes (no roof is known)"), (L1, f"{L1} over L1 bytes"),
    )  # fmt: skip
    return ", ".join(meaning for sign, meaning in meanings if sign in signs)


def _key(named: Sequence[tuple[str, Mark]]) -> Table:
    """A line for each letter and sign."""
    from rich.table import Table
    from rich.text import Text

    counters = any(mark.counted for _, mark in named)
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, collapse_padding=True, header_style="bold")
    table.add_column("", no_wrap=True)
    table.add_column("", overflow="fold", ratio=1)
    for header in ("measured", "predicted", "error", "FLOP/B", "FLOP/s", *(("counted",) if counters else ()), "of roof"):
        table.add_column(header, justify="right", no_wrap=True)
    for letter, mark in named:
        ours = mark.measured or mark.counted
        counted = "-" if mark.counted is None or not mark.counted.rate else _rate(mark.counted.rate)
        table.add_row(
            Text(letter, style=STYLE["measured"]),
            Text(printable(mark_name(mark))),
            "-" if mark.seconds is None else units.seconds(mark.seconds),
            "-" if mark.predicted is None or mark.predicted.seconds is None else units.seconds(mark.predicted.seconds),
            error_text(mark.error) or "-",
            "-" if ours is None or ours.intensity is None else units.ratio(ours.intensity),
            "-" if mark.measured is None or not mark.measured.rate else _rate(mark.measured.rate),
            *([counted] if counters else []),
            "-" if mark.roof_share is None else units.percent(mark.roof_share),
        )
    return table


def _rate(value: float) -> str:
    return units.flops_rate(value).removesuffix("FLOP/s")
