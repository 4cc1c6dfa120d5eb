"""The rows as an HTML table: plain markup for a page, a wiki or a notebook, every name escaped."""

from __future__ import annotations

from html import escape
from typing import TextIO

from modelstat.report.grid import Column, Grid, formatted, printable


def html_escaped(text: str) -> str:
    """Text that a browser shows as it is.

    >>> html_escaped("<b>a & b</b>")
    '&lt;b&gt;a &amp; b&lt;/b&gt;'
    """
    return escape(printable(text))


def write_html(grid: Grid, file: TextIO) -> None:
    """A table with its caption below it, numbers to the right, the best values and the total in bold."""
    heads = "".join(_cell("th", column, html_escaped(column.header)) for column in grid.columns)
    lines = [
        "<table>",
        f'<caption style="caption-side: bottom; text-align: left">{html_escaped(grid.caption)}</caption>',
        f"<thead>\n<tr>{heads}</tr>\n</thead>",
        "<tbody>",
    ]
    for row in grid.rows:
        cells = []
        for index, (column, value) in enumerate(zip(grid.columns, row.values, strict=True)):
            text = html_escaped(formatted(column, value))
            cells.append(_cell("td", column, f"<strong>{text}</strong>" if row.total or index in row.strong else text))
        lines.append(f"<tr>{''.join(cells)}</tr>")
    file.write("\n".join([*lines, "</tbody>", "</table>"]) + "\n")


def _cell(tag: str, column: Column, text: str) -> str:
    side = "left" if column.kind in ("text", "shapes") else "right"
    return f'<{tag} style="text-align: {side}">{text}</{tag}>'
