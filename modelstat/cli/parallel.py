"""Several GPUs: the options, and the section below the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from modelstat.errors import UsageError

if TYPE_CHECKING:
    from modelstat.analysis import Analysis
    from modelstat.cli.output import Output
    from modelstat.deploy.parallel import Layout
    from modelstat.hardware.gpu import Gpu


def layout(tensor: int, pipeline: int, data: int, gpus: Sequence[Gpu], form: str) -> Layout | None:
    """The layout that the options describe, None where they describe one GPU. Raises UsageError."""
    from modelstat.deploy.parallel import Layout

    found = Layout(tensor, pipeline, data)
    found.check()
    if found.gpus == 1:
        return None
    given = next(
        name for name, count in (("--tensor-parallel", tensor), ("--pipeline", pipeline), ("--data-parallel", data)) if count > 1
    )
    if not gpus:
        raise UsageError(f"{given} needs to know the GPU and its interconnect: add --gpu NAME")
    if form not in ("table", "json"):
        raise UsageError(f"{given} is in the table and in JSON: use --format table or json instead of {form}")
    return found


def write(analyses: Sequence[Analysis], out: Output) -> None:
    """One section an analysis and GPU."""
    from rich.console import Console

    from modelstat.report.parallel import lines, stage_table
    from modelstat.report.table import lines_text, page_width

    console = Console(file=out.stream, highlight=False, width=page_width(out.stream))
    for analysis in analyses:
        trace = analysis.trace
        for roof, found in zip(analysis.rooflines, analysis.parallels, strict=True):
            console.print()
            if found is None:
                console.print(lines_text([("Layout", str(roof.missing))], console.width))
                continue
            told = lines(found)
            if len(analyses) > 1:
                told.insert(0, ("Run", f"batch {trace.batch}, {trace.precision}"))
            console.print(lines_text(told, console.width))
            if found.stages:
                console.print(stage_table(found, trace))
