"""``modelstat overlay MODEL FILE...``: profiles beside the prediction."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from modelstat.cli.lists import check_input, check_top, one_of_each
from modelstat.cli.options import DRAW, RUN, SHOW, WHAT, option
from modelstat.cli.run import Mode
from modelstat.report.plot.theme import Theme

if TYPE_CHECKING:
    from modelstat.report.document import Document

Form = Literal["table", "json", "csv", "markdown"]


def overlay(
    model: str,
    /,
    *files: Path,
    gpu: Annotated[str | None, option(WHAT, "NAME")] = None,
    input: Annotated[str | None, option(WHAT, "SHAPE")] = None,
    batch: Annotated[str | None, option(WHAT, "N")] = None,
    precision: Annotated[str | None, option(WHAT, "P")] = None,
    no_cache: Annotated[bool, option(WHAT)] = False,
    mode: Annotated[Mode, option(RUN, "MODE")] = "eager",
    channels_last: Annotated[bool, option(RUN)] = False,
    top: Annotated[int | None, option(SHOW, "N")] = None,
    format: Annotated[Form, option(SHOW, "FORMAT")] = "table",
    output: Annotated[Path | None, option(SHOW, "FILE")] = None,
    html: Annotated[Path | None, option(DRAW, "FILE")] = None,
    roofline: Annotated[bool, option(DRAW)] = False,
    plot: Annotated[Path | None, option(DRAW, "FILE")] = None,
    plot_theme: Annotated[Theme | None, option(DRAW, "THEME")] = None,
) -> None:
    """Lay profiles (ncu, nsys, torch.profiler) over a prediction.

    Args:
        model: A model as for analyze, or a report that --format json wrote.
        files: Profiles of one run; times and counters may be in different files.
        gpu: The GPU that was measured; by default the report's.
        input: One sample, as for analyze.
        batch: Batch size, 1 by default.
        precision: fp32, tf32, fp16, bf16, amp-fp16, amp-bf16.
        no_cache: Trace again instead of reading the cache.
        mode: eager (the default) or compile.
        channels_last: Images with their channels innermost.
        top: The N rows that took longest.
        format: table, json, csv or markdown.
        output: Write to a file, whole or not at all.
        html: The page, with the measured points on the roof.
        roofline: Draw the measured points on the roof below the table.
        plot: The measured points as a figure: .png, .svg or .pdf.
        plot_theme: light (the default), dark or paper.
    """
    from modelstat.analysis import Analysis
    from modelstat.api import trace_spec
    from modelstat.cli.drawings import Drawings
    from modelstat.cli.output import Output
    from modelstat.errors import InputError, UsageError
    from modelstat.hardware.database import resolve
    from modelstat.measure.imports.read import read_profile
    from modelstat.measure.join import joined
    from modelstat.measure.overlay import overlay as laid
    from modelstat.predict.execution import parse_execution
    from modelstat.report.overlay import render

    report = None
    if model.lower().endswith(".json"):
        report = _report(model)
        model, input, batch, precision, gpu = _asked(report, input, batch, precision, gpu)
    if not files:
        raise UsageError("overlay needs a profile: modelstat overlay MODEL --gpu NAME FILE")
    if gpu is None:
        raise UsageError("overlay needs the GPU that was measured: add --gpu NAME")
    gpus = resolve([gpu])
    if len(gpus) > 1:
        raise UsageError(f"--gpu {gpu}: a profile is of one GPU")
    size, precision = one_of_each("a profile", batch, precision)
    check_top(top, format)
    check_input(input, [size])
    execution = parse_execution(mode, channels_last=channels_last)
    drawings = Drawings(html, plot, None, plot_theme, roofline=roofline)
    drawings.check(gpus=1, batches=1, precisions=1, form=format, crosscheck=False, output=output)
    profile = joined([read_profile(file) for file in files])
    with Output(output) as out, drawings:
        trace = trace_spec(model, input, size, precision, channels_last=execution.walks_channels_last, cache=not no_cache)
        if report is not None and [each.shape for each in trace.inputs] != [each.shape for each in report.inputs]:
            raise InputError(f"{model}: the report's inputs cannot be made again: give the model itself, with --input and --batch")
        analysis = Analysis.from_trace(trace, gpus, execution=execution)
        analysis.require_peak()
        found = laid(trace, analysis.costs, analysis.rooflines[0], analysis.predictions[0], profile)
        render(found, format, out.stream, top=top)
        drawings.draw([analysis], out, overlay=found)


def _report(path: str) -> Document:
    """The report in a file. Raises InputError for anything else, and for one of several models or batches."""
    import msgspec

    from modelstat.errors import InputError
    from modelstat.report.document import Document

    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=Document)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise InputError(f"{path} is not a report of one model that --format json wrote: {error}") from error


def _asked(
    report: Document, input: str | None, batch: str | None, precision: str | None, gpu: str | None
) -> tuple[str, str | None, str | None, str | None, str | None]:
    """What a report was made of; options go before it."""
    if input is None and report.batch is not None:
        parts = [("x".join(map(str, each.shape[1:])) + f":{each.dtype}", each.name) for each in report.inputs]
        input = parts[0][0] if len(parts) == 1 else ",".join(f"{name}={text}" for text, name in parts)
    batch = batch or (None if report.batch is None else str(report.batch))
    return report.model.spec, input, batch, precision or report.precision, gpu or next((each.key for each in report.gpus), None)
