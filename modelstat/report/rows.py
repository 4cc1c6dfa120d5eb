"""One row per module and one per op: the counts of a trace, laid out as the JSON contract has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from modelstat.cost.record import Cost
from modelstat.records import Trace

Shapes = tuple[tuple[int, ...], ...]


class Own(msgspec.Struct, frozen=True):
    """What ran in the module's own forward, below no child. The sum over all rows is the model's total."""

    macs: int = 0
    flops: int = 0
    madd: int = 0
    mem_read_bytes: int = 0
    mem_write_bytes: int = 0


class LayerRow(msgspec.Struct, frozen=True):
    """One module under one parent path, inclusive of everything below it. The root's path is ``""``.

    ``params`` are the unique parameters that are registered first below this row. ``dtype`` is the dtype of most of the
    bytes that its ops write, null where it ran no op. ``intensity`` is FLOP/B, null where no byte moves.
    """

    path: str
    type: str
    depth: int
    calls: int
    input_shapes: Shapes
    output_shapes: Shapes
    dtype: str | None
    params: int
    trainable_params: int
    macs: int
    flops: int
    madd: int
    mem_read_bytes: int
    mem_write_bytes: int
    intensity: float | None
    own: Own


class OpRow(msgspec.Struct, frozen=True):
    """One recorded op that is not a view. ``path`` is the module whose forward ran it; ``known`` is formula, free or unknown."""

    path: str
    name: str
    overload: str
    family: str
    input_shapes: Shapes
    output_shapes: Shapes
    dtype: str
    macs: int
    flops: int
    madd: int
    mem_read_bytes: int
    mem_write_bytes: int
    intensity: float | None
    known: str


def intensity(flops: int, moved: int) -> float | None:
    """FLOPs per byte (FLOP/B); None where no byte moves.

    >>> intensity(1802240, 50048 + 131072) == 1802240 / 181120
    True
    """
    return flops / moved if moved else None


def layer_rows(trace: Trace, costs: Sequence[Cost]) -> tuple[LayerRow, ...]:
    """One row per module of the trace, in its order. ``costs`` are those of ``trace.ops``, in order."""
    modules = trace.modules
    own = [[0] * 5 for _ in modules]
    written: list[Counter[str]] = [Counter() for _ in modules]
    for op, cost in zip(trace.ops, costs, strict=True):
        counts = (cost.macs, cost.flops, cost.madd, cost.read, cost.write)
        own[op.module] = [mine + more for mine, more in zip(own[op.module], counts, strict=True)]
        for index, spec in enumerate(() if op.view else op.outputs):
            if index not in op.unused_outputs:
                written[op.module][spec.dtype] += spec.bytes
    params = [[0, 0] for _ in modules]
    for parameter in trace.parameters:
        if parameter.kind == "parameter":
            params[parameter.module][0] += parameter.elements
            params[parameter.module][1] += parameter.elements if parameter.trainable else 0
    inclusive: list[list[int]] = [counts + elements for counts, elements in zip(own, params, strict=True)]
    for index in range(len(modules) - 1, 0, -1):  # parents come first, so a child is complete before it is added to its parent
        parent = modules[index].parent
        inclusive[parent] = [mine + more for mine, more in zip(inclusive[parent], inclusive[index], strict=True)]
        written[parent].update(written[index])
    rows = []
    for module, sums, mine, dtypes in zip(modules, inclusive, own, written, strict=True):
        macs, flops, madd, read, write, elements, trainable = sums
        rows.append(
            LayerRow(
                path=module.path,
                type=module.type,
                depth=module.depth,
                calls=module.calls,
                input_shapes=module.input_shapes,
                output_shapes=module.output_shapes,
                dtype=dtypes.most_common(1)[0][0] if dtypes else None,
                params=elements,
                trainable_params=trainable,
                macs=macs,
                flops=flops,
                madd=madd,
                mem_read_bytes=read,
                mem_write_bytes=write,
                intensity=intensity(flops, read + write),
                own=Own(*mine),
            )
        )
    return tuple(rows)


def op_rows(trace: Trace, costs: Sequence[Cost]) -> tuple[OpRow, ...]:
    """One row per op that is not a view, in the order in which they ran."""
    return tuple(
        OpRow(
            path=trace.modules[op.module].path,
            name=op.name,
            overload=op.overload,
            family=cost.family,
            input_shapes=tuple(spec.shape for spec in op.inputs),
            output_shapes=tuple(spec.shape for spec in op.outputs),
            dtype=cost.dtype,
            macs=cost.macs,
            flops=cost.flops,
            madd=cost.madd,
            mem_read_bytes=cost.read,
            mem_write_bytes=cost.write,
            intensity=intensity(cost.flops, cost.bytes),
            known=cost.known,
        )
        for op, cost in zip(trace.ops, costs, strict=True)
        if not op.view
    )
