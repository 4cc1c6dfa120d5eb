"""The layers that a swap changed, each with what it was made of before and after."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from modelstat.analysis import Analysis
from modelstat.records import Swap, Trace
from modelstat.report.rows import intensity
from modelstat.report.torchstat import TorchstatRow, torchstat_rows


class Counts(msgspec.Struct, frozen=True):
    """What is counted. ``mem_bytes``: read and written (B); ``memory_bytes``: output feature maps as torchstat sums them (B)."""

    params: int
    macs: int
    flops: int
    mem_bytes: int
    memory_bytes: int
    intensity: float | None


class LayerTimes(msgspec.Struct, frozen=True):
    """One layer on one GPU (ms): ideal and predicted, and what limits each."""

    ideal_ms: float | None
    ideal_bound: str | None
    predicted_ms: float | None
    bound: str | None


class LayerGpu(msgspec.Struct, frozen=True):
    """One layer on one GPU, before and after; ``change`` are shares."""

    before: LayerTimes
    after: LayerTimes
    change: dict[str, float | None]


class Group(msgspec.Struct, frozen=True):
    """Modules that changed together: a swapped layer and what it absorbed. ``path`` is the layer's."""

    path: str
    before: str
    after: str
    paths: tuple[str, ...]


class Changed(msgspec.Struct, frozen=True):
    """One layer that changed, with what it absorbed: its counts, and its times on each GPU, in the order of the run's GPUs."""

    path: str
    type_before: str
    type_after: str
    absorbed: tuple[str, ...]
    before: Counts
    after: Counts
    change: dict[str, float | None]
    gpus: tuple[LayerGpu, ...]


def shares(before: msgspec.Struct, after: msgspec.Struct) -> dict[str, float | None]:
    """The change of every number as a share of what it was; None where one is unknown, or where it was zero and is not."""
    found: dict[str, float | None] = {}
    for name in before.__struct_fields__:
        old, new = getattr(before, name), getattr(after, name)
        if isinstance(old, str) or isinstance(new, str):
            continue
        found[name] = None if old is None or new is None or (old == 0 != new) else new / old - 1 if old else 0.0
    return found


def groups(swaps: Sequence[Swap]) -> tuple[Group, ...]:
    """Swaps that touch the same modules are one change: of rules that were applied one after another the outermost layer is named."""
    found: list[Group] = []
    for swap in swaps:
        if swap.after is None:
            continue
        paths = (swap.path, *swap.absorbed)
        index = next((index for index, group in enumerate(found) if any(_inside(path, group.paths) for path in paths)), None)
        if index is None:
            found.append(Group(swap.path, swap.before, swap.after, paths))
            continue
        old = found[index]
        after = swap.after if swap.path == old.path else old.after
        found[index] = msgspec.structs.replace(old, after=after, paths=tuple(dict.fromkeys((*old.paths, *paths))))
    return tuple(found)


def _inside(path: str, above: Sequence[str]) -> bool:
    return any(not each or path == each or path.startswith(f"{each}.") for each in above)


def counts(analysis: Analysis) -> Counts:
    """The totals of a model."""
    return _counts(analysis, range(len(analysis.trace.ops)), None, torchstat_rows(analysis.trace, analysis.costs).rows)


def changed(old: Analysis, new: Analysis, parts: Sequence[Group]) -> tuple[Changed, ...]:
    """Each group of modules in both models."""
    first, second = _ops(old.trace, parts), _ops(new.trace, parts)
    maps = [torchstat_rows(each.trace, each.costs).rows for each in (old, new)]
    rows = []
    for part, mine, theirs in zip(parts, first, second, strict=True):
        before, after = _counts(old, mine, part, maps[0]), _counts(new, theirs, part, maps[1])
        gpus = []
        for index in range(len(old.rooflines)):
            times = _times(old, mine, index), _times(new, theirs, index)
            gpus.append(LayerGpu(*times, shares(*times)))
        absorbed = tuple(path for path in part.paths if path != part.path and not _inside(path, (part.path,)))
        rows.append(Changed(part.path, part.before, part.after, absorbed, before, after, shares(before, after), tuple(gpus)))
    return tuple(rows)


def _ops(trace: Trace, parts: Sequence[Group]) -> list[list[int]]:
    """The ops of each group, by index into the trace."""
    homes = [next((index for index, part in enumerate(parts) if _inside(module.path, part.paths)), None) for module in trace.modules]
    found: list[list[int]] = [[] for _ in parts]
    for index, op in enumerate(trace.ops):
        home = homes[op.module]
        if home is not None:
            found[home].append(index)
    return found


def _counts(analysis: Analysis, ops: Sequence[int], part: Group | None, rows: Sequence[TorchstatRow]) -> Counts:
    trace, costs = analysis.trace, [analysis.costs[index] for index in ops]
    flops, moved = sum(cost.flops for cost in costs), sum(cost.bytes for cost in costs)
    held = [each for each in trace.parameters if each.kind == "parameter"]
    if part is not None:
        held = [each for each in held if _inside(trace.modules[each.module].path, part.paths)]
        rows = [row for row in rows if _inside(row.name, part.paths)]
    return Counts(
        params=sum(each.elements for each in held),
        macs=sum(cost.macs for cost in costs),
        flops=flops,
        mem_bytes=moved,
        memory_bytes=round(sum(row.memory for row in rows)),
        intensity=intensity(flops, moved),
    )


def _times(analysis: Analysis, ops: Sequence[int], gpu: int) -> LayerTimes:
    line, prediction = analysis.rooflines[gpu], analysis.predictions[gpu]
    ideal = [line.ops[index] for index in ops]
    known = all(time.compute_seconds is not None for time in ideal)
    compute, memory = sum(time.compute_seconds or 0.0 for time in ideal), sum(time.memory_seconds for time in ideal)
    ideal_ms = sum(time.ideal_seconds or 0.0 for time in ideal) * 1e3 if known else None
    ideal_bound = None if not known or compute == memory == 0.0 else "compute" if compute >= memory else "memory"
    if prediction.seconds is None:
        return LayerTimes(ideal_ms, ideal_bound, None, None)
    mine = [prediction.ops[index] for index in ops]
    running, waiting = sum(op.seconds for op in mine), sum(op.wait_seconds for op in mine)
    computing, moving = sum(op.compute_seconds for op in mine), sum(op.memory_seconds for op in mine)
    bound = None if not running else "overhead" if waiting > running else "compute" if computing >= moving else "memory"
    return LayerTimes(ideal_ms, ideal_bound, (running + waiting) * 1e3, bound)
