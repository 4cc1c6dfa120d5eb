"""The report in a terminal: header, a table coloured by bound, and what a reviewer wants to know."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from modelstat.report.comparison import comparison_grid
from modelstat.report.document import Document
from modelstat.report.grid import Column, Grid, Row, compact, formatted, printable
from modelstat.report.layers import layer_grid
from modelstat.report.options import DEFAULT, Options
from modelstat.report.summary import Line, findings, header, remarks, training

if TYPE_CHECKING:
    from rich.console import OverflowMethod
    from rich.table import Table
    from rich.text import Text

WIDTH = 100
"""Columns of a report that does not go to a terminal."""
STYLES = {"compute": "green", "memory": "yellow", "overhead": "magenta"}
DROP = ("madd", "upper", "whole", "output", "params", "read", "write", "macs", "fits", "ridge", "sample", "rw")
"""What goes first, in this order, where the default columns do not fit."""
COLOURED = ("layer", "bound", "predicted", "share", "gpu")
"""Columns in the colour of the row's bound."""
NARROWEST = 16
"""Characters that the first column keeps."""


def render(documents: Sequence[Document], file: TextIO, options: Options = DEFAULT, *, width: int | None = None) -> None:
    """Write the report of one document, or the comparison of several, to ``file``.

    ``width`` defaults to the terminal's, or to 100 where ``file`` is none; colours appear on a terminal only. Raises UsageError as
    :func:`layer_grid` does.
    """
    from rich.console import Console

    if width is None:
        width = shutil.get_terminal_size((WIDTH, 24)).columns if file.isatty() else WIDTH
    parts = display(documents, options, width=width)
    # Columns that someone asked for are never cut: such a table may be wider than the terminal.
    console = Console(file=file, width=max(width, parts[1].width or 0), highlight=False)
    for index, part in enumerate(parts):
        if index:
            console.print()
        console.print(part)


def display(documents: Sequence[Document], options: Options = DEFAULT, *, width: int = WIDTH) -> tuple[Text, Table, Text]:
    """The parts of the report as rich renderables: header, rows, findings."""
    compare = len(documents) != 1 or len(documents[0].gpus) > 1
    grid = comparison_grid(documents, options) if compare else layer_grid(documents[0], options)
    narrow = not options.columns and not options.wide
    if narrow:
        grid = fitted(grid, width)
    below = training(documents) + remarks(documents) if compare else findings(documents[0])
    return lines_text(header(documents), width), rows_table(grid, width, narrow=narrow), lines_text(below, width)


def lines_text(lines: Sequence[Line], width: int) -> Text:
    """Labels in bold, and texts wrapped beside them."""
    from rich.text import Text

    margin = max((len(label) for label, _ in lines), default=0) + 2
    text = Text()
    for label, content in lines:
        parts = textwrap.wrap(content, max(width - margin, 20), break_on_hyphens=False) or [""]
        text.append(label.ljust(margin), style="bold")
        text.append(f"\n{' ' * margin}".join(parts) + "\n")
    text.rstrip()
    return text


def fitted(grid: Grid, width: int, drop: Sequence[str] = DROP) -> Grid:
    """The grid without the columns of ``drop`` that do not fit into ``width``."""
    for name in drop:
        widths = _widths(grid, width // 4)
        # Whole paths want more room than the last part of one.
        first = NARROWEST if grid.tree else max(NARROWEST, min(widths[0], width // 3))
        if first + sum(widths[1:]) + len(widths) - 1 <= width:
            break
        keep = [index for index, column in enumerate(grid.columns) if column.name != name]
        grid = Grid(
            tuple(grid.columns[index] for index in keep),
            tuple(Row(tuple(row.values[index] for index in keep), row.path, row.indent, row.bound, row.total) for row in grid.rows),
            grid.caption,
            tree=grid.tree,
        )
    return grid


def rows_table(grid: Grid, width: int, *, narrow: bool = True) -> Table:
    """The rows, numbers to the right.

    The first column takes what the others leave: a tree is cut short, other text is folded. ``narrow`` also cuts the names of ops.
    """
    from rich.table import Table
    from rich.text import Text

    widths = _widths(grid, width // 4 if narrow else None)
    others = sum(widths[1:]) + len(widths) - 1
    first = min(widths[0], max(width - others, NARROWEST))
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, collapse_padding=True, header_style="bold", width=first + others)
    for index, column in enumerate(grid.columns):
        text = column.kind in ("text", "shapes")
        overflow: OverflowMethod = "ellipsis" if grid.tree or column.name == "op" else "fold"
        table.add_column(
            Text(column.header),
            justify="left" if text else "right",
            no_wrap=index > 0 or grid.tree,
            overflow=overflow,
            width=first if index == 0 else widths[index],
        )
    for row in grid.rows:
        style = STYLES.get(row.bound or "", "")
        cells = [
            Text(_cell(column, value, row, tree=grid.tree), style=style if column.name in COLOURED else "")
            for column, value in zip(grid.columns, row.values, strict=True)
        ]
        if row.total:
            table.add_section()
        table.add_row(*cells, style="bold" if row.total else None)
    return table


def _cell(column: Column, value: object, row: Row, *, tree: bool) -> str:
    if column.name == "layer" and tree and row.path and isinstance(value, str):
        # The tree shows the last part of the path, indented under its parent.
        return "  " * row.indent + printable(value.removeprefix(f"{row.path.rpartition('.')[0]}."))
    text = formatted(column, value)
    return text if column.kind in ("text", "shapes") else compact(text)


def _widths(grid: Grid, longest_op: int | None) -> list[int]:
    """Characters that each column needs; names of ops take no more than ``longest_op``."""
    from rich.cells import cell_len

    widths = []
    for index, column in enumerate(grid.columns):
        width = max([len(column.header), *(cell_len(_cell(column, row.values[index], row, tree=grid.tree)) for row in grid.rows)])
        widths.append(min(width, longest_op) if longest_op and column.name == "op" else width)
    return widths
