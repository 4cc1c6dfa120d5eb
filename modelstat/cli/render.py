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
    if options.level == "op" and options.depth is not None:
        raise UsageError("--depth is about the tree of modules: leave it out with --level op")
    if form == "json":
        refuse_shown("--format json is the whole report", options, {}, way="leave it out, or choose --format csv")
    if duration and form != "torchstat":
        raise UsageError("--duration fills a column of torchstat's table: add --format torchstat")


def check_torchstat(options: Options, others: Mapping[str, bool]) -> None:
    """Raises UsageError for options that torchstat's table has no use for: what it shows is fixed, and it knows no GPU."""
    others = {"--level op": options.level == "op", **others}
    refuse_shown("--format torchstat is torchstat's own table", options, others, way="leave it out, or choose another format")


def refuse_shown(about: str, options: Options, others: Mapping[str, bool], *, way: str) -> None:
    """Raises UsageError for options that choose rows or columns, and for the first of the ``others`` that was given."""
    given = {
        "--depth": options.depth is not None, "--columns": bool(options.columns), "--sort": options.sort is not None,
        "--top": options.top is not None, "--filter": options.filter is not None, "--wide": options.wide, **others,
    }  # fmt: skip
    option = next((name for name, here in given.items() if here), None)
    if option:
        raise UsageError(f"{about}, in which {option} changes nothing: {way}")


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
    from modelstat.report.width import width_of

    table.render(documents, out.stream, options, width=width_of(out.stream, WIDE if options.wide else table.WIDTH))


def _torchstat(analyses: Sequence[Analysis], durations: Sequence[Durations], out: Output) -> None:
    from modelstat.report.torchstat import render, torchstat_rows

    for index, (analysis, seconds) in enumerate(zip(analyses, durations, strict=True)):
        if index:
            out.stream.write("\n")
        render(torchstat_rows(analysis.trace, analysis.costs, seconds), out.stream)
