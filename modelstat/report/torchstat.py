"""torchstat's table: its columns, its numbers, its totals; and beside them what it leaves out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TextIO

import msgspec

from modelstat import units
from modelstat.cost.record import Cost
from modelstat.records import Module, Trace
from modelstat.report.grid import printable
from modelstat.report.torchstat_layers import counts

COUNTED = ("MAdd", "Flops", "MemRead(B)", "MemWrite(B)")
"""The columns that torchstat counts by a formula per layer type."""


class TorchstatRow(msgspec.Struct, frozen=True):
    """One layer without children, at its last call. Shapes are without the batch; ``memory`` is the bytes of its output.

    ``true_*`` are modelstat's numbers where torchstat knows none (Flops as torchstat would count them: a MAC is 1), else torchstat's
    own. ``unknown`` names the columns that torchstat does not know; ``duration`` is in seconds.
    """

    name: str
    type: str
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    params: int
    memory: float
    madd: int
    flops: int
    read: int
    write: int
    true_madd: int
    true_flops: int
    true_read: int
    true_write: int
    called: bool
    unknown: tuple[str, ...] = ()
    duration: float | None = None


class TorchstatTotals(msgspec.Struct, frozen=True):
    """Sums of the rows. Bytes in B; ``memory`` are the bytes of all output feature maps."""

    params: int
    memory: float
    madd: int
    flops: int
    read: int
    write: int

    @property
    def flops_per_byte(self) -> float | None:
        """Flops over the bytes of the output feature maps (FLOP/B): the intensity that torchstat's users compute."""
        return self.flops / self.memory if self.memory else None


class TorchstatReport(msgspec.Struct, frozen=True):
    """torchstat's rows and totals; ``complete`` takes the layers that it does not know at their true values."""

    rows: tuple[TorchstatRow, ...]
    total: TorchstatTotals
    complete: TorchstatTotals
    notes: tuple[str, ...]


def torchstat_rows(trace: Trace, costs: Sequence[Cost], durations: Mapping[int, float] | None = None) -> TorchstatReport:
    """One trace as torchstat sees it. ``durations`` are seconds by index into ``trace.modules``; None leaves the column out."""
    places: dict[int, list[int]] = {}
    for index, module in enumerate(trace.modules):
        places.setdefault(module.instance, []).append(index)
    ran: dict[int, list[int]] = {}
    for index, op in enumerate(trace.ops):
        ran.setdefault(trace.modules[op.module].instance, []).append(index)
    rows = tuple(
        _row(trace, costs, indices, ran.get(instance, []), durations)
        for instance, indices in places.items()
        if trace.modules[indices[0]].leaf
    )
    return TorchstatReport(rows, _totals(rows), _totals(rows, true=True), _notes(trace, costs, rows))


def _row(
    trace: Trace, costs: Sequence[Cost], indices: Sequence[int], ran: Sequence[int], durations: Mapping[int, float] | None
) -> TorchstatRow:
    """The row of one module, which may stand at several paths: named by the first, measured at the last call."""
    first, module = trace.modules[indices[0]], _last_called(trace, indices, ran)
    inputs = (module.last_input_shapes or module.input_shapes or ((),))[0]
    outputs = (module.last_output_shapes or module.output_shapes or ((),))[0]
    called = module.calls > 0
    item = next((spec.item_bytes for index in ran for spec in trace.ops[index].inputs if spec.is_floating), 4)
    known = counts(module, inputs, outputs) if called else None
    true = _true([costs[index] for index in ran])
    values = (known.madd, known.flops, _bytes(known.read, item), _bytes(known.write, item)) if known else (0, 0, 0, 0)
    listed = dict(zip(COUNTED, values, strict=True))
    madd, flops, read, write = (count or 0 for count in listed.values())
    true_values = (better if count is None else count for count, better in zip(listed.values(), true, strict=True))
    true_madd, true_flops, true_read, true_write = true_values
    params = sum(each.elements for each in trace.parameters if each.kind == "parameter" and each.module in indices)
    return TorchstatRow(
        name=first.path,
        type=first.type,
        input_shape=inputs[1:] if called else (0, 0, 0),
        output_shape=outputs[1:] if called else (0, 0, 0),
        params=params if called else 0,
        memory=prod(outputs) * item if called else 0,
        madd=madd,
        flops=flops,
        read=read,
        write=write,
        true_madd=true_madd,
        true_flops=true_flops,
        true_read=true_read,
        true_write=true_write,
        called=called,
        unknown=tuple(name for name, count in listed.items() if count is None),
        duration=None if durations is None else sum(durations.get(index, 0.0) for index in indices),
    )


def _last_called(trace: Trace, indices: Sequence[int], ran: Sequence[int]) -> Module:
    """The path at which a shared module ran last; one without ops says nothing, so the last path that was called."""
    if ran:
        return trace.modules[trace.ops[ran[-1]].module]
    called = [index for index in indices if trace.modules[index].calls]
    return trace.modules[(called or indices)[-1]]


