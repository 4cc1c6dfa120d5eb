"""How fleets are shown, whatever they serve: the GPUs that can, the best first, and why the others are out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

import msgspec

from modelstat.deploy.fleet import Out
from modelstat.report.grid import Column, Grid, Row, printable
from modelstat.report.summary import Line
from modelstat.report.tabular import write_csv, write_markdown

PRICED = ("hour", "million")
"""Columns of costs."""


class Sheet(msgspec.Struct, frozen=True):
    """What a table shows. ``grid`` starts with the rank and the GPU, and its caption says what the columns mean."""

    head: tuple[Line, ...]
    grid: Grid
    more: int
    """GPUs that are left out below."""
    out: Sequence[Out]
    notes: Sequence[str]


def answer(can: int, cannot: int) -> str:
    """How many can do it."""
    return f"{can} of {can + cannot} GPUs can do it"


def ranking(currency: str | None) -> str:
    """How they are ranked; ``currency`` is None without prices, and may be empty with them."""
    by = "GPUs, then power" if currency is None else f"cost ({currency or 'in the currency of the prices'})"
    return f"Ranked by {by}."


def grid(
    every: Sequence[Column], rows: Iterable[Mapping[str, object]], caption: str, drop: Sequence[str], *, priced: bool, fits_known: bool
) -> Grid:
    """A row a GPU, the best first. Costs stand there with prices, and ``fits`` where it is not known of all."""
    hidden = {*(() if priced else PRICED), *(("fits",) if fits_known else ())}
    columns = tuple(column for column in every if column.name not in hidden)
    ranked = ({"rank": rank, **row} for rank, row in enumerate(rows, start=1))
    shown = tuple(Row(tuple(row[column.name] for column in columns)) for row in ranked)
    return Grid(columns, shown, caption, drop=tuple(name for name in drop if name not in hidden))


def render(found: object, sheet: Sheet, form: str, file: TextIO, width: int | None) -> None:
    """Write as table, json (``found`` itself), csv or markdown."""
    if form == "json":
        file.write(msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n")
    elif form == "csv":
        write_csv(sheet.grid, file)
    elif form == "markdown":
        write_markdown(sheet.grid, file)
    else:
        _write_table(sheet, file, width)


def _write_table(sheet: Sheet, file: TextIO, width: int | None) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from modelstat.report.table import fitted, lines_text, rows_table

    console = Console(file=file, highlight=False, width=width)
    console.print(lines_text(sheet.head, console.width))
    if sheet.grid.rows:
        console.print()
        # The order is the rank.
        console.print(rows_table(fitted(sheet.grid.without("rank"), console.width), console.width))
        if sheet.more:
            console.print(Text(f"and {sheet.more} more: leave --top out"))
        console.print()
        console.print(lines_text([("", sheet.grid.caption)], console.width))
    if sheet.out:
        console.print()
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
        table.add_column("out", overflow="fold", ratio=1)
        table.add_column("why", overflow="fold", ratio=1)
        together: dict[str, list[str]] = {}
        for one in sheet.out:
            together.setdefault(one.reason, []).append(one.gpu.name)
        for reason, names in together.items():
            table.add_row(Text(printable(", ".join(names))), Text(printable(reason)))
        console.print(table)
    if sheet.notes:
        console.print()
        told = [("Note" if index == 0 else "", printable(note)) for index, note in enumerate(sheet.notes)]
        console.print(lines_text(told, console.width))
