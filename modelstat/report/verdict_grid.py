"""The tables of a verdict: the totals, the times on each GPU, and the layers that changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelstat import units
from modelstat.report.caption import BRIEF
from modelstat.report.grid import Column, Grid, Kind, Row, compact, formatted
from modelstat.report.verdict import GpuVerdict, Run, Verdict
from modelstat.report.verdict_layers import Changed

COUNTS: tuple[tuple[str, str, Kind], ...] = (
    ("params", "params", "count"),
    ("macs", "MACs", "count"),
    ("flops", "FLOPs", "count"),
    ("mem_bytes", "MemR+W", "bytes"),
    ("memory_bytes", "feature maps", "bytes"),
    ("intensity", "FLOP/B", "ratio"),
)
"""Field, head and kind of what is counted; feature maps is what torchstat calls memory."""
TIMES: tuple[tuple[str, str, Kind], ...] = (
    ("whole_model_ms", "ideal, whole model", "ms"),
    ("ideal_ms", "ideal, sum of ops", "ms"),
    ("predicted_ms", "predicted", "ms"),
    ("idle_ms", "GPU idle", "ms"),
    ("kernels", "kernels", "integer"),
)
NARROW = ("params", "flops", "mem_bytes", "intensity")
"""Of the counts, those that the narrow table of layers has."""
ARROW = "→"


def change_text(share: float | None) -> str:
    """A change in percent with its sign.

    >>> change_text(-0.4321), change_text(1.9), change_text(0.0), change_text(None)
    ('-43.2 %', '+190 %', '0 %', '-')
    """
    if share is None:
        return "-"
    percent = 100 * share
    return f"{percent:+.0f} %" if abs(percent) >= 99.95 else "0 %" if abs(percent) < 0.05 else f"{percent:+.1f} %"


def _value(kind: Kind, value: Any) -> str:
    return formatted(Column("", "", "", kind), value)


def totals_grid(verdict: Verdict, run: Run) -> Grid:
    """What is counted of the whole model, and its times on each GPU: a row each, before, after and the change."""
    columns = (Column("what", "what", "total", "text"), *(Column(name, name, name, "figure") for name in ("before", "after", "change")))
    rows = [_row(head, kind, run.before, run.after, run.change, name) for name, head, kind in COUNTS]
    for gpu in run.gpus:
        mark = f"{gpu.name}: " if len(run.gpus) > 1 else ""
        rows += [_row(mark + head, kind, gpu.before, gpu.after, gpu.change, name) for name, head, kind in TIMES]
        rows.append(Row((f"{mark}ideal bound", gpu.before.ideal_bound or "-", gpu.after.ideal_bound or "-", "")))
        rows.append(Row((f"{mark}bound", gpu.before.bound or "-", gpu.after.bound or "-", "")))
    return Grid(columns, tuple(rows), caption(verdict, run))


def _row(head: str, kind: Kind, before: object, after: object, change: Mapping[str, float | None], name: str) -> Row:
    return Row((head, _value(kind, getattr(before, name)), _value(kind, getattr(after, name)), change_text(change[name])))


def layers_grid(verdict: Verdict, run: Run, *, wide: bool, gpu: int = 0) -> Grid:
    """A row for each layer that changed. ``wide`` gives all values before and after; else the counts are changes only."""
    timed = bool(run.gpus)
    counted = tuple(each for each in COUNTS if wide or each[0] in NARROW)
    heads = [(name, head) for name, head, _ in counted] + ([(name, name) for name in ("bound", "ideal", "predicted")] if timed else [])
    columns = [Column("layer", "path", "layer", "text"), *([Column("becomes", "becomes", "becomes", "text")] if wide else [])]
    columns += [Column(name, name, head, "figure") for name, head in heads]
    rows = []
    for layer in run.layers:
        values = [layer.path or "the model"]
        values += [f"{layer.type_before} {ARROW} {layer.type_after}{_absorbed(layer)}"] if wide else []
        for name, _, kind in counted:
            both = getattr(layer.before, name), getattr(layer.after, name)
            values.append(_pair(kind, *both, layer.change[name], whole=wide or name == "intensity"))
        values += _timed(layer, gpu, wide=wide) if timed else []
        rows.append(Row(tuple(values), layer.path, bound=layer.gpus[gpu].after.bound if timed else None))
    return Grid(tuple(columns), tuple(rows), caption(verdict, run))


def _absorbed(layer: Changed) -> str:
    names = [path.rpartition(".")[2] for path in layer.absorbed]
    return f" (with {', '.join(names)})" if names else ""


def _timed(layer: Changed, gpu: int, *, wide: bool) -> list[str]:
    one = layer.gpus[gpu]
    old, new = one.before.bound or "-", one.after.bound or "-"
    return [
        old if old == new else f"{old} {ARROW} {new}",
        _pair("ms", one.before.ideal_ms, one.after.ideal_ms, one.change["ideal_ms"], whole=wide),
        _pair("ms", one.before.predicted_ms, one.after.predicted_ms, one.change["predicted_ms"], whole=True),
    ]


def _pair(kind: Kind, before: Any, after: Any, change: float | None, *, whole: bool) -> str:
    """``23.00 → 4.00 (-83 %)``, or the change alone."""
    if not whole:
        return change_text(change).replace(" ", "")
    old, new = (compact(_value(kind, value)) for value in (before, after))
    return f"{old} {ARROW} {new} {change_text(change).replace(' ', '')}"


def caption(verdict: Verdict, run: Run) -> str:
    """What is needed to reproduce a table."""
    boards = [f"{gpu.name} ({peak_text(gpu)})" for gpu in run.gpus]
    batch = "batch as given" if run.batch is None else f"batch {run.batch}"
    version = f"modelstat {verdict.versions.get('modelstat', 'unknown')}"
    memory = "feature maps: outputs of layers, which torchstat calls memory"
    running = [verdict.execution] if verdict.execution else []
    what = f"{verdict.model}, {', '.join(verdict.rules)}"
    return "; ".join([what, f"{batch}, {run.precision}", *boards, *running, BRIEF, memory, version])


def peak_text(gpu: GpuVerdict) -> str:
    """Peak and bandwidth: ``9.29 TFLOP/s fp32, 448 GB/s``."""
    peak = "no peak" if gpu.peak_flops is None else f"{units.flops_rate(gpu.peak_flops)} {gpu.peak_column} dense"
    return f"{peak}, {units.bandwidth(gpu.bandwidth_bytes)}"
