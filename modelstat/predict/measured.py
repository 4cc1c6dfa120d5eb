"""One measurement, or several, on a GPU that one owns correct the prediction for other GPUs."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from math import exp, log, sqrt
from pathlib import Path
from statistics import fmean, stdev

import msgspec

from modelstat import quantities, units
from modelstat.cost.registry import costs as costs_of
from modelstat.errors import InputError, ModelstatError, UsageError
from modelstat.hardware.database import find
from modelstat.hardware.gpu import Gpu
from modelstat.predict.execution import Execution
from modelstat.predict.prediction import OpPrediction, Prediction, predict
from modelstat.records import Trace

SPREAD = 0.15
"""Half of the 90 % interval that one ratio between two GPUs leaves: the mean error over a model zoo was 5 to 9.5 % (timm's throughput
tables of an RTX 3090, an RTX 4090 and an RTX 5090, read 2026-11-30)."""
NINETY = 1.645
"""Standard deviations on either side of the middle that hold 90 % of a normal distribution."""
FASTEST = 1e-7
"""A time below this (s) is no pass of a model."""
SHOWN = 3
"""Problems with single lines that a message spells out."""

PRECISIONS = frozenset(("fp32", "tf32", "fp16", "bf16", "amp-fp16", "amp-bf16"))
LAYOUTS = {"": False, "nchw": False, "nhwc": True}
NEEDED = ("gpu", "model", "input", "batch", "precision", "measured_ms")


class Row(msgspec.Struct, frozen=True):
    """One line of a file of measurements: ``seconds`` (s) is one pass of the whole batch."""

    line: int
    gpu: Gpu
    model: str
    input: str | None
    batch: int
    precision: str
    channels_last: bool
    mode: str
    seconds: float

    @property
    def walks_channels_last(self) -> bool:
        """As of an :class:`~modelstat.predict.execution.Execution`."""
        return self.channels_last and self.mode == "eager"


class Correction(msgspec.Struct, frozen=True):
    """What predicted times are multiplied by, how far nine times of ten may still be off (a share), and where it is from."""

    ratio: float
    spread: float
    source: str


def parse(text: str) -> tuple[float, Gpu]:
    """Seconds (s) and GPU of ``12.3ms@rtx-3090``. Raises UsageError and UnknownGpuError.

    >>> seconds, gpu = parse("12.3ms@rtx-3090")
    >>> seconds, gpu.key
    (0.0123, 'rtx-3090')
    """
    time, at, name = text.partition("@")
    if not at or not name.strip():
        raise UsageError(f"--measured {text!r}: give a time and the GPU it was measured on, such as 12.3ms@rtx-3090, or a CSV file")
    try:
        seconds = quantities.parse_seconds(time)
    except UsageError as error:
        raise UsageError(f"--measured {text!r}: {error}") from error
    if seconds < FASTEST:
        raise UsageError(f"--measured {text!r}: no model runs in {units.seconds(seconds)}, give the time of one pass of the whole batch")
    return seconds, find(name.strip())


def is_file(text: str) -> bool:
    """Whether ``--measured`` names a file and is no time."""
    return text.lower().endswith((".csv", ".tsv")) or ("@" not in text and Path(text).exists())


def read(path: Path) -> tuple[list[Row], list[str]]:
    """The rows of a CSV of measurements, and a sentence for each line that cannot be used. Raises InputError for an unreadable file.

    Columns: gpu, model, input, batch, precision, measured_ms, and as far as they are there layout (nchw, nhwc) and mode.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = [name for name in NEEDED if name not in (reader.fieldnames or ())]
            if missing:
                raise InputError(f"{path}: no column {', '.join(missing)}: the first line must name {', '.join(NEEDED)}")
            rows: list[Row] = []
            problems: list[str] = []
            for values in reader:
                try:
                    rows.append(_row(reader.line_num, values))
                except ModelstatError as error:
                    problems.append(f"line {reader.line_num}: {error}")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return rows, problems


def _row(line: int, values: Mapping[str, str | None]) -> Row:
    given = {name: (values.get(name) or "").strip() for name in (*NEEDED, "layout", "mode")}
    for name in ("gpu", "model"):
        if not given[name]:
            raise InputError(f"no {name}")
    try:
        batch, seconds = int(given["batch"]), float(given["measured_ms"]) / 1e3
    except ValueError as error:
        raise InputError(f"batch {given['batch']!r} and measured_ms {given['measured_ms']!r} must be numbers") from error
    if batch < 1 or not FASTEST <= seconds < float("inf"):
        raise InputError(f"batch {given['batch']} and measured_ms {given['measured_ms']} must be above 0")
    if given["precision"] not in PRECISIONS:
        raise InputError(f"precision {given['precision']!r} is not one of {', '.join(sorted(PRECISIONS))}")
    if given["layout"] not in LAYOUTS:
        raise InputError(f"layout {given['layout']!r} is neither nchw nor nhwc")
    mode = given["mode"] or "eager"
    if mode not in ("eager", "compile"):
        raise InputError(f"mode {mode!r} is neither eager nor compile")
    layout = LAYOUTS[given["layout"]]
    return Row(line, find(given["gpu"]), given["model"], given["input"] or None, batch, given["precision"], layout, mode, seconds)


