"""The JSON contract ``modelstat/1``: one document per model, batch and precision. Every other report is drawn from it.

Counts are integers for the whole batch; bytes are B, times ms, rates per second. null means unknown or not applicable, never zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from modelstat import __version__
from modelstat.cost.record import Cost
from modelstat.memory.peak import peak_memory, weight_bytes
from modelstat.predict.advice import advise
from modelstat.predict.prediction import Prediction
from modelstat.predict.roofline import Roofline
from modelstat.records import Input, Trace
from modelstat.report.coverage import Coverage, coverage
from modelstat.report.layouts import LayoutEntry
from modelstat.report.rows import LayerRow, OpRow, intensity, layer_rows, op_rows
from modelstat.report.timing import GpuEntry, gpu_entry
from modelstat.report.training import TrainingEntry
from modelstat.report.turns import CrossingsEntry

Level = Literal["module", "op"]

LISTED = 10
"""How many names a warning spells out."""

CONVENTION = (
    "MACs: contractions, without bias. FLOPs: all floating-point operations, a MAC = 2, biases included. "
    "MAdd: torchstat's multiplies and adds. MemRead and MemWrite: inputs with parameters, and outputs, once per op at their real dtype. "
    "Counts are for the whole batch; peaks are dense with fp32 accumulation; decimal prefixes (GB = 1e9 B)."
)
"""How everything in a document is counted; changes only with the schema."""


class ModelEntry(msgspec.Struct, frozen=True):
    """The model: its spec and the elements of its unique parameters and buffers."""

    spec: str
    params: int
    trainable_params: int
    buffers: int


class Totals(msgspec.Struct, frozen=True):
    """Sums over the model. ``weight_bytes``: parameters, buffers and packed weights, each storage once (B).

    ``peak_memory_bytes``: the weights, and the largest set of other storages alive at once (B).
    """

    params: int
    macs: int
    flops: int
    madd: int
    activations: int
    mem_read_bytes: int
    mem_write_bytes: int
    intensity: float | None
    weight_bytes: int
    peak_memory_bytes: int


class MemoryEntry(msgspec.Struct, frozen=True):
    """Peak memory at inference (B): the weights, the largest set of other storages alive at once, and both together.

    ``peak_op`` and ``peak_path`` are the op at which that is, and the module whose forward ran it; null where no op runs.
    """

    weight_bytes: int
    activation_bytes: int
    peak_bytes: int
    peak_op: str | None
    peak_path: str | None


class Family(msgspec.Struct, frozen=True):
    """Totals of one family of ops (convolution, norm, elementwise, ...)."""

    family: str
    ops: int
    macs: int
    flops: int
    mem_read_bytes: int
    mem_write_bytes: int


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One analysis. ``ops`` is there at level op only; ``training``, ``layouts`` and ``crossings`` where they were asked for.

    ``gpus`` is empty without a GPU; ``layouts`` and ``crossings`` have an entry for each.
    """

    schema: Literal["modelstat/1"]
    versions: dict[str, str]
    convention: str
    warnings: tuple[str, ...]
    model: ModelEntry
    inputs: tuple[Input, ...]
    batch: int | None
    precision: str
    totals: Totals
    coverage: Coverage
    layers: tuple[LayerRow, ...]
    ops: tuple[OpRow, ...] | msgspec.UnsetType = msgspec.UNSET
    gpus: tuple[GpuEntry, ...]
    families: tuple[Family, ...]
    memory: MemoryEntry
    training: TrainingEntry | msgspec.UnsetType = msgspec.UNSET
    layouts: tuple[LayoutEntry, ...] | msgspec.UnsetType = msgspec.UNSET
    crossings: tuple[CrossingsEntry, ...] | msgspec.UnsetType = msgspec.UNSET


def totals(trace: Trace, costs: Sequence[Cost]) -> Totals:
    """The sums over all ops and unique parameters."""
    flops, read, write = (sum(getattr(cost, field) for cost in costs) for field in ("flops", "read", "write"))
    return Totals(
        params=sum(each.elements for each in trace.parameters if each.kind == "parameter"),
        macs=sum(cost.macs for cost in costs),
        flops=flops,
        madd=sum(cost.madd for cost in costs),
        activations=sum(cost.activations for cost in costs),
        mem_read_bytes=read,
        mem_write_bytes=write,
        intensity=intensity(flops, read + write),
        weight_bytes=weight_bytes(trace),
        peak_memory_bytes=peak_memory(trace).peak_bytes,
    )


def memory(trace: Trace) -> MemoryEntry:
    """What the model holds at once, and where that is."""
    peak = peak_memory(trace)
    op = None if peak.op is None else trace.ops[peak.op]
    return MemoryEntry(
        weight_bytes=peak.weight_bytes,
        activation_bytes=peak.activation_bytes,
        peak_bytes=peak.peak_bytes,
        peak_op=op.name if op else None,
        peak_path=trace.modules[op.module].path if op else None,
    )


