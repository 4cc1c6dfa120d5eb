"""``modelstat compare A B``: models, and saved reports, against each other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from modelstat.cli.drawings import Drawings
from modelstat.cli.lists import batches, check_input, precisions, words
from modelstat.cli.options import RUN, SHOW, WHAT, option
from modelstat.cli.run import Mode, execution

if TYPE_CHECKING:
    from modelstat.report.options import Options

Form = Literal["table", "json", "csv", "tsv", "markdown", "latex", "html"]


def compare(
    *models: str,
    input: Annotated[str | None, option(WHAT, "SHAPE")] = None,
    batch: Annotated[list[str] | None, option(WHAT, "N")] = None,
    precision: Annotated[list[str] | None, option(WHAT, "P")] = None,
    gpu: Annotated[list[str] | None, option(WHAT, "NAME")] = None,
    eval: Annotated[bool, option(WHAT)] = False,
    no_cache: Annotated[bool, option(WHAT)] = False,
    mode: Annotated[Mode, option(RUN, "MODE")] = "eager",
    cuda_graph: Annotated[bool, option(RUN)] = False,
    channels_last: Annotated[bool, option(RUN)] = False,
    host: Annotated[str, option(RUN, "HOST")] = "typical",
    by: Annotated[Literal["model", "layer"], option(SHOW, "WHAT")] = "model",
    relative: Annotated[bool, option(SHOW)] = False,
    columns: Annotated[list[str] | None, option(SHOW, "LIST")] = None,
    sort: Annotated[str | None, option(SHOW, "COLUMN")] = None,
    top: Annotated[int | None, option(SHOW, "N")] = None,
    format: Annotated[Form, option(SHOW, "FORMAT")] = "table",
    output: Annotated[Path | None, option(SHOW, "FILE")] = None,
    wide: Annotated[bool, option(SHOW)] = False,
    html: Annotated[Path | None, option(SHOW, "FILE")] = None,
) -> int:
    """Compare models, and saved reports, with each other.

    Args:
        models: Two or more: resnet50, model.py:build, model.yaml, report.json.
        input: One sample of all models: 3x224x224; each its own by default.
        batch: Batch sizes: 1,8,32.
        precision: fp32, tf32, fp16, bf16, amp-fp16, amp-bf16; several too.
        gpu: v100,t4 or "2070 super,clock=1815MHz" (see modelstat gpus).
        eval: Put a model of a file that is in training mode into eval.
        no_cache: Trace again instead of reading the cache.
        mode: eager (the default) or compile: kernels fused.
        cuda_graph: One launch for all kernels: no host cost per op.
        channels_last: Images with their channels innermost.
        host: fast, typical, slow, or microseconds to issue an op.
        by: model (the default), or layer: how two variants differ.
        relative: Values as multiples of the first model's.
        columns: Columns, by name: params,flops,predicted.
        sort: Sort by a column, largest first.
        top: The N first rows, of layers those that differ most.
        format: table, json, csv, tsv, markdown, latex, html.
        output: Write to a file, whole or not at all.
        wide: All columns at full width.
        html: One page with all models in one roofline; two get arrows.
    """
    from modelstat.api import compare as run
    from modelstat.cli.output import Output
    from modelstat.cli.progress import TraceProgress
    from modelstat.cli.render import WIDE, refuse_shown
    from modelstat.errors import UsageError
    from modelstat.hardware.database import resolve
    from modelstat.predict.execution import Execution
    from modelstat.report.compare_saved import is_saved
    from modelstat.report.options import Options
    from modelstat.report.table import WIDTH
    from modelstat.report.width import width_of
    from modelstat.sources import parse

    gpus = resolve(gpu or ())
    sizes, kinds = batches(batch or ()), precisions(precision or ())
    check_input(input, sizes)
    saved = [is_saved(model) for model in models]
    if len(models) < 2 and not any(saved):
        given = models[0] if models else "nothing"
        raise UsageError(f"{given} alone is no comparison: give two models or more, as in `modelstat compare resnet18 resnet34 --gpu v100`")
    # A saved report brings GPUs of its own.
    timed = bool(gpus) or any(saved)
    running = execution(mode, host, None, cuda_graph=cuda_graph, channels_last=channels_last, timed=timed, runs=1)
    if models and all(saved) and (input is not None or eval or running != Execution()):
        raise UsageError("saved reports stay as they were written: leave out --input, --eval and what says how a model runs")
    for model, there in zip(models, saved, strict=True):
        if not there:
            parse(model)
    points = len(models) * len(sizes) * len(kinds) * max(1, len(gpus))
    if by == "layer" and not any(saved) and points != 2:
        raise UsageError(f"--by layer shows two models at one batch and precision on one GPU, not {points} rows: choose two")
    options = Options(tuple(words(columns or ())), sort=sort, top=top, wide=wide, relative=relative)
    if format == "json":
        others = {"--relative": relative}
        refuse_shown("--format json is the whole comparison", options, others, way="leave it out, or choose --format csv")
    _check(options, by, timed=timed)
    drawings = Drawings(html, None, None, None, roofline=False)
    drawings.check(gpus=len(gpus), batches=1, precisions=1, form=format, crosscheck=False, output=output)
    if html is not None and any(saved):
        raise UsageError("--html draws models that are walked, and a saved report has no ops: leave one of them out")
    with Output(output) as out, drawings:
        with TraceProgress(f"tracing {len(models)} models") as progress:
            found = run(
                *models,
                inputs=input,
                batch=sizes,
                precision=kinds,
                gpu=gpus,
                mode=mode,
                host=host,
                channels_last=channels_last,
                cuda_graph=cuda_graph,
                eval_mode=eval,
                cache=not no_cache,
                progress=progress,
            )
        found.write(format, out.stream, options, by=by, width=width_of(out.stream, WIDE if wide else WIDTH))
        drawings.draw(found.analyses, out, ops=False, compare=len(found.analyses) == 2)
    return 0


def _check(options: Options, by: str, *, timed: bool) -> None:
    """Raises UsageError for a column that does not exist and for options that do not go together, before a model is traced."""
    from modelstat.errors import UsageError
    from modelstat.report import compare_layers, comparison

    if by == "model":
        comparison.check(options, timed=timed)
        return
    if options.relative:
        raise UsageError("--relative compares models: leave it out with --by layer, which shows differences")
    compare_layers.check(options, timed=timed)
