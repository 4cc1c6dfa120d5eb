"""``modelstat measure MODEL``: a stopwatch and a profiler on this machine, beside the prediction."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from modelstat.cli.lists import check_input, check_top, one_of_each
from modelstat.cli.options import DRAW, RUN, SHOW, WHAT, option
from modelstat.report.plot.theme import Theme

if TYPE_CHECKING:
    from modelstat.hardware.gpu import Gpu
    from modelstat.measure.measurement import Measurement
    from modelstat.records import Trace

Form = Literal["table", "json", "csv", "markdown"]


def measure(
    model: str,
    /,
    *,
    device: Annotated[Literal["cpu", "cuda", "mps"], option(WHAT, "DEVICE")] = "cpu",
    gpu: Annotated[str | None, option(WHAT, "NAME")] = None,
    input: Annotated[str | None, option(WHAT, "SHAPE")] = None,
    batch: Annotated[str | None, option(WHAT, "N")] = None,
    precision: Annotated[str | None, option(WHAT, "P")] = None,
    no_cache: Annotated[bool, option(WHAT)] = False,
    channels_last: Annotated[bool, option(RUN)] = False,
    seconds: Annotated[float, option(RUN, "S")] = 3.0,
    top: Annotated[int | None, option(SHOW, "N")] = None,
    format: Annotated[Form, option(SHOW, "FORMAT")] = "table",
    output: Annotated[Path | None, option(SHOW, "FILE")] = None,
    html: Annotated[Path | None, option(DRAW, "FILE")] = None,
    roofline: Annotated[bool, option(DRAW)] = False,
    plot: Annotated[Path | None, option(DRAW, "FILE")] = None,
    plot_theme: Annotated[Theme | None, option(DRAW, "THEME")] = None,
    save: Annotated[Path | None, option(SHOW, "FILE")] = None,
) -> None:
    """Time a model here, op by op, beside the prediction.

    Args:
        model: A model as for analyze; its weights are random.
        device: cpu (the default), cuda or mps.
        gpu: What to predict for; recognised on cuda, a calibrated file else.
        input: One sample, as for analyze.
        batch: Batch size, 1 by default.
        precision: fp32, tf32, fp16, bf16, amp-fp16, amp-bf16.
        no_cache: Trace again instead of reading the cache.
        channels_last: Images with their channels innermost.
        seconds: How long the stopwatch runs, warm-up included; 3 by default.
        top: The N ops that took longest.
        format: table, json, csv or markdown.
        output: Write to a file, whole or not at all.
        html: The page, with the measured points on the roof.
        roofline: Draw the measured points on the roof below the table.
        plot: The measured points as a figure: .png, .svg or .pdf.
        plot_theme: light (the default), dark or paper.
        save: Append the time to a CSV that --measured takes.
    """
    from modelstat.analysis import Analysis
    from modelstat.api import trace_spec
    from modelstat.cli.drawings import Drawings
    from modelstat.cli.output import Output
    from modelstat.errors import UsageError
    from modelstat.measure.save import append, check
    from modelstat.predict.execution import Execution
    from modelstat.sources import parse

    size, precision = one_of_each("one run", batch, precision)
    check_top(top, format)
    check_input(input, [size])
    if not 0 < seconds <= 3600:
        raise UsageError(f"--seconds {seconds:g}: give a time above 0 and of at most an hour")
    drawings = Drawings(html, plot, None, plot_theme, roofline=roofline)
    drawings.check(gpus=1, batches=1, precisions=1, form=format, crosscheck=False, output=output)
    board = _board(device, gpu)
    if save is not None:
        check(save)
    source = parse(model)
    # What follows imports torch.
    from modelstat.measure.measurement import measure as measured
    from modelstat.measure.session import check_device
    from modelstat.report.overlay import render

    check_device(device)
    execution = Execution(channels_last=channels_last)
    with Output(output) as out, drawings:
        trace = trace_spec(model, input, size, precision, channels_last=channels_last, cache=not no_cache)
        analysis = Analysis.from_trace(trace, [board], execution=execution)
        analysis.require_peak()
        built = source.build(input, size, weights=True)
        found = measured(built.model, built.args, built.kwargs, analysis, device, channels_last=channels_last, budget=seconds)
        render(found.overlay, format, out.stream, top=top, measurement=found)
        drawings.draw([analysis], out, overlay=found.overlay, measurement=found)
    if save is not None:
        name = gpu if gpu is not None and gpu.lower().endswith(".toml") else board.key
        append(save, _row(found, trace, name, model, input))


def _board(device: str, gpu: str | None) -> Gpu:
    """What to predict for. Raises UsageError where it was not named and cannot be recognised."""
    from modelstat.errors import UsageError
    from modelstat.hardware.database import resolve

    if gpu is not None:
        found = resolve([gpu])
        if len(found) > 1:
            raise UsageError(f"--gpu {gpu}: one machine is measured, give one")
        return found[0]
    if device != "cuda":
        raise UsageError(
            f"--device {device}: nothing is known of this machine: `modelstat calibrate --device {device} --output my-machine.toml` "
            "measures it, --gpu my-machine.toml takes that"
        )
    from modelstat.measure.local import local_gpu
    from modelstat.measure.session import check_device

    check_device(device)
    return local_gpu().gpu


def _row(found: Measurement, trace: Trace, gpu: str, model: str, input: str | None) -> dict[str, object]:
    from modelstat.cost.registry import costs

    shapes = "" if trace.batch is None or len(trace.inputs) != 1 else "x".join(map(str, trace.inputs[0].shape[1:]))
    return {
        "source": "modelstat-measure",
        "gpu": gpu,
        "model": model,
        "input": input or shapes,
        "batch": trace.batch or 1,
        "precision": trace.precision,
        "layout": "nhwc" if trace.layout == "channels-last" else "nchw",
        "mode": "eager",
        "measured_ms": f"{found.timing.median * 1e3:.6g}",
        "software": found.software,
        "params_m": f"{sum(each.elements for each in trace.parameters if each.kind == 'parameter') / 1e6:.6g}",
        "gmacs": f"{sum(cost.macs for cost in costs(trace)) / 1e9:.6g}",
    }
