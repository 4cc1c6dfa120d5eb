"""What changed between two models: an arrow from before to after for each layer that another one replaced."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from modelstat.report.chart.point import quotient
from modelstat.report.document import Document
from modelstat.report.rows import LayerRow
from modelstat.report.timing import GpuEntry


class State(msgspec.Struct, frozen=True):
    """A layer with all below it, in one of the two models: its type, counts, predicted (else ideal) time (s) and rate (FLOP/s)."""

    type: str
    params: int
    flops: int
    bytes: int
    intensity: float | None
    seconds: float | None
    rate: float | None


class Change(msgspec.Struct, frozen=True):
    """One layer that is not the same in both models; the root's path is ``""``. A state is None where the model has no such layer."""

    path: str
    before: State | None
    after: State | None


def changes(before: Document, after: Document, gpu: int = 0) -> tuple[Change, ...]:
    """The layers that differ in type, params, FLOPs or bytes between two documents, on their GPU of that index; the whole model first.

    Of nested layers those count where something was replaced: a parent that only holds a changed child is not listed, nor is what is below
    a layer whose type changed.
    """
    old, new = _states(before, gpu), _states(after, gpu)
    different = [path for path in dict.fromkeys((*old, *new)) if path and not _same(old.get(path), new.get(path))]
    outer = [path for path in different if _replaced(old, new, path)]
    kept: list[str] = []
    for path in outer:
        if not any(path.startswith(f"{parent}.") for parent in kept):
            kept.append(path)
    return tuple(Change(path, old.get(path), new.get(path)) for path in ("", *kept))


def _same(one: State | None, other: State | None) -> bool:
    return one is not None and other is not None and _counts(one) == _counts(other)


def _counts(state: State) -> tuple[str, int, int, int]:
    return state.type, state.params, state.flops, state.bytes


def _replaced(old: dict[str, State], new: dict[str, State], path: str) -> bool:
    """Whether the layer itself was replaced, added or removed, or has no children that could have been."""
    one, other = old.get(path), new.get(path)
    if one is None or other is None:
        return True
    return one.type != other.type or not any(each.startswith(f"{path}.") for each in (*old, *new))


def _states(document: Document, gpu: int) -> dict[str, State]:
    entry = document.gpus[gpu] if document.gpus else None
    return {layer.path: _state(layer, entry, index) for index, layer in enumerate(document.layers)}


def _state(layer: LayerRow, entry: GpuEntry | None, index: int) -> State:
    time = entry.layers[index] if entry else None
    ms = None if time is None else time.ideal_ms if time.predicted_ms is None else time.predicted_ms
    seconds = None if ms is None else ms / 1e3
    moved = layer.mem_read_bytes + layer.mem_write_bytes
    return State(layer.type, layer.params, layer.flops, moved, layer.intensity, seconds, quotient(layer.flops, seconds))


def documents_changes(documents: Sequence[Document], gpu: int = 0) -> tuple[Change, ...]:
    """The changes from the first of two documents to the second; none where there are not two."""
    return changes(documents[0], documents[1], gpu) if len(documents) == 2 else ()
