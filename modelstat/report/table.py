"""The report in a terminal: header, a table coloured by bound, and what a reviewer wants to know."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from modelstat.report.comparison import comparison_grid
from modelstat.report.document import Document
from modelstat.report.grid import Column, Grid, Row, compact, formatted, printable
from modelstat.report.layers import layer_grid
from modelstat.report.options import DEFAULT, Options
from modelstat.report.summary import Line, findings, header, remarks, training
from modelstat.report.width import width_of

if TYPE_CHECKING:
    from rich.console import OverflowMethod
    from rich.table import Table
    from rich.text import Text

WIDTH = 100
"""Columns of a report that does not go to a terminal."""
STYLES = {"compute": "green", "memory": "yellow", "overhead": "magenta"}
COLOURED = ("layer", "bound", "predicted", "share", "gpu")
"""Columns in the colour of the row's bound."""
NARROWEST = 16
"""Characters that the first column keeps."""


def render(documents: Sequence[Document], file: TextIO, options: Options = DEFAULT, *, width: int | None = None) -> None:
    """Write the report of one document, or the comparison of several, to ``file``.

    ``width`` defaults to :func:`page_width`; colours appear on a terminal only. Raises UsageError as
    :func:`layer_grid` does.
    """
    width = page_width(file) if width is None else width
    show(display(documents, options, width=width), file, width)


def page_width(file: TextIO) -> int:
    """Columns of a report: those of COLUMNS or of the terminal, or 100 where ``file`` is none."""
    return width_of(file, WIDTH)


def show(parts: tuple[Text, Table, Text], file: TextIO, width: int) -> None:
    """Write header, rows and findings with a blank line between them."""
    from rich.console import Console

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
    below = training(documents) + remarks(documents) if compare else findings(documents[0])
    return page(header(documents), grid, below, options, width=width)


def page(above: Sequence[Line], grid: Grid, below: Sequence[Line], options: Options, *, width: int) -> tuple[Text, Table, Text]:
    """A table between the lines above and below it. Default columns that do not fit are left out."""
    narrow = not options.columns and not options.wide
    if narrow:
        grid = fitted(grid, width)
    return lines_text(above, width), rows_table(grid, width, narrow=narrow), lines_text(below, width)


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


def fitted(grid: Grid, width: int) -> Grid:
    """The grid without those of its columns that do not fit into ``width``, as far as it lets them drop."""
    for name in grid.drop:
        widths = _widths(grid, width // 4)
        # Whole paths want more room than the last part of one.
        first = NARROWEST if grid.tree else max(NARROWEST, min(widths[0], width // 3))
        if first + sum(widths[1:]) + len(widths) - 1 <= width:
            break
        grid = grid.without(name)
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
            Text(
                _cell(column, value, row, tree=grid.tree),
                style=f"{'bold' if index in row.strong else ''} {style if column.name in COLOURED else ''}".strip(),
            )
            for index, (column, value) in enumerate(zip(grid.columns, row.values, strict=True))
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
    return text if column.kind in ("text", "shapes", "figure") else compact(text)


def _widths(grid: Grid, longest_op: int | None) -> list[int]:
    """Characters that each column needs; names of ops take no more than ``longest_op``."""
    from rich.cells import cell_len

    widths = []
    for index, column in enumerate(grid.columns):
        width = max([len(column.header), *(cell_len(_cell(column, row.values[index], row, tree=grid.tree)) for row in grid.rows)])
        widths.append(min(width, longest_op) if longest_op and column.name == "op" else width)
    return widths