def _bytes(elements: int | None, item: float) -> int | None:
    return None if elements is None else round(elements * item)


def _true(costs: Sequence[Cost]) -> tuple[int, int, int, int]:
    """MAdd, Flops (a MAC is 1), bytes read and written of all calls."""
    flops = sum(cost.flops - cost.macs for cost in costs)
    return sum(cost.madd for cost in costs), flops, sum(cost.read for cost in costs), sum(cost.write for cost in costs)


def _totals(rows: Sequence[TorchstatRow], *, true: bool = False) -> TorchstatTotals:
    prefix = "true_" if true else ""
    madd, flops, read, write = (sum(getattr(row, prefix + name) for row in rows) for name in ("madd", "flops", "read", "write"))
    return TorchstatTotals(sum(row.params for row in rows), sum(row.memory for row in rows), madd, flops, read, write)


def _notes(trace: Trace, costs: Sequence[Cost], rows: Sequence[TorchstatRow]) -> tuple[str, ...]:
    """Which layers torchstat does not know, which were never called, and what ran outside of every listed layer."""
    notes = []
    types = dict.fromkeys(row.type for row in rows if row.unknown)
    if types:
        notes.append(f"* a true value, not known to torchstat and zero in its total: {', '.join(map(printable, types))}")
    idle = [row.name for row in rows if not row.called and not row.type.endswith("(TorchScript)")]
    if idle:
        notes.append(f"never called: {', '.join(map(printable, idle))}")
    outside = [cost for op, cost in zip(trace.ops, costs, strict=True) if not trace.modules[op.module].leaf and not op.view]
    flops, moved = sum(cost.flops for cost in outside), sum(cost.bytes for cost in outside)
    if moved:
        notes.append(f"not in this table: {len(outside)} ops outside of layers, {units.count(flops)} FLOPs and {units.bytes_(moved)}")
    held = sum(each.elements for each in trace.parameters if each.kind == "parameter" and not trace.modules[each.module].leaf)
    if held:
        notes.append(f"not in this table: {held:,} parameters outside of layers")
    return tuple(notes)


def render(report: TorchstatReport, file: TextIO) -> None:
    """Write torchstat's table, its total, the total with the layers that it does not know, and its footer."""
    from tabulate import tabulate

    timed = bool(report.rows) and report.rows[0].duration is not None
    whole = sum(row.duration or 0.0 for row in report.rows)
    heads = ["module name", "input shape", "output shape", "params", "memory(MB)", *COUNTED]
    heads += ["duration[%]"] * timed + ["MemR+W(B)"]
    lines = []
    for row in report.rows:
        name = printable(row.name or row.type) + (" *" if row.unknown else "")
        shares = [units.percent((row.duration or 0.0) / whole) if whole else "-"] * timed
        lines.append([name, _shape(row.input_shape), _shape(row.output_shape), *_numbers(row, shares)])
    lines.append(["total", "", "", *_numbers(report.total, [units.percent(1.0) if whole else "-"] * timed)])
    if any(row.unknown for row in report.rows):
        lines.append(["total with *", "", "", *_numbers(report.complete, [""] * timed)])
    align = ["left"] + ["right"] * (len(heads) - 1)
    table = tabulate(lines, headers=heads, tablefmt="plain", colalign=align, disable_numparse=True)
    ruler = "=" * max(len(line) for line in table.splitlines())
    total = report.total
    ratio = "-" if total.flops_per_byte is None else f"{units.ratio(total.flops_per_byte)} FLOP/B"
    footer = [
        f"Total params: {total.params:,}",
        ruler.replace("=", "-"),
        f"Total memory: {units.mebibytes(total.memory)}",
        f"Total MAdd: {units.count(total.madd)}MAdd",
        f"Total Flops: {units.count(total.flops)}Flops",
        f"Total MemR+W: {units.mebibytes(total.read + total.write)}",
        f"Flops/memory: {ratio}",
    ]
    file.write("\n".join([table, ruler, *footer, *report.notes]) + "\n")


def _numbers(row: TorchstatRow | TorchstatTotals, shares: list[str]) -> list[str]:
    """The numbers of a line; what torchstat does not know of a layer is its true value, with a mark."""
    cells = [f"{value:,}" for value in (row.madd, row.flops, row.read, row.write)]
    moved = f"{row.read + row.write:,}"
    if isinstance(row, TorchstatRow) and row.unknown:
        true = (row.true_madd, row.true_flops, row.true_read, row.true_write)
        marked = [f"{value:,}*" if name in row.unknown else cell for name, value, cell in zip(COUNTED, true, cells, strict=True)]
        moved = moved if marked[2:] == cells[2:] else f"{row.true_read + row.true_write:,}*"
        cells = marked
    return [f"{row.params:,}", f"{row.memory / 2**20:.2f}", *cells, *shares, moved]


def _shape(shape: tuple[int, ...]) -> str:
    return " ".join(f"{size:>3}" for size in shape)
