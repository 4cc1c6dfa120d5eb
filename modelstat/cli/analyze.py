"""``modelstat MODEL``: trace each batch and precision, evaluate on each GPU, print the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from modelstat.cli.lists import batches, precisions, words
from modelstat.cli.options import SHOW, WHAT, option
from modelstat.cli.render import Format, Level, check, write

if TYPE_CHECKING:
    from modelstat.analysis import Analysis


def analyze(
    model: str,
    /,
    *,
    input: Annotated[str | None, option(WHAT, "SHAPE")] = None,
    batch: Annotated[list[str] | None, option(WHAT, "N")] = None,
    precision: Annotated[list[str] | None, option(WHAT, "P")] = None,
    gpu: Annotated[list[str] | None, option(WHAT, "NAME")] = None,
    strict: Annotated[bool, option(WHAT)] = False,
    duration: Annotated[bool, option(WHAT)] = False,
    no_cache: Annotated[bool, option(WHAT)] = False,
    depth: Annotated[int | None, option(SHOW, "N")] = None,
    level: Annotated[Level, option(SHOW, "LEVEL")] = "module",
    columns: Annotated[list[str] | None, option(SHOW, "LIST")] = None,
    sort: Annotated[str | None, option(SHOW, "COLUMN")] = None,
    top: Annotated[int | None, option(SHOW, "N")] = None,
    filter: Annotated[str | None, option(SHOW, "GLOB")] = None,
    format: Annotated[Format, option(SHOW, "FORMAT")] = "table",
    output: Annotated[Path | None, option(SHOW, "FILE")] = None,
    wide: Annotated[bool, option(SHOW)] = False,
    traceback: Annotated[bool, option(SHOW)] = False,
) -> int:
    """Analyze one model.

    Args:
        model: resnet50, timm:NAME, model.py:build or model.yaml.
        input: One sample: 3x224x224, or ids=128:int64,mask=128:bool.
        batch: Batch sizes, 1 by default; 1,8,64 gives three reports.
        precision: fp32, tf32, fp16, bf16, amp-fp16, amp-bf16; several too.
        gpu: v100,t4 or "2070 super,clock=1815MHz" (see modelstat gpus).
        strict: Exit with code 3 if an op has no formula.
        duration: Add torchstat's duration: one timed run on this machine.
        no_cache: Trace again instead of reading the cache.
        depth: Levels of the module tree.
        level: module (the default) or op: one row per operator.
        columns: Columns, by name: params,flops,bound.
        sort: Sort by a column, largest first.
        top: The N heaviest modules, by --sort or else by time.
        filter: Rows whose path matches, such as "layer4.*".
        format: table, json, csv, markdown, latex or torchstat.
        output: Write to a file, whole or not at all.
        wide: All columns at full width.
        traceback: Show where an error came from.
    """
    from modelstat.analysis import Analysis
    from modelstat.api import trace_spec
    from modelstat.cli.output import Output
    from modelstat.cli.progress import TraceProgress
    from modelstat.hardware.database import resolve
    from modelstat.report.options import Options

    del traceback  # modelstat.cli.entry looks for it, so that it also works where parsing fails
    # Whatever can be wrong without a model is found out before the model is traced.
    gpus = resolve(gpu or ())
    runs = [(each, size) for each in precisions(precision or ()) for size in batches(batch or ())]
    options = Options(tuple(words(columns or ())), depth, level, sort, top, filter, wide)
    check(options, format, timed=bool(gpus), several=len(runs) * max(1, len(gpus)) > 1, duration=duration)
    with Output(output) as out:
        with TraceProgress(f"tracing {model}") as progress:
            traces = [trace_spec(model, input, size, each, cache=not no_cache, progress=progress) for each, size in runs]
        analyses = [Analysis.from_trace(trace, gpus, level=level) for trace in traces]
        for analysis in analyses:
            analysis.require_peak()
        durations = [_durations(model, input, size) if duration else None for _, size in runs]
        write(analyses, format, options, out, durations)
    if strict:
        _refuse_unknown(analyses)
    return 0


def _durations(model: str, input: str | None, batch: int | None) -> dict[int, float]:
    """Seconds of each leaf module in one real run, which needs weights: by index into the trace's modules."""
    from modelstat.measure.durations import leaf_durations
    from modelstat.sources import parse

    built = parse(model).build(input, batch, weights=True)
    return leaf_durations(built.model, built.args, built.kwargs)


def _refuse_unknown(analyses: Sequence[Analysis]) -> None:
    from modelstat.errors import StrictError

    unknown = dict.fromkeys(op.name for analysis in analyses for op in analysis.document.coverage.unknown_ops)
    if unknown:
        raise StrictError(f"--strict: no formula for {', '.join(unknown)}: register one with modelstat.formula, or leave --strict out")
