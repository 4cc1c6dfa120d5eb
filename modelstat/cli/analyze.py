"""``modelstat MODEL``: trace each batch and precision, evaluate on each GPU, print the report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from modelstat.cli import parallel, ranges
from modelstat.cli.crosscheck import check_report, second_opinion
from modelstat.cli.drawings import Drawings
from modelstat.cli.lists import batches, check_input, precisions, words
from modelstat.cli.options import DRAW, LANGUAGE, RUN, SHOW, WHAT, option
from modelstat.cli.phases import PhaseName, asked
from modelstat.cli.render import Format, Level, check, check_torchstat, write
from modelstat.cli.run import Mode, correction, execution
from modelstat.report.plot import Kind
from modelstat.report.plot.theme import Theme

if TYPE_CHECKING:
    from modelstat.analysis import Analysis
    from modelstat.records import Trace


def analyze(
    model: str,
    /,
    *,
    input: Annotated[str | None, option(WHAT, "SHAPE")] = None,
    batch: Annotated[list[str] | None, option(WHAT, "N")] = None,
    sweep: Annotated[str | None, option(WHAT, "X=RANGE")] = None,
    precision: Annotated[list[str] | None, option(WHAT, "P")] = None,
    gpu: Annotated[list[str] | None, option(WHAT, "NAME")] = None,
    weights: Annotated[str | None, option(WHAT, "P")] = None,
    activations: Annotated[str | None, option(WHAT, "P")] = None,
    group: Annotated[int | None, option(WHAT, "N")] = None,
    plan: Annotated[str | None, option(WHAT, "FILE")] = None,
    eval: Annotated[bool, option(WHAT)] = False,
    causal: Annotated[Literal["full", "half"], option(WHAT, "HOW")] = "full",
    training: Annotated[Literal["sgd", "momentum", "adam"] | None, option(WHAT, "OPT")] = None,
    strict: Annotated[bool, option(WHAT)] = False,
    crosscheck: Annotated[bool, option(WHAT)] = False,
    duration: Annotated[bool, option(WHAT)] = False,
    no_cache: Annotated[bool, option(WHAT)] = False,
    phase: Annotated[PhaseName | None, option(LANGUAGE, "PHASE")] = None,
    prompt: Annotated[int | None, option(LANGUAGE, "N")] = None,
    context: Annotated[int | None, option(LANGUAGE, "N")] = None,
    generate: Annotated[int | None, option(LANGUAGE, "N")] = None,
    kv_cache: Annotated[str | None, option(LANGUAGE, "FORMAT")] = None,
    tensor_parallel: Annotated[int, option(RUN, "N")] = 1,
    pipeline: Annotated[int, option(RUN, "N")] = 1,
    data_parallel: Annotated[int, option(RUN, "N")] = 1,
    mode: Annotated[Mode, option(RUN, "MODE")] = "eager",
    cuda_graph: Annotated[bool, option(RUN)] = False,
    channels_last: Annotated[bool, option(RUN)] = False,
    host: Annotated[str, option(RUN, "HOST")] = "typical",
    measured: Annotated[str | None, option(RUN, "TIME@GPU")] = None,
    depth: Annotated[int | None, option(SHOW, "N")] = None,
    level: Annotated[Level, option(SHOW, "LEVEL")] = "module",
    columns: Annotated[list[str] | None, option(SHOW, "LIST")] = None,
    sort: Annotated[str | None, option(SHOW, "COLUMN")] = None,
    top: Annotated[int | None, option(SHOW, "N")] = None,
    filter: Annotated[str | None, option(SHOW, "GLOB")] = None,
    format: Annotated[Format, option(SHOW, "FORMAT")] = "table",
    output: Annotated[Path | None, option(SHOW, "FILE")] = None,
    wide: Annotated[bool, option(SHOW)] = False,
    html: Annotated[Path | None, option(DRAW, "FILE")] = None,
    roofline: Annotated[bool, option(DRAW)] = False,
    plot: Annotated[Path | None, option(DRAW, "FILE")] = None,
    plot_kind: Annotated[Kind | None, option(DRAW, "KIND")] = None,
    plot_theme: Annotated[Theme | None, option(DRAW, "THEME")] = None,
    traceback: Annotated[bool, option(SHOW)] = False,
) -> int:
    """Analyze one model.

    Args:
        model: resnet50, timm:NAME, model.py:build or model.yaml.
        input: One sample: 3x224x224, or ids=128:int64,mask=128:bool.
        batch: Batch sizes: 1 (the default), several as 1,8,64 or 1..512.
        sweep: A length by name: seq=128..4096 with --input ids=seq:int64.
        precision: fp32, tf32, fp16, bf16, amp-fp16, amp-bf16; several too.
        gpu: v100,t4 or "2070 super,clock=1815MHz" (see modelstat gpus).
        weights: Quantised weights: int8, int4, fp8 or nf4.
        activations: int8 or fp8 activations beside quantised weights.
        group: Weights that share a scale: 128 for int4, 64 for nf4.
        plan: YAML with weights and activations layer by layer.
        eval: Put a model of a file that is in training mode into eval.
        causal: Causal attention: full (the default) or half, as it runs.
        training: Add a training step: sgd, momentum or adam.
        strict: Exit with code 3 if an op has no formula.
        crosscheck: Compare MACs with fvcore and FlopCounterMode instead.
        duration: Add torchstat's duration: one timed run on this machine.
        no_cache: Trace again instead of reading the cache.
        phase: prefill, decode or serve a language model (hf:...).
        prompt: Tokens of a prompt, 2048 by default.
        context: Tokens in the cache before a decode, 2048 by default.
        generate: Tokens that serve writes, 256 by default.
        kv_cache: fp8 or int8: keys and values kept in one byte each.
        tensor_parallel: Split every layer over N GPUs.
        pipeline: Split the layers into N stages, a GPU each.
        data_parallel: N replicas, each with the batch.
        mode: eager (the default) or compile: kernels fused.
        cuda_graph: One launch for all kernels: no host cost per op.
        channels_last: Images with their channels innermost.
        host: fast, typical, slow, or microseconds to issue an op.
        measured: 12.3ms@rtx-3090 or a CSV: corrects other GPUs' times.
        depth: Levels of the module tree.
        level: module (the default) or op: one row per operator.
        columns: Columns, by name: params,flops,bound.
        sort: Sort by a column, largest first.
        top: The N heaviest modules, by --sort or else by time.
        filter: Rows whose path matches, such as "layer4.*".
        format: table, json, csv, tsv, markdown, latex, html, torchstat.
        output: Write to a file, whole or not at all.
        wide: All columns at full width.
        html: One page to look at and to filter; it needs no network.
        roofline: Draw the roofline below the table.
        plot: Draw a figure: .png, .svg or .pdf.
        plot_kind: roofline (the default), batch or gpus.
        plot_theme: light (the default), dark or paper.
        traceback: Show where an error came from.
    """
    import msgspec

    from modelstat.analysis import Analysis
    from modelstat.api import trace_spec
    from modelstat.cli.output import Output
    from modelstat.cli.progress import TraceProgress
    from modelstat.deploy.plan import make_plan
    from modelstat.deploy.quantized import planned
    from modelstat.errors import UsageError
    from modelstat.hardware.database import resolve
    from modelstat.report.options import Options

    del traceback  # modelstat.cli.entry looks for it, so that it also works where parsing fails
    # Whatever can be wrong without a model is found out before the model is traced.
    gpus = resolve(gpu or ())
    sizes = batches(batch or ())
    swept = ranges.parse(sweep, model, input, sizes, {
        "--training": bool(training), "--crosscheck": crosscheck, "--duration": duration, "--measured": measured is not None,
    })  # fmt: skip
    fixed = sizes[0] if swept else None
    check_input(swept.put(input, swept.sizes[0]) if swept and input else input, [fixed] if swept else sizes)
    sizes = list(swept.sizes) if swept else sizes
    runs = [(each, size) for each in precisions(precision or ()) for size in sizes]
    turning = format in ("table", "json") and bool(gpus) and len(sizes) > ranges.FEW
    several = parallel.layout(tensor_parallel, pipeline, data_parallel, gpus, format)
    precision_plan = make_plan(weights, activations, group, plan)
    if precision_plan is not None and (training or crosscheck):
        raise UsageError(f"--{'training' if training else 'crosscheck'} and a precision plan do not go together: leave one of them out")
    options = Options(tuple(words(columns or ())), depth, level, sort, top, filter, wide)
    running = execution(
        mode, host, measured, cuda_graph=cuda_graph, channels_last=channels_last, timed=bool(gpus), runs=len(runs)
    )
    if crosscheck:
        check_report(format, options, {
            "--gpu": bool(gpus), "--level op": level == "op", "--causal": causal != "full", "--strict": strict,
        })  # fmt: skip
    compared = msgspec.structs.replace(options, depth=None) if turning else options
    check(compared, format, timed=bool(gpus), several=len(runs) * max(1, len(gpus)) > 1, duration=duration)
    if format == "torchstat":
        check_torchstat(options, {
            "--gpu": bool(gpus), "--causal": causal != "full", "--training": training is not None, "--weights": weights is not None,
            "--activations": activations is not None, "--plan": plan is not None,
        })  # fmt: skip
    drawings = Drawings(html, plot, plot_kind, plot_theme, roofline=roofline)
    drawings.check(
        gpus=len(gpus), batches=len({size for _, size in runs}), precisions=len({each for each, _ in runs}), form=format,
        crosscheck=crosscheck, output=output,
    )  # fmt: skip
    language = asked(phase, prompt, context, generate, kv_cache)
    if language is not None:
        language.check({
            "--input": input is not None, "--training": training is not None, "--crosscheck": crosscheck, "--duration": duration,
            "--channels-last": channels_last, "--sweep": sweep is not None,
        })  # fmt: skip
        if language.serves:
            drawn = {"--html": html is not None, "--plot": plot is not None, "--roofline": roofline}
            apart = {"--weights": weights is not None, "--activations": activations is not None, "--plan": plan is not None}
            split = {"--tensor-parallel": tensor_parallel > 1, "--pipeline": pipeline > 1, "--data-parallel": data_parallel > 1}
            others = {"--measured": measured is not None, "--causal": causal != "full", "--strict": strict, **drawn, **apart, **split}
            language.check_report(format, options, level, others)

    def change(trace: Trace) -> Trace:
        return planned(trace, precision_plan) if precision_plan else trace

    with Output(output) as out, drawings:
        if language is not None and language.serves:
            return language.serve(model, gpus, running, runs, format, out, cache=not no_cache)
        with TraceProgress(f"tracing {model}", runs=len(runs) * (2 if training else 1)) as progress:

            def traced(precision: str | None, size: int | None, both_ways: bool) -> Trace:
                last = running.walks_channels_last and not both_ways
                spec, given, samples = model, input, size
                if swept and size:
                    spec, given, samples = swept.put(model, size), swept.put(input, size) if input else None, fixed
                with progress.run():
                    if language is not None:
                        return language.trace(model, size, precision, cache=not no_cache, progress=progress)
                    found = trace_spec(
                        spec, given, samples, precision, eval_mode=eval, training=both_ways, channels_last=last, cache=not no_cache,
                        progress=progress,
                    )  # fmt: skip
                return msgspec.structs.replace(found, model=model) if swept else found

            lengths = [size for size in sizes if size is not None]
            walks = [(each, ranges.series(lengths, swept, partial(traced, each, both_ways=False))) for each in precisions(precision or ())]
            traces = [change(each.at(size) if size else traced(name, size, False)) for name, each in walks for size in sizes]
            steps = [(traced(each, size, True), training) if training else None for each, size in runs]
        if crosscheck:
            return second_opinion(model, input, [size for _, size in runs], traces, eval, format, out)
        ratios = [correction(measured, trace, running, cache=not no_cache) if measured else None for trace in traces]
        analyses = [
            Analysis.from_trace(trace, gpus, level=level, causal=causal, training=step, execution=running, measured=ratio, layout=several)
            for trace, step, ratio in zip(traces, steps, ratios, strict=True)
        ]
        for analysis in analyses:
            analysis.require_peak()
            _ = analysis.parallels  # a layout that a model cannot take is an error before anything is written
        named = swept.name if swept else "batch"
        turns = ranges.entries(walks, lengths, gpus, running, named, depth, change) if turning and format == "json" else []
        durations = [_durations(model, input, size, eval) if duration else None for _, size in runs]
        write(analyses, format, compared, out, durations, turns)
        if several and format == "table":
            parallel.write(analyses, out)
        if turning and format == "table":
            ranges.write(walks, lengths, gpus, running, named, depth, change, out)
        drawings.draw(analyses, out, ops=level == "op")
    if strict:
        _refuse_unknown(analyses)
    return 0


def _durations(model: str, input: str | None, batch: int | None, eval_mode: bool) -> dict[int, float]:
    """Seconds of each leaf module in one real run, which needs weights: by index into the trace's modules."""
    from modelstat.measure.durations import leaf_durations
    from modelstat.sources import parse

    built = parse(model).build(input, batch, weights=True)
    if eval_mode:
        built.model.eval()
    return leaf_durations(built.model, built.args, built.kwargs)


def _refuse_unknown(analyses: Sequence[Analysis]) -> None:
    from modelstat.errors import StrictError
    from modelstat.units import percent

    unknown: dict[str, str] = {}
    for analysis in analyses:
        for op in (*analysis.document.coverage.unknown_ops, *(analysis.training.unknown_ops if analysis.training else ())):
            moved = analysis.totals.mem_read_bytes + analysis.totals.mem_write_bytes
            unknown.setdefault(op.name, f"{op.name} ({percent(op.bytes / moved if moved else 0.0)} of the bytes)")
    if unknown:
        names = ", ".join(unknown.values())
        raise StrictError(f"--strict: no formula for {names}: register one with modelstat.formula, or leave --strict out")
