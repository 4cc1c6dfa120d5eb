"""The check as Markdown, for the summary of a CI step or a comment: a table of all limits, then what failed and why."""

from __future__ import annotations

from typing import TextIO

from modelstat.budget.human import HEADS, details, margin_text
from modelstat.budget.limits import QUANTITIES
from modelstat.budget.result import Checked
from modelstat.report.grid import Cell, Column, Grid, Row
from modelstat.report.tabular import markdown_escaped, write_markdown

COLUMNS = (
    Column("budget", "budget", "budget", "text"),
    Column("limit", "limit", "limit", "text"),
    Column("measured", "measured", "measured", "share"),
    Column("allowed", "allowed", "allowed", "share"),
    Column("margin", "margin", "margin", "share"),
    Column("result", "result", "", "text"),
)


def write(checked: Checked, file: TextIO) -> None:
    """Write the summary to ``file``."""
    file.write(f"### modelstat check: {markdown_escaped(checked.verdict)}\n\n")
    write_markdown(grid(checked), file)
    for outcome in checked.outcomes:
        told = [outcome.error] if outcome.error is not None else details(outcome)
        if told:
            file.write(f"\n{HEADS[outcome.status]}, {markdown_escaped(outcome.budget)}:\n\n")
            for line in told:
                text = line.lstrip()
                file.write(f"{' ' * (len(line) - len(text))}- {markdown_escaped(text)}\n")


def grid(checked: Checked) -> Grid:
    """One row per budget and limit; a budget that could not be checked is one row."""
    rows = []
    for outcome in checked.outcomes:
        if outcome.error is not None:
            rows.append(Row((outcome.budget, "", None, None, None, HEADS["error"])))
        for measure in outcome.measures:
            show = QUANTITIES[measure.quantity].show
            cells = [Cell(value, show(value)) for value in (measure.measured, measure.allowed)]
            result = HEADS["passed" if measure.passed else "failed"]
            row = (outcome.budget, measure.name, *cells, Cell(measure.margin, margin_text(measure)), result)
            rows.append(Row(row, strong=() if measure.passed else tuple(range(len(COLUMNS)))))
    return Grid(COLUMNS, tuple(rows), f"{checked.file}; modelstat {checked.version}")
