"""``modelstat swap MODEL RULE...``: swap layers, and say what that does on each GPU before anyone trains it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group

from modelstat.cli.drawings import Drawings
from modelstat.cli.lists import batches, check_input, precisions, words
from modelstat.cli.options import RUN, SHOW, WHAT, option
from modelstat.cli.run import Mode, execution

WHERE = Group("Which layers", sort_key=1)


def swap(
    model: str,
    /,
    *rules: str,
    where: Annotated[list[str] | None, option(WHERE, "GLOB")] = None,
    skip_stem: Annotated[bool, option(WHERE)] = False,
    kernel: Annotated[list[str] | None, option(WHERE, "K")] = None,
    min_channels: Annotated[int | None, option(WHERE, "N")] = None,
    best: Annotated[bool, option(WHERE)] = False,
    input: Annotated[str | None, option(WHAT, "SHAPE")] = None,
    batch: Annotated[list[str] | None, option(WHAT, "N")] = None,
    precision: Annotated[list[str] | None, option(WHAT, "P")] = None,
    gpu: Annotated[list[str] | None, option(WHAT, "NAME")] = None,
    no_cache: Annotated[bool, option(WHAT)] = False,
    mode: Annotated[Mode, option(RUN, "MODE")] = "eager",
    cuda_graph: Annotated[bool, option(RUN)] = False,
    channels_last: Annotated[bool, option(RUN)] = False,
    host: Annotated[str, option(RUN, "HOST")] = "typical",
    format: Annotated[Literal["table", "json", "csv", "markdown"], option(SHOW, "FORMAT")] = "table",
    output: Annotated[Path | None, option(SHOW, "FILE")] = None,
    wide: Annotated[bool, option(SHOW)] = False,
    html: Annotated[Path | None, option(SHOW, "FILE")] = None,
    traceback: Annotated[bool, option(SHOW)] = False,
) -> None:
    """Swap layers of a model and compare before and after.

    Args:
        model: resnet50, timm:NAME, model.py:build or model.yaml.
        rules: conv=ghost, "conv=ghost(ratio=2,kernel=3)", act=relu, ...
        where: Only modules at or below these paths: "layer3.*".
        skip_stem: Leave out the first layer that runs.
        kernel: Only convolutions of this size: 3, or 1x7.
        min_channels: Only layers with at least so many channels.
        best: Try each rule on each stage, and rank them by time.
        input: One sample: 3x224x224, or ids=128:int64,mask=128:bool.
        batch: Batch sizes, 1 by default; several too.
        precision: fp32, tf32, fp16, bf16, amp-fp16, amp-bf16; several too.
        gpu: v100,t4 or "2070 super,clock=1815MHz" (see modelstat gpus).
        no_cache: Trace again instead of reading the cache.
        mode: eager (the default) or compile: kernels fused.
        cuda_graph: One launch for all kernels: no host cost per op.
        channels_last: Images with their channels innermost.
        host: fast, typical, slow, or microseconds to issue an op.
        format: table, json, csv or markdown.
        output: Write to a file, whole or not at all.
        wide: All columns at full width.
        html: One page with both models and an arrow for each layer.
        traceback: Show where an error came from.
    """
    from modelstat.cli.output import Output
    from modelstat.cli.progress import TraceProgress
    from modelstat.errors import UsageError
    from modelstat.hardware.database import resolve
    from modelstat.rewrite.plan import plans
    from modelstat.rewrite.selection import from_mapping
    from modelstat.swapping import Bench

    del traceback  # modelstat.cli.entry looks for it
    # Whatever can be wrong without a model is found out before the model is traced.
    gpus = resolve(gpu or ())
    selection = from_mapping(
        {"where": words(where or ()), "skip_stem": skip_stem, "kernel": words(kernel or ()), "min_channels": min_channels}
    )
    wanted = plans(rules, selection)
    if not wanted and not best:
        raise UsageError("modelstat swap needs a rule, such as conv=ghost, or --best to try them all")
    sizes = batches(batch or ())
    check_input(input, sizes)
    runs = [(each, size) for each in precisions(precision or ()) for size in sizes]
    running = execution(mode, host, None, cuda_graph=cuda_graph, channels_last=channels_last, timed=bool(gpus), runs=len(runs))
    if best and (len(gpus) != 1 or len(runs) != 1):
        raise UsageError("--best ranks by the time of one model: give one --gpu, one --batch and one --precision")
    if best and selection.where:
        raise UsageError("--best tries each stage: leave --where out")
    if wide and (format != "table" or best):
        raise UsageError(f"--wide is for the table of layers, not for {'--best' if best else f'--format {format}'}: leave one of them out")
    drawings = Drawings(html, None, None, None, roofline=False)
    drawings.check(gpus=len(gpus), batches=1, precisions=1, form=format, crosscheck=False, output=output)
    if html is not None and (best or len(runs) != 1):
        raise UsageError("--html draws one model before and after: leave --best out, and give one --batch and one --precision")
    with Output(output) as out, drawings:
        with TraceProgress(f"tracing {model}") as progress:
            bench = Bench(model, input, gpus, running, cache=not no_cache, progress=progress)
            ranking = bench.best([plan.asked for plan in wanted], selection, runs[0]) if best else None
            verdict = None if best else bench.verdict(wanted, runs)
        if ranking is not None:
            from modelstat.report import verdict_best

            verdict_best.write(ranking, format, out.stream)
        if verdict is not None:
            from modelstat.report import verdict_table

            if format == "table":
                verdict_table.write_table(verdict, out.stream, wide=wide)
            else:
                verdict_table.WRITERS[format](verdict, out.stream)
            drawings.draw(bench.pairs[0], out, ops=False, compare=True)
