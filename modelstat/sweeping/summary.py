"""The table at the end of a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelstat import units
from modelstat.sweeping.progress import duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import RenderableType

    from modelstat.sweeping.row import Row
    from modelstat.sweeping.sweep import Sweep

LISTED = 10
"""Failed models that are listed."""


def summary(sweep: Sweep) -> Iterator[RenderableType]:
    """Rows by status, how fast it went, and the first models that failed."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    statuses = ", ".join(f"{number} {status}" for status, number in sweep.tally.most_common())
    table.add_row("rows", f"{sweep.tally.total()} of {sweep.grid.points}: {statuses or 'none'}")
    statistics = sweep.statistics
    if statistics.jobs:
        rate = units.ratio(statistics.jobs / statistics.wall_seconds)
        efficiency = "" if statistics.efficiency is None else f", {statistics.threads} workers {units.percent(statistics.efficiency)} busy"
        table.add_row("models", f"{statistics.jobs} in {duration(statistics.wall_seconds)}, {rate}/s{efficiency}")
    table.add_row("file", str(sweep.output))
    yield table
    failed = dict(_first_failures(sweep.failures))
    if failed:
        yield _failures(failed)


def _first_failures(rows: Iterable[Row]) -> Iterator[tuple[str, Row]]:
    for row in rows:
        yield row.spec, row


def _failures(failed: dict[str, Row]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    more = f" ({LISTED} of {len(failed)})" if len(failed) > LISTED else ""
    table = Table(box=None, pad_edge=False, header_style="bold", title=f"\nfailed{more}", title_justify="left", title_style="bold red")
    for heading in ("model", "status", "reason"):
        table.add_column(heading, overflow="fold")
    for spec, row in list(failed.items())[:LISTED]:
        table.add_row(Text(spec), row.status, Text(row.reason or ""))
    return table
