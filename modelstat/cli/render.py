"""From analyses to text: one function a format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from modelstat.errors import UsageError

if TYPE_CHECKING:
    from modelstat.analysis import Analysis
    from modelstat.cli.output import Output
    from modelstat.report.document import Document
    from modelstat.report.options import Options
    from modelstat.report.turns import CrossingsEntry

Format = Literal["table", "json", "csv", "tsv", "markdown", "latex", "html", "torchstat"]
Level = Literal["module", "op"]
Durations = Mapping[int, float] | None
"""Seconds by index into a trace's modules, None where nothing was timed."""

WIDE = 200
"""Columns of a wide report that does not go to a terminal."""


def check(options: Options, form: Format, *, timed: bool, several: bool, duration: bool) -> None:
    """Raises UsageError for a column that does not exist or needs a GPU, and for options that do not go together.

    ``several`` runs or GPUs are compared, a row each, where the format is not one that shows them all.
    """
    from modelstat.report import columns, comparison

    if several and form not in ("json", "torchstat"):
        comparison.check(options, timed=timed)
    else:
        columns.choose(options.columns, options.level, timed=timed, wide=options.wide)
        if options.sort:
            columns.column(options.sort, options.level, timed=timed)
    if duration and form != "torchstat":
        raise UsageError("--duration fills a column of torchstat's table: add --format torchstat")


def write(
    analyses: Sequence[Analysis], form: Format, options: Options, out: Output, durations: Sequence[Durations],
    crossings: Sequence[tuple[CrossingsEntry, ...]] = (),
) -> None:  # fmt: skip
    """Write one report of all analyses; ``crossings`` go into their JSON. Raises UsageError for options that ask for absent rows."""
    if form == "torchstat":
        _torchstat(analyses, durations, out)
        return
    documents = [analysis.document for analysis in analyses]
    if form == "table":
        _table(documents, options, out)
    elif form == "json":
        import msgspec

        from modelstat.report import json

        if crossings:
            pairs = zip(documents, crossings, strict=True)
            documents = [msgspec.structs.replace(document, crossings=found) for document, found in pairs]
        json.write(documents, out.stream)
    else:
        from modelstat.report import tabular

        tabular.render(documents, form, out.stream, options)


def _table(documents: Sequence[Document], options: Options, out: Output) -> None:
    from modelstat.report import table

    table.render(documents, out.stream, options, width=WIDE if options.wide and not out.stream.isatty() else None)


def _torchstat(analyses: Sequence[Analysis], durations: Sequence[Durations], out: Output) -> None:
    from modelstat.report.torchstat import render, torchstat_rows

    for index, (analysis, seconds) in enumerate(zip(analyses, durations, strict=True)):
        if index:
            out.stream.write("\n")
        render(torchstat_rows(analysis.trace, analysis.costs, seconds), out.stream)
