"""The table of a sizing: what each GPU takes, and why others are out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from modelstat import units
from modelstat.deploy.sizing import HEADROOM, Sized, Sizing
from modelstat.report.grid import Column, Grid, Row
from modelstat.report.tabular import write_csv, write_markdown

COLUMNS = (
    Column("rank", "rank", "", "integer"),
    Column("gpu", "gpu", "GPU", "text"),
    Column("gpus", "gpus", "GPUs", "integer"),
    Column("batch", "batch", "batch", "integer"),
    Column("latency", "latency_ms", "latency", "ms"),
    Column("pass", "pass_ms", "pass", "ms"),
    Column("throughput", "throughput", "samples/s", "speed"),
    Column("utilisation", "utilisation", "in use", "share"),
    Column("power", "power_w", "power (W)", "speed"),
    Column("joules", "joules", "J/sample", "speed"),
    Column("hour", "cost_per_hour", "an hour", "ratio"),
    Column("million", "cost_per_million", "a million", "ratio"),
    Column("fits", "fits", "fits", "flag"),
)
PRICED = ("hour", "million")
COMFORTABLE = 100
"""Columns of a terminal that all of them need; a narrower one goes without those of DROP."""
DROP = ("pass", "joules", "fits")


def grid(sizing: Sizing, top: int | None = None, *, narrow: bool = False) -> Grid:
    """A row a GPU, the best first. ``narrow`` leaves the columns of DROP out."""
    hidden = {*(() if sizing.currency is not None else PRICED), *(DROP if narrow else ())}
    if not _unsure(sizing.ranked):
        hidden.add("fits")
    columns = tuple(column for column in COLUMNS if column.name not in hidden)
    rows = []
    for rank, one in enumerate(sizing.ranked[:top], start=1):
        values = {
            "rank": rank, "gpu": one.gpu.name, "gpus": one.gpus, "batch": one.batch, "latency": one.latency_seconds * 1e3,
            "pass": one.seconds * 1e3, "throughput": one.throughput, "utilisation": one.utilisation, "power": one.power_watts,
            "joules": one.joules, "hour": one.cost_per_hour, "million": one.cost_per_million, "fits": one.fits,
        }  # fmt: skip
        rows.append(Row(tuple(values[column.name] for column in columns)))
    return Grid(columns, tuple(rows), caption(sizing))


def _unsure(ranked: Sequence[Sized]) -> bool:
    return any(one.fits is None for one in ranked)


def caption(sizing: Sizing) -> str:
    """What the columns mean, and what is assumed."""
    by = f"cost ({sizing.currency or 'in the currency of the prices'})" if sizing.currency is not None else "GPUs, then power"
    return (
        f"Ranked by {by}. Capacity is {HEADROOM:.0%} above the demand. latency = (batch - 1) / (requests/s of one GPU) + pass, without "
        "queues; samples/s are one GPU's; in use is the demand's share of all; power is at most all boards at their TDP; fits - : the "
        f"memory is the machine's and not checked. Passes are predicted ({sizing.execution.text}); the report of the model on one GPU has "
        "the interval."
    )


def render(sizing: Sizing, form: str, file: TextIO, *, top: int | None = None, width: int | None = None) -> None:
    """Write as table, json, csv or markdown."""
    if form == "json":
        import msgspec

        file.write(msgspec.json.format(msgspec.json.encode(sizing), indent=2).decode() + "\n")
    elif form == "csv":
        write_csv(grid(sizing, top), file)
    elif form == "markdown":
        write_markdown(grid(sizing, top), file)
    else:
        _table(sizing, file, top, width)


def _table(sizing: Sizing, file: TextIO, top: int | None, width: int | None) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from modelstat.report.grid import formatted, printable
    from modelstat.report.table import lines_text

    console = Console(file=file, highlight=False, width=width)
    head = [
        ("Model", f"{printable(sizing.model)}, precision {sizing.precision}"),
        ("Demand", f"{units.per_second(sizing.qps)} samples/s, each within {units.seconds(sizing.latency_seconds)}"),
        ("Answer", f"{len(sizing.ranked)} of {len(sizing.ranked) + len(sizing.out)} GPUs can do it"),
    ]
    console.print(lines_text(head, console.width))
    console.print()
    if sizing.ranked:
        shown = grid(sizing, top, narrow=console.width < COMFORTABLE)
        table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
        for column in shown.columns:
            text = column.kind == "text"
            table.add_column(Text(column.header), justify="left" if text else "right", no_wrap=not text, overflow="fold")
        for row in shown.rows:
            table.add_row(*(Text(formatted(*pair)) for pair in zip(shown.columns, row.values, strict=True)))
        console.print(table)
        if len(shown.rows) < len(sizing.ranked):
            console.print(Text(f"and {len(sizing.ranked) - len(shown.rows)} more: leave --top out"))
        console.print()
        console.print(lines_text([("", caption(sizing))], console.width))
    if sizing.out:
        console.print()
        out = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
        out.add_column("out", overflow="fold")
        out.add_column("why", overflow="fold")
        for one in sizing.out:
            out.add_row(Text(one.gpu.name), Text(printable(one.reason)))
        console.print(out)
    if sizing.notes:
        console.print()
        told = [("Note" if index == 0 else "", printable(note)) for index, note in enumerate(sizing.notes)]
        console.print(lines_text(told, console.width))
