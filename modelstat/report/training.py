"""The ``training`` object of the JSON contract: what one step of training computes and holds."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from modelstat.cost.record import FREE, Cost
from modelstat.memory.training import training_memory
from modelstat.records import Trace
from modelstat.report.coverage import UnknownOp, coverage
from modelstat.report.rows import layer_rows


class TrainingLayer(msgspec.Struct, frozen=True):
    """The backward of one row of ``layers``, inclusive of everything below it: of the nodes of autograd that its forward made."""

    path: str
    backward_macs: int
    backward_flops: int
    backward_read_bytes: int
    backward_write_bytes: int


class TrainingEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One step, without the loss and the optimizer's own work. The four parts (B) are each at their own largest, the peak at once."""

    optimizer: str
    forward_macs: int
    forward_flops: int
    backward_macs: int
    backward_flops: int
    weight_bytes: int
    gradient_bytes: int
    optimizer_bytes: int
    activation_bytes: int
    peak_bytes: int
    peak_op: str
    peak_path: str
    peak_phase: str
    run: str
    unknown_ops: tuple[UnknownOp, ...]
    layers: tuple[TrainingLayer, ...]


def training_entry(trace: Trace, costs: Sequence[Cost], optimizer: str) -> TrainingEntry:
    """The entry of a trace that was walked forward and back. ``costs`` are those of its ops. Raises UsageError for another optimizer."""
    memory = training_memory(trace, optimizer)
    split = memory.backward
    forward, backward = costs[:split], costs[split:]
    peak = trace.ops[memory.op]
    return TrainingEntry(
        optimizer=optimizer,
        forward_macs=sum(cost.macs for cost in forward),
        forward_flops=sum(cost.flops for cost in forward),
        backward_macs=sum(cost.macs for cost in backward),
        backward_flops=sum(cost.flops for cost in backward),
        weight_bytes=memory.weight_bytes,
        gradient_bytes=memory.gradient_bytes,
        optimizer_bytes=memory.optimizer_bytes,
        activation_bytes=memory.activation_bytes,
        peak_bytes=memory.peak_bytes,
        peak_op=peak.name,
        peak_path=trace.modules[peak.module].path,
        peak_phase="forward" if memory.op < split else "backward",
        run=trace.run,
        unknown_ops=coverage(trace, costs).unknown_ops,
        layers=_layers(trace, backward),
    )


def _layers(trace: Trace, backward: Sequence[Cost]) -> tuple[TrainingLayer, ...]:
    forward = [FREE] * (len(trace.ops) - len(backward))
    return tuple(
        TrainingLayer(row.path, row.macs, row.flops, row.mem_read_bytes, row.mem_write_bytes)
        for row in layer_rows(trace, [*forward, *backward])
    )
