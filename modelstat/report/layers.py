"""The grid of one document: a row per module to some depth, or a row per op, and the totals."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from modelstat.errors import UsageError
from modelstat.report.caption import caption
from modelstat.report.columns import choose, column
from modelstat.report.document import Document
from modelstat.report.grid import Column, Grid, Row
from modelstat.report.options import DEFAULT, Options, ordered
from modelstat.report.rows import LayerRow, OpRow
from modelstat.report.timing import GpuEntry, LayerTime

DROP = ("madd", "output", "params", "read", "write", "macs")
"""What goes first where the default columns do not fit."""
COMFORTABLE_ROWS = 50
"""The default depth is the deepest one whose rows still fit two screens."""


Entry = tuple[LayerRow | OpRow, LayerTime | None]


def layer_grid(document: Document, options: Options = DEFAULT) -> Grid:
    """The rows of one document, timed on its first GPU if it has one.

    Raises UsageError for a column that does not exist or needs a GPU, a filter that matches nothing, and level op on a document that
    has no ops.
    """
    gpu = document.gpus[0] if document.gpus else None
    columns = choose(options.columns, options.level, timed=gpu is not None, wide=options.wide)
    entries = _entries(document, gpu, options)
    tree = options.level == "module" and not (options.sort or options.top or options.filter)
    if options.sort or options.top:
        key = column(options.sort or ("predicted" if gpu else "flops"), options.level, timed=gpu is not None)
        if options.sort or options.level == "module":
            entries = ordered(entries, lambda entry: _value(entry, key, gpu), key)
        entries = entries[: options.top]
    rows = [_row(entry, columns, gpu, indent=max(getattr(entry[0], "depth", 1) - 1, 0) if tree else 0) for entry in entries]
    rows.append(_total(document, columns, gpu))
    return Grid(columns, tuple(rows), caption(document, gpu), tree=tree, drop=DROP)


def default_depth(layers: Sequence[LayerRow]) -> int:
    """The deepest depth, at least 1, that shows at most COMFORTABLE_ROWS modules."""
    deepest = max((layer.depth for layer in layers), default=0)
    fitting = (depth for depth in range(deepest, 1, -1) if sum(0 < layer.depth <= depth for layer in layers) <= COMFORTABLE_ROWS)
    return next(fitting, 1)


def leaves(layers: Sequence[LayerRow]) -> list[int]:
    """Indices of the rows that have nothing below them."""
    parents = {layer.path.rpartition(".")[0] for layer in layers if layer.path}
    return [index for index, layer in enumerate(layers) if layer.path not in parents]


def _entries(document: Document, gpu: GpuEntry | None, options: Options) -> list[Entry]:
    found: list[Entry]
    if options.level == "op":
        if document.ops is msgspec.UNSET:
            raise UsageError("this document holds no ops: build it with level='op'")
        times = gpu.ops if gpu and gpu.ops is not msgspec.UNSET else (None,) * len(document.ops)
        found = list(zip(document.ops, times, strict=True))
    else:
        kept = _modules(document.layers, options)
        found = [(document.layers[index], gpu.layers[index] if gpu else None) for index in kept]
    if options.filter:
        found = [entry for entry in found if fnmatchcase(entry[0].path, options.filter)]
        if not found:
            paths = [layer.path for layer in document.layers if layer.path][:8]
            raise UsageError(f"--filter {options.filter!r} matches no path: paths look like {', '.join(paths) or 'the root only'}")
    return found


def _modules(layers: Sequence[LayerRow], options: Options) -> list[int]:
    """Indices of the rows to show; the root is the total, unless it is all there is."""
    if len(layers) == 1:
        return [0]
    if options.depth is None and not options.filter and (options.sort or options.top):
        return leaves(layers)
    everything = max(layer.depth for layer in layers)
    depth = options.depth if options.depth is not None else everything if options.filter else default_depth(layers)
    return [index for index, layer in enumerate(layers) if 0 < layer.depth <= depth]


def _value(entry: Entry, column: Column, gpu: GpuEntry | None) -> Any:
    row, time = entry
    name = column.field
    if name == "layer" and isinstance(row, LayerRow):
        return f"{row.path} ({row.type})" if row.path else row.type
    if name == "op" and isinstance(row, OpRow):
        return row.name if row.overload in ("", "default") else f"{row.name}.{row.overload}"
    if name == "mem_bytes":
        return row.mem_read_bytes + row.mem_write_bytes
    if name in ("ideal_share", "predicted_share"):
        return _share(time, gpu, name.replace("share", "ms"))
    if column.timed:
        return getattr(time, name)
    if name.startswith("own_") and isinstance(row, LayerRow):
        return getattr(row.own, name.removeprefix("own_"))
    return getattr(row, name)


def _share(time: LayerTime | None, gpu: GpuEntry | None, field: str) -> float | None:
    mine, total = getattr(time, field, None), getattr(gpu, field, None)
    return None if mine is None or not total else float(mine / total)


def _row(entry: Entry, columns: Sequence[Column], gpu: GpuEntry | None, *, indent: int) -> Row:
    row, time = entry
    return Row(tuple(_value(entry, each, gpu) for each in columns), row.path, indent, time.predicted_bound if time else None)


def _total(document: Document, columns: Sequence[Column], gpu: GpuEntry | None) -> Row:
    """The root's row, named total. At op level its names are those of a module."""
    root = document.layers[0]
    entry: Entry = (root, gpu.layers[0] if gpu else None)
    names = {"layer": "total", "path": "total", "op": "", "family": "", "known": ""}
    values = tuple(names[each.name] if each.name in names else _value(entry, each, gpu) for each in columns)
    return Row(values, bound=entry[1].predicted_bound if entry[1] else None, total=True)
