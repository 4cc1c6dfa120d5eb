"""The grid of ``--by layer``: what was added, removed and changed between two variants, with the differences, and both totals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TextIO

import msgspec

from modelstat import units
from modelstat.errors import UsageError
from modelstat.report.caption import shared_caption
from modelstat.report.columns import find
from modelstat.report.compare_align import Change, Side, Status, align
from modelstat.report.document import Document
from modelstat.report.grid import Cell, Column, Grid, Row, formatted, signed
from modelstat.report.options import DEFAULT, Options

QUANTITIES = (
    Column("params", "params", "params", "count"),
    Column("macs", "macs", "MACs", "count"),
    Column("flops", "flops", "FLOPs", "count"),
    Column("rw", "mem_bytes", "MemR+W", "bytes"),
    Column("write", "mem_write_bytes", "MemWrite", "bytes"),
    Column("intensity", "intensity", "FLOP/B", "ratio"),
    Column("ideal", "ideal_ms", "ideal", "ms", timed=True),
    Column("predicted", "predicted_ms", "predicted", "ms", timed=True),
)
NAMES = (
    Column("layer", "layer", "layer (type)", "text"),
    Column("change", "change", "change", "text"),
    Column("path_before", "path_before", "path before", "text"),
    Column("path_after", "path_after", "path after", "text"),
    Column("type_before", "type_before", "type before", "text"),
    Column("type_after", "type_after", "type after", "text"),
    Column("bound", "predicted_bound", "bound", "text", timed=True),
)
SHOWN_AS = {each.field: each for each in QUANTITIES}
"""How a field of a Side is shown."""
DIFFERENCES = {each.name: msgspec.structs.replace(each, field=f"{each.field}_difference") for each in QUANTITIES}
BOTH = {
    f"{each.name}_{when}": msgspec.structs.replace(
        each, name=f"{each.name}_{when}", field=f"{each.field}_{when}", header=f"{each.header} {when}"
    )
    for each in QUANTITIES
    for when in ("before", "after")
}
CATALOGUE = {each.name: each for each in NAMES} | DIFFERENCES | BOTH
"""A quantity alone is its difference; ``params_before`` and ``params_after`` are its values."""

ROUNDING = 1e-9
"""Differences of times below this share are those of sums of floating-point numbers."""
ALIKE: dict[Status, str] = {"moved": "the same elsewhere", "same": "the same"}
"""What is summed up for a reader, and the word for it."""
WHERE = "in a comparison by layer"
READER = ("layer", "change", "params", "macs", "flops", "rw", "intensity", "bound", "ideal", "predicted")
DROP = ("flops", "ideal", "bound", "intensity", "rw", "params")
"""What goes first where the default columns do not fit."""


class Ends(msgspec.Struct, frozen=True, kw_only=True):
    """What one of the two variants is."""

    spec: str
    batch: int | None
    precision: str
    gpu: str | None
    versions: dict[str, str]


class LayerChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Two variants, layer by layer, as JSON. The differences of all ``layers`` sum to that of the totals."""

    schema: str = "modelstat-layers/1"
    before: Ends
    after: Ends
    layers: tuple[Change, ...]
    total_before: Side
    total_after: Side


def layer_changes(documents: Sequence[Document]) -> LayerChanges:
    """The two documents, aligned. Raises UsageError unless there are two, with at most one GPU each."""
    if len(documents) != 2 or any(len(document.gpus) > 1 for document in documents):
        points = sum(max(1, len(document.gpus)) for document in documents)
        raise UsageError(f"--by layer shows two models at one batch and precision on one GPU, not {points} rows: choose two")
    before, after = documents
    return LayerChanges(
        before=_ends(before), after=_ends(after), layers=align(before, after), total_before=_total(before), total_after=_total(after)
    )


def _ends(document: Document) -> Ends:
    gpu = document.gpus[0].name if document.gpus else None
    return Ends(spec=document.model.spec, batch=document.batch, precision=document.precision, gpu=gpu, versions=document.versions)


def _total(document: Document) -> Side:
    root, gpu = document.layers[0], document.gpus[0] if document.gpus else None
    return Side(
        path="",
        type=root.type,
        params=root.params,
        macs=root.macs,
        flops=root.flops,
        mem_bytes=root.mem_read_bytes + root.mem_write_bytes,
        mem_write_bytes=root.mem_write_bytes,
        intensity=root.intensity,
        ideal_ms=gpu.ideal_ms if gpu else None,
        predicted_ms=gpu.predicted_ms if gpu else None,
        bound=gpu.predicted_bound if gpu else None,
    )


def difference(change: Change, field: str) -> float | None:
    """By how much a layer costs more than before; None where a side is unknown. What is not there costs nothing."""
    old, new = (_of(side, field) for side in (change.before, change.after))
    if old is None or new is None:
        return None
    gained: float = new - old
    rounded = isinstance(gained, float) and abs(gained) <= ROUNDING * max(abs(old), abs(new))
    return 0 if rounded else gained


def _of(side: Side | None, field: str) -> Any:
    if side is None:
        return None if field == "intensity" else 0
    return getattr(side, field)


def check(options: Options, *, timed: bool) -> None:
    """Raises UsageError for a column that does not exist or needs a GPU, and for one that layers are not sorted by."""
    for name in options.columns:
        find(name, CATALOGUE, WHERE, timed=timed)
    if options.sort and find(options.sort, CATALOGUE, WHERE, timed=timed).name not in DIFFERENCES:
        raise UsageError(f"--sort {options.sort}: layers are sorted by a difference: choose from {', '.join(DIFFERENCES)}")


