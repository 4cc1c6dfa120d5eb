"""``modelstat query "SELECT ..." RESULTS.parquet``: SQL over what a sweep wrote."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from modelstat.sweeping.query import Query

Form = Literal["table", "csv", "json", "markdown"]


def query(sql: str, results: Path, /, *, format: Annotated[Form, Parameter(show_default=False)] = "table") -> None:
    """Ask a sweep's results in SQL.

    Args:
        sql: A statement over the tables results and layers.
        results: The file that modelstat sweep wrote.
        format: table (the default), csv, json or markdown.
    """
    from modelstat.sweeping.query import Query

    answer = Query(sql, results)
    {"table": _table, "csv": _csv, "json": _json, "markdown": _markdown}[format](answer)


def _table(answer: Query) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from modelstat.report.width import width_of

    table = Table(box=None, pad_edge=False, header_style="bold")
    rows = list(answer.rows())
    for index, name in enumerate(answer.columns):
        number = any(isinstance(row[index], (int, float)) for row in rows)
        table.add_column(Text(name), justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_shown(value)) for value in row))
    Console(width=width_of(sys.stdout, 200)).print(table)


def _csv(answer: Query) -> None:
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows(answer.rows())


def _json(answer: Query) -> None:
    import msgspec

    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows()]
    print(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())


def _markdown(answer: Query) -> None:
    def line(cells: list[str]) -> str:
        return f"| {' | '.join(cells)} |"

    print(line(answer.columns))
    print(line(["---"] * len(answer.columns)))
    for row in answer.rows():
        print(line([_shown(value).replace("|", "\\|").replace("\n", " ") for value in row]))


def _shown(value: Any) -> str:
    """A cell: null is a dash, a number as DuckDB gives it."""
    if value is None:
        return "-"
    return f"{value:,}" if type(value) is int else f"{value:.6g}" if isinstance(value, float) else str(value)
