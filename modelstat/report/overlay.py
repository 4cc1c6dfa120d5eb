"""A profile beside the prediction: the rows, what was not matched, and the totals."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from modelstat import units
from modelstat.report.grid import Column, Grid, Row, printable

if TYPE_CHECKING:
    from modelstat.measure.measurement import Measurement
    from modelstat.measure.overlay import Overlay
    from modelstat.measure.point import MeasuredPoint
    from modelstat.measure.steps import StepPoint
    from modelstat.report.summary import Line

COLUMNS: tuple[Column, ...] = (
    Column("layer", "path", "layer", "text"),
    Column("op", "name", "op", "text"),
    Column("launches", "launches", "kernels", "integer"),
    Column("measured", "measured_ms", "measured", "ms"),
    Column("predicted", "predicted_ms", "predicted", "ms"),
    Column("error", "error", "error", "text"),
    Column("rate", "flops_per_second", "FLOP/s", "rate"),
    Column("bandwidth", "bytes_per_second", "GB/s", "bandwidth"),
    Column("roof", "roof_share", "of roof", "share"),
)
COUNTED: tuple[Column, ...] = (
    Column("counted", "counted_flops_per_second", "counted FLOP/s", "rate"),
    Column("counted_bandwidth", "counted_bytes_per_second", "counted GB/s", "bandwidth"),
)
"""What the GPU's counters say, where they were read."""

DROP = ("launches", "counted_bandwidth", "bandwidth", "counted", "rate")
"""What goes first, in this order, where the columns do not fit."""
DROP_UNMATCHED = ("error", "bandwidth", "roof", "rate", "predicted")
"""The same where no kernel belongs to an op: counters are all that is known of them."""
LONGEST = 80
"""Characters of the longest word that folds well."""
LISTED = 8
"""Kernels and ops of one side only that the table spells out; JSON has all."""


class OverlayDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON of an overlay. Times are ms; shares and errors are 0..1 and signed; null is unknown."""

    schema: str
    model: str
    gpu: str
    file: str
    format: str
    matched_by: str
    op_share: float
    time_share: float | None
    points: list[dict[str, Any]]
    kernels: list[dict[str, Any]]
    uncovered: list[dict[str, Any]]
    steps: list[dict[str, Any]]
    mean: dict[str, Any] | None
    total: dict[str, Any]
    notes: tuple[str, ...]
    measurement: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    """The stopwatch's side, where the model was run here."""


def document(overlay: Overlay, measurement: Measurement | None = None) -> OverlayDocument:
    """The overlay as plain data, schema ``modelstat-overlay/1``."""
    return OverlayDocument(
        schema="modelstat-overlay/1",
        model=overlay.model,
        gpu=overlay.gpu,
        file=overlay.file,
        format=overlay.format,
        matched_by=overlay.how,
        op_share=overlay.op_share,
        time_share=overlay.time_share,
        points=[_plain(point) for point in overlay.points],
        kernels=[_plain(point) for point in overlay.kernels],
        uncovered=[_plain(point) for point in overlay.uncovered],
        steps=[_step(step) for step in overlay.steps],
        mean=None if overlay.mean is None else _plain(overlay.mean),
        total=_plain(overlay.total),
        notes=overlay.notes,
        measurement=msgspec.UNSET if measurement is None else _measurement(measurement),
    )


def _measurement(found: Measurement) -> dict[str, Any]:
    return {
        "device": found.device,
        "measured_ms": found.timing.median * 1e3,
        "low_ms": found.timing.low * 1e3,
        "high_ms": found.timing.high * 1e3,
        "runs": found.timing.runs,
        "predicted_ms": _ms(found.predicted_seconds),
        "error": found.error,
        "threads": found.threads,
        "software": found.software,
        "sensors": found.sensors or None,
    }


def _plain(record: msgspec.Struct) -> dict[str, Any]:
    """A record with its times in ms."""
    found: dict[str, Any] = {}
    for name, value in msgspec.to_builtins(record).items():
        if name.endswith("seconds"):
            found[{"seconds": "measured_ms"}.get(name, name.replace("_seconds", "_ms"))] = None if value is None else value * 1e3
        else:
            found[name] = value
    return found


def _step(step: StepPoint) -> dict[str, Any]:
    return {**_plain(step.point), "step": step.step, "ops": step.ops, "complete": step.complete}


def grid(overlay: Overlay, top: int | None = None) -> Grid:
    """One row a point, in the order of the model; with ``top`` the N that took longest. Kernels without an op come after the points."""
    shown = list(overlay.points)
    if top is not None:
        shown = sorted(shown, key=lambda point: -(point.seconds or 0.0))[:top]
    if not shown:
        shown = list(overlay.kernels[:top])
    counters = any(point.counted_flops is not None or point.counted_bytes is not None for point in (*overlay.points, *overlay.kernels))
    columns = (*COLUMNS, *COUNTED) if counters else COLUMNS
    rows = [Row(_values(point, columns), point.path) for point in shown]
    rows.append(Row(_values(overlay.total, columns), total=True))
    told = f"{overlay.model} on {overlay.gpu}, measured in {overlay.file} ({overlay.format})"
    return Grid(columns, tuple(rows), told, drop=DROP if overlay.points else DROP_UNMATCHED)