def families(trace: Trace, costs: Sequence[Cost]) -> tuple[Family, ...]:
    """Totals by family, the one with most FLOPs first."""
    groups: dict[str, list[Cost]] = {}
    for op, cost in zip(trace.ops, costs, strict=True):
        if not op.view:
            groups.setdefault(cost.family, []).append(cost)
    found = [
        Family(
            family=name,
            ops=len(members),
            macs=sum(cost.macs for cost in members),
            flops=sum(cost.flops for cost in members),
            mem_read_bytes=sum(cost.read for cost in members),
            mem_write_bytes=sum(cost.write for cost in members),
        )
        for name, members in groups.items()
    ]
    return tuple(sorted(found, key=lambda family: (-family.flops, family.family)))


def warnings(trace: Trace, covered: Coverage, training: TrainingEntry | None = None) -> tuple[str, ...]:
    """The trace's notes, the modules that were never called and the ops without a formula."""
    found = list(trace.notes)
    idle = never_called(trace)
    if idle:
        more = f" and {len(idle) - LISTED} more" if len(idle) > LISTED else ""
        found.append(f"never called: {', '.join(idle[:LISTED])}{more}")
    if covered.unknown_ops:
        names = ", ".join(f"{op.name} ({op.count}x)" for op in covered.unknown_ops)
        found.append(f"no formula for {names}: {covered.unknown_byte_share:.1%} of the bytes, their FLOPs are not counted")
    if training is not None and training.unknown_ops:
        names = ", ".join(f"{op.name} ({op.count}x)" for op in training.unknown_ops)
        found.append(f"no formula for {names} in training: their FLOPs are not counted there")
    return tuple(dict.fromkeys(found))


PASSING = ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "DropPath", "Identity")
"""Ends of the names of layers that pass everything on at inference."""


def never_called(trace: Trace) -> list[str]:
    """Paths of the modules that ran nothing, nor did anything below them; of nested ones only the outermost.

    A ModuleList is never called itself, a shared module may be called under another of its paths, a parameter can be used without its
    module's forward, a packed weight is always its parent's, and the calls inside TorchScript are out of sight: none of them is idle.
    A dropout or an identity is not named: attention takes its dropout as a number and leaves the layer aside, in most transformers.
    """
    called = {module.instance for module in trace.modules if module.calls}
    idle = [module.instance not in called and not module.type.endswith("(TorchScript)") for module in trace.modules]
    for op in trace.ops:
        idle[op.module] = False
    read = {spec.value for op in trace.ops for spec in op.inputs}
    for parameter in trace.parameters:
        if parameter.value in read or (parameter.kind == "packed" and not idle[trace.modules[parameter.module].parent]):
            idle[parameter.module] = False
    for index in range(len(trace.modules) - 1, 0, -1):
        if not idle[index]:
            idle[trace.modules[index].parent] = False
    return [
        module.path or module.type
        for module, quiet in zip(trace.modules, idle, strict=True)
        if quiet and not module.type.endswith(PASSING) and (module.parent < 0 or not idle[module.parent])
    ]


def versions(trace: Trace) -> dict[str, str]:
    """The trace's versions (torch, the model's package) and modelstat's own."""
    return {"modelstat": __version__, **{name: text for name, text in trace.versions.items() if name != "modelstat"}}


def build(
    trace: Trace,
    costs: Sequence[Cost],
    rooflines: Sequence[Roofline] = (),
    *,
    level: Level = "module",
    predictions: Sequence[Prediction] = (),
    training: TrainingEntry | None = None,
    layouts: tuple[LayoutEntry, ...] | None = None,
) -> Document:
    """The document of one trace. ``costs`` are those of ``trace.ops`` in order; one roofline per GPU, and one prediction or none at all.

    What would help is asked of a lone GPU only: each answer is a prediction of its own.
    """
    covered, sums = coverage(trace, costs), totals(trace, costs)
    parameters = [each for each in trace.parameters if each.kind == "parameter"]
    advice = advise(trace, costs, predictions[0]) if len(predictions) == 1 else None
    predicted: Sequence[Prediction | None] = predictions or [None] * len(rooflines)
    return Document(
        schema="modelstat/1",
        versions=versions(trace),
        convention=CONVENTION,
        warnings=warnings(trace, covered, training),
        model=ModelEntry(
            spec=trace.model,
            params=sums.params,
            trainable_params=sum(each.elements for each in parameters if each.trainable),
            buffers=sum(each.elements for each in trace.parameters if each.kind == "buffer"),
        ),
        inputs=trace.inputs,
        batch=trace.batch,
        precision=trace.precision,
        totals=sums,
        coverage=covered,
        layers=layer_rows(trace, costs),
        ops=op_rows(trace, costs) if level == "op" else msgspec.UNSET,
        gpus=tuple(
            gpu_entry(trace, costs, roofline, prediction, advice, level=level)
            for roofline, prediction in zip(rooflines, predicted, strict=True)
        ),
        families=families(trace, costs),
        memory=memory(trace),
        training=msgspec.UNSET if training is None else training,
        layouts=msgspec.UNSET if layouts is None else layouts,
    )