def changes_grid(documents: Sequence[Document], options: Options = DEFAULT, *, program: bool = False) -> Grid:
    """One row per layer that differs, in order; what is the same, or the same under another path, summed up; and the totals.

    ``sort`` orders by the size of a difference, ``top`` keeps the largest (by predicted time, or FLOPs without a GPU). For a ``program``
    (CSV) the default columns are both values and the difference of everything, and every layer has its row. Raises UsageError for a
    column that does not exist, and as :func:`layer_changes` does.
    """
    timed = all(document.gpus for document in documents)
    check(options, timed=timed)
    columns = _columns(options, timed=timed, program=program)
    key = find(options.sort or ("predicted" if timed else "flops"), CATALOGUE, WHERE, timed=timed)
    found = layer_changes(documents)
    shown = [change for change in found.layers if program or change.status not in ALIKE]
    if options.sort or options.top:
        field = next(each.field for each in QUANTITIES if each.name == key.name)
        shown.sort(key=lambda change: -abs(difference(change, field) or 0.0))
        cut = len(shown) if options.top is None else options.top
        shown, hidden = shown[:cut], shown[cut:]
    else:
        hidden = []
    rows = [_row(change, columns) for change in shown]
    if not program:
        rest = [([change for change in found.layers if change.status == status], word) for status, word in ALIKE.items()]
        rows += [_summed(some, word, columns) for some, word in ((hidden, "more"), *rest) if some]
        rows += _totals(found, columns)
    before, after = (document.model.spec for document in documents)
    return Grid(columns, tuple(rows), shared_caption(documents, f"layers that differ: {after} minus {before}"), drop=DROP)


def _columns(options: Options, *, timed: bool, program: bool) -> tuple[Column, ...]:
    if options.columns:
        return tuple(find(name, CATALOGUE, WHERE, timed=timed) for name in options.columns)
    names: list[str] = list(READER)
    if options.wide:
        names.insert(names.index("intensity"), "write")
    if program:
        names = ["change", "path_before", "path_after", "type_before", "type_after"]
        names += [name for each in QUANTITIES for name in (f"{each.name}_before", f"{each.name}_after", each.name)]
    return tuple(each for each in (CATALOGUE[name] for name in names) if timed or not each.timed)


def _row(change: Change, columns: Sequence[Column]) -> Row:
    side = change.after or change.before
    assert side is not None  # a change has at least one side
    return Row(tuple(_value(change, column) for column in columns), path=side.path, bound=side.bound)


def _value(change: Change, column: Column) -> Any:
    name = column.name
    if name == "layer":
        return layer_name(change)
    if name == "change":
        return change.status
    if name == "bound":
        return _then(change, "bound")
    if name in DIFFERENCES:
        return signed(column, difference(change, column.field.removesuffix("_difference")))
    field, _, when = column.field.rpartition("_")
    side = change.before if when == "before" else change.after
    return None if side is None else getattr(side, field)


def layer_name(change: Change) -> str:
    """``conv1 (Conv2d -> GhostModule)``: where it is, and what it became."""
    side = change.after or change.before
    assert side is not None
    names, types = _then(change, "path"), _then(change, "type")
    own = ", own ops" if change.own else ""
    return f"{names} ({types}{own})" if names else f"{types}{own}"


def _then(change: Change, field: str) -> str | None:
    """A text before and after, once where it is the same."""
    texts = dict.fromkeys(getattr(side, field) for side in (change.before, change.after) if side is not None)
    known = [text for text in texts if text]
    return " -> ".join(known) or None


def _summed(changes: Sequence[Change], word: str, columns: Sequence[Column]) -> Row:
    """Several layers in one row."""

    def value(column: Column) -> Any:
        if column.name == "layer":
            return f"{len(changes)} {'layer' if len(changes) == 1 else 'layers'} {word}"
        if column.name not in DIFFERENCES or column.name == "intensity":
            return None if column.kind != "text" else ""
        parts = [difference(change, column.field.removesuffix("_difference")) for change in changes]
        return None if None in parts else signed(column, sum(part for part in parts if part is not None))

    return Row(tuple(value(column) for column in columns))


def _totals(found: LayerChanges, columns: Sequence[Column]) -> list[Row]:
    """Both totals, their difference and that in percent."""
    before, after = found.total_before, found.total_after
    whole = Change("changed", before, after)

    def row(label: str, value: Callable[[Column, str], Any], *, total: bool) -> Row:
        cells: list[Any] = []
        for column in columns:
            if column.name == "layer":
                cells.append(label)
            elif column.name in DIFFERENCES or column.name == "bound":
                cells.append(value(column, column.field.removesuffix("_difference")))
            else:
                cells.append("" if column.kind == "text" else None)
        return Row(tuple(cells), total=total)

    def absolute(side: Side) -> Callable[[Column, str], Any]:
        def value(column: Column, field: str) -> Any:
            if column.name == "bound":
                return side.bound
            here = getattr(side, field)
            return None if here is None else Cell(here, formatted(column, here))

        return value

    def change(column: Column, field: str) -> Any:
        return "" if column.name == "bound" else signed(column, difference(whole, field))

    def share(column: Column, field: str) -> Any:
        if column.name == "bound":
            return ""
        old, gained = getattr(before, field), difference(whole, field)
        return None if gained is None or not old else Cell(gained / old, units.change(gained / old))

    return [
        row("total before", absolute(before), total=False),
        row("total after", absolute(after), total=False),
        row("difference", change, total=True),
        row("in percent", share, total=True),
    ]


def write_json(documents: Sequence[Document], file: TextIO) -> None:
    """Every layer with both sides, as JSON."""
    file.write(msgspec.json.format(msgspec.json.encode(layer_changes(documents)), indent=2).decode() + "\n")