def error_text(error: float | None) -> str | None:
    """A signed prediction error.

    >>> error_text(0.123), error_text(-0.5), error_text(2.5)
    ('+12 %', '-50 %', '+250 %')
    """
    return None if error is None else f"{error * 100:+.0f} %"


def _values(point: MeasuredPoint, columns: Sequence[Column]) -> tuple[Any, ...]:
    values = {
        "layer": point.path or ("total" if point.name == "total" else None),
        "op": None if point.name == "total" else point.name,
        "launches": round(point.launches) or None,
        "measured": _ms(point.seconds),
        "predicted": _ms(point.predicted_seconds),
        "error": error_text(point.error),
        "rate": point.rate,
        "bandwidth": point.bandwidth,
        "roof": point.roof_share,
        "counted": point.counted_rate,
        "counted_bandwidth": point.counted_bandwidth,
    }
    return tuple(values[column.name] for column in columns)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3


def stopwatch_lines(found: Measurement) -> list[Line]:
    """The whole pass: measured with its spread, predicted, and on what."""
    time = found.timing
    low, high, middle = (units.seconds(each) for each in (time.low, time.high, time.median))
    predicted = "-" if found.predicted_seconds is None else units.seconds(found.predicted_seconds)
    error = "" if found.error is None else f" ({error_text(found.error)})"
    text = f"{middle} (5-95 %: {low} to {high}, {time.runs} runs), predicted {predicted}{error}"
    on = ", ".join(part for part in (found.device, found.sensors, f"{found.threads} threads", found.software) if part)
    return [("Whole pass", text), ("On", on)]


def lines(overlay: Overlay) -> list[Line]:
    """What stands below the table: the facts, and notes."""
    notes = [note for note in overlay.notes if not _has_command(note)]
    return [*facts(overlay), *(("Note" if index == 0 else "", printable(note)) for index, note in enumerate(notes))]


def facts(overlay: Overlay) -> list[Line]:
    """The match, the steps, and what is on one side only."""
    share = "" if overlay.time_share is None else f", with {units.percent(overlay.time_share)} of the measured time"
    how = "none" if overlay.how == "none" else f"by {overlay.how}: {units.percent(overlay.op_share)} of the model's ops{share}"
    found: list[Line] = [("Match", how)]
    times = sorted(step.point.seconds for step in overlay.steps if step.complete and step.point.seconds is not None)
    if len(times) > 1:
        found.append(("Steps", f"mean of {len(times)}; kernel time {units.seconds(times[0])} to {units.seconds(times[-1])}"))
    found += _listed("Unknown kernels", overlay.kernels, "measured")
    found += _listed("Ops without kernels", overlay.uncovered, "predicted")
    return found


def _has_command(note: str) -> bool:
    """Whether a note holds a command line too long for a table: it is printed as one line, so that it can be copied."""
    return any(len(word) > LONGEST for word in note.split())


def _listed(label: str, points: Sequence[MeasuredPoint], what: str) -> list[Line]:
    if not points:
        return []
    times = [point.seconds if what == "measured" else point.predicted_seconds for point in points]
    known = [time for time in times if time is not None]
    named = [
        f"{printable(_name(point))} {'-' if time is None else units.seconds(time)}" for point, time in zip(points, times, strict=True)
    ]
    more = f", and {len(named) - LISTED} more" if len(named) > LISTED else ""
    return [(label, f"{len(points)}, {units.seconds(sum(known))} {what}: {', '.join(named[:LISTED])}{more}")]


def _name(point: MeasuredPoint) -> str:
    name = f"{point.path} {point.name}" if point.path else point.name
    return name if len(name) <= 60 else f"{name[:57]}..."


def render(overlay: Overlay, form: str, file: TextIO, *, top: int | None = None, measurement: Measurement | None = None) -> None:
    """Write an overlay to ``file`` as table, json, csv or markdown; ``measurement`` is the stopwatch's side of it."""
    if form == "json":
        file.write(msgspec.json.format(msgspec.json.encode(document(overlay, measurement)), indent=2).decode() + "\n")
        return
    rows = grid(overlay, top)
    if form != "table":
        from modelstat.report.tabular import WRITERS

        WRITERS[form](rows, file)
        return
    from rich.console import Console

    from modelstat.report.table import WIDTH, fitted, lines_text, rows_table

    width = shutil.get_terminal_size((WIDTH, 24)).columns if file.isatty() else WIDTH
    table = rows_table(fitted(rows, width), width)
    console = Console(file=file, width=max(width, table.width or 0), highlight=False)
    head = [("Model", printable(overlay.model)), ("GPU", overlay.gpu), ("Measured", f"{printable(overlay.file)} ({overlay.format})")]
    console.print(lines_text(head, width))
    console.print()
    console.print(table)
    console.print()
    console.print(lines_text([*(stopwatch_lines(measurement) if measurement else []), *lines(overlay)], width))
    for note in filter(_has_command, overlay.notes):
        console.print(f"\n{printable(note)}", markup=False, soft_wrap=True)
