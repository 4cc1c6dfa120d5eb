"""The rows as CSV, TSV, Markdown, LaTeX or HTML: the same as in the terminal, to be pasted or read by a program."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from typing import TextIO

import msgspec

from modelstat.report.columns import choose
from modelstat.report.comparison import comparison_grid
from modelstat.report.document import Document
from modelstat.report.grid import Grid, formatted, printable, raw
from modelstat.report.html_table import write_html
from modelstat.report.layers import layer_grid
from modelstat.report.options import DEFAULT, Options


def grid_of(documents: Sequence[Document], options: Options = DEFAULT) -> Grid:
    """Layers of one document on at most one GPU, else the comparison. Raises UsageError as the two grids do."""
    if len(documents) == 1 and len(documents[0].gpus) <= 1:
        return layer_grid(documents[0], options)
    return comparison_grid(documents, options)


def write_csv(grid: Grid, file: TextIO, *, delimiter: str = ",") -> None:
    """Raw numbers under the JSON contract's names; an empty cell is unknown or not applicable."""
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow([column.field for column in grid.columns])
    for row in grid.rows:
        writer.writerow(["" if (value := raw(*pair)) is None else value for pair in zip(grid.columns, row.values, strict=True)])


def write_tsv(grid: Grid, file: TextIO) -> None:
    """As CSV, with tabs."""
    write_csv(grid, file, delimiter="\t")


def write_markdown(grid: Grid, file: TextIO) -> None:
    """A pipe table for a pull request, and the caption."""
    file.write(_tabulated(grid, "pipe", markdown_escaped, "**{}**") + f"\n\n{markdown_escaped(grid.caption)}\n")


def write_latex(grid: Grid, file: TextIO) -> None:
    """A table for a paper, with its caption; the preamble needs the package booktabs."""
    body = _tabulated(grid, "latex_raw", latex_escaped, "\\textbf{{{}}}")
    for plain, rule in zip(("\\hline", "\\hline", "\\hline"), ("\\toprule", "\\midrule", "\\bottomrule"), strict=True):
        body = body.replace(plain, rule, 1)
    file.write(f"\\begin{{table}}\n\\centering\n{body}\n\\caption{{{latex_escaped(grid.caption)}}}\n\\end{{table}}\n")


MARKDOWN = str.maketrans({each: f"\\{each}" for each in "\\`*_[]#|~$"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": "&#64;"})
LATEX = str.maketrans(
    {each: f"\\{each}" for each in "&%$#_{}"}
    | {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "<": "\\textless{}", ">": "\\textgreater{}"}
    | {"|": "\\textbar{}", '"': "\\textquotedbl{}"}
)


def markdown_escaped(text: str) -> str:
    r"""Text that Markdown shows as it is.

    >>> print(markdown_escaped("a|b <i>"))
    a\|b &lt;i&gt;
    """
    return printable(text).translate(MARKDOWN)


def latex_escaped(text: str) -> str:
    r"""Text that LaTeX shows as it is.

    >>> print(latex_escaped("x_y&%"))
    x\_y\&\%
    """
    return printable(text).translate(LATEX)


def _tabulated(grid: Grid, form: str, escape: Callable[[str], str], bold: str) -> str:
    from tabulate import tabulate

    rows = []
    for row in grid.rows:
        cells = [escape(formatted(*pair)) for pair in zip(grid.columns, row.values, strict=True)]
        rows.append([bold.format(text) if index in row.strong else text for index, text in enumerate(cells)])
    align = ["left" if column.kind in ("text", "shapes") else "right" for column in grid.columns]
    headers = [escape(column.header) for column in grid.columns]
    return tabulate(rows, headers=headers, tablefmt=form, colalign=align if rows else None, disable_numparse=True)


WRITERS: dict[str, Callable[[Grid, TextIO], None]] = {
    "csv": write_csv,
    "tsv": write_tsv,
    "markdown": write_markdown,
    "latex": write_latex,
    "html": write_html,
}


def render(documents: Sequence[Document], form: str, file: TextIO, options: Options = DEFAULT) -> None:
    """Write the rows to ``file`` as ``form``: csv, tsv, markdown, latex or html. Raises UsageError as :func:`layer_grid` does."""
    if form in ("csv", "tsv") and options.level == "module" and not options.columns and len(documents) == 1 and len(documents[0].gpus) <= 1:
        # A program wants the path and the type of a layer apart.
        shown = choose((), "module", timed=bool(documents[0].gpus), wide=options.wide)
        names = ("path", "type", *(column.name for column in shown if column.name != "layer"))
        options = msgspec.structs.replace(options, columns=names)
    WRITERS[form](grid_of(documents, options), file)