def one(seconds: float, predicted: Prediction) -> Correction:
    """The correction by one time of the same pass on another GPU. Raises InputError where there is no prediction for that GPU."""
    if not predicted.seconds:
        raise InputError(f"--measured: no prediction for {predicted.gpu.name}: {predicted.missing or 'nothing runs there'}")
    ratio = seconds / predicted.seconds
    source = f"{units.seconds(seconds)} measured on {predicted.gpu.name}, where {units.seconds(predicted.seconds)} are predicted"
    return Correction(ratio, SPREAD, source)


def several(path: Path, trace: Trace, execution: Execution, trace_of: Callable[[Row], Trace]) -> Correction:
    """The correction by a file: the geometric mean of measured over predicted time on the GPU that its models were measured on.

    Rows of the same mode, layout and precision are used, ``trace_of`` walks their models; those of the very pass that is predicted go
    before all others. The spread is never below that of one ratio, and as wide as the rows differ. Rows that cannot be used are named
    in the source. Raises InputError without a row that can be used, and for rows of several GPUs.
    """
    rows, problems = read(path)
    wanted = (execution.mode, execution.channels_last, trace.precision)
    fitting = [row for row in rows if (row.mode, row.channels_last, row.precision) == wanted]
    gpus = dict.fromkeys(row.gpu.name for row in fitting)
    if len(gpus) > 1:
        raise InputError(f"{path}: rows of several GPUs ({', '.join(gpus)}): give those of one that you own")
    same: list[float] = []
    others: list[float] = []
    for row in fitting:
        try:
            walked = trace_of(row)
            ratio = one(row.seconds, predict(walked, costs_of(walked), row.gpu, execution)).ratio
        except ModelstatError as error:
            problems.append(f"line {row.line}: {error}")
            continue
        (same if walked.ops == trace.ops else others).append(log(ratio))
    ratios = same or others
    if not ratios:
        layout = "nhwc" if execution.channels_last else "nchw"
        why = f"; {'; '.join(problems[:SHOWN])}" if problems else ""
        raise InputError(f"{path}: no row of mode {execution.mode}, layout {layout} and precision {trace.precision} to be used{why}")
    differ = exp(NINETY * stdev(ratios) * sqrt(1 + 1 / len(ratios))) - 1 if len(ratios) > 1 else 0.0
    what = "of this very pass" if same else "of other models"
    source = f"{len(ratios)} times {what} measured on {next(iter(gpus))}"
    skipped = f"; skipped {len(problems)}: {'; '.join(problems[:SHOWN])}" if problems else ""
    return Correction(exp(fmean(ratios)), max(SPREAD, differ), source + skipped)


def correction(text: str, trace: Trace, execution: Execution, trace_of: Callable[[Row], Trace]) -> Correction:
    """The correction that ``--measured`` asks for: a time of this very pass on another GPU, or a file. Raises ModelstatError."""
    if is_file(text):
        return several(Path(text), trace, execution, trace_of)
    seconds, gpu = parse(text)
    return one(seconds, predict(trace, costs_of(trace), gpu, execution))


def corrected(prediction: Prediction, correction: Correction) -> Prediction:
    """The prediction times the ratio, with the interval that a ratio leaves; what lies outside of the fit still widens it."""
    if prediction.seconds is None:
        return prediction
    ratio = correction.ratio
    far = (1.0 + correction.spread) * prediction.widening
    seconds = prediction.seconds * ratio
    ops = tuple(
        OpPrediction(op.seconds * ratio, op.compute_seconds * ratio, op.memory_seconds * ratio, op.wait_seconds * ratio, op.bound)
        for op in prediction.ops
    )
    return msgspec.structs.replace(
        prediction,
        ops=ops,
        seconds=seconds,
        low_seconds=seconds / far,
        high_seconds=seconds * far,
        idle_seconds=None if prediction.idle_seconds is None else prediction.idle_seconds * ratio,
        scale=ratio,
        correction=f"all times x {ratio:.2f}: {correction.source}",
    )
