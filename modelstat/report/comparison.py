"""The grid of several documents or GPUs: one row per model, batch, precision and GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from modelstat.errors import UsageError
from modelstat.report.caption import shared_caption
from modelstat.report.columns import find
from modelstat.report.compare_rows import Pair, grouped, relative, strongest
from modelstat.report.document import Document
from modelstat.report.grid import Column, Grid, Row
from modelstat.report.options import DEFAULT, Options, ordered
from modelstat.report.timing import GpuEntry

COLUMNS = (
    Column("model", "model", "model", "text"),
    Column("input", "input", "input", "shapes"),
    Column("batch", "batch", "batch", "integer"),
    Column("precision", "precision", "precision", "text"),
    Column("gpu", "gpu", "GPU", "text", timed=True),
    Column("params", "params", "params", "count"),
    Column("macs", "macs", "MACs", "count"),
    Column("flops", "flops", "FLOPs", "count"),
    Column("rw", "mem_bytes", "MemR+W", "bytes"),
    Column("held", "peak_memory_bytes", "peak mem", "bytes"),
    Column("intensity", "intensity", "FLOP/B", "ratio"),
    Column("peak", "peak_flops", "peak", "rate", timed=True),
    Column("bandwidth", "bandwidth_bytes", "bandwidth", "bandwidth", timed=True),
    Column("ridge", "ridge", "ridge", "ratio", timed=True),
    Column("bound", "predicted_bound", "bound", "text", timed=True),
    Column("whole", "whole_model_ms", "whole", "ms", timed=True),
    Column("ideal", "ideal_ms", "ideal", "ms", timed=True),
    Column("upper", "ideal_upper_ms", "upper", "ms", timed=True),
    Column("predicted", "predicted_ms", "predicted", "ms", timed=True),
    Column("low", "predicted_low_ms", "low", "ms", timed=True),
    Column("high", "predicted_high_ms", "high", "ms", timed=True),
    Column("throughput", "throughput", "samples/s", "speed", timed=True),
    Column("sample", "ideal_ms_per_sample", "/sample", "ms", timed=True),
    Column("ideal_bound", "bound", "ideal bound", "text", timed=True),
    Column("idle", "idle_ms", "idle", "ms", timed=True),
    Column("kernels", "kernels", "kernels", "count", timed=True),
    Column("fits", "fits", "fits", "flag", timed=True),
)
CATALOGUE = {column.name: column for column in COLUMNS}
TELLING = ("model", "input", "batch", "precision", "gpu", "params")
"""Columns that are shown only where they tell rows apart: what is the same everywhere stands in the header or the caption."""
WIDE = ("peak", "bandwidth", "ideal_bound", "idle", "kernels")
"""Columns of the wide table: the header says the first two too."""

DROP = ("held", "upper", "whole", "params", "macs", "fits", "ridge", "sample", "rw")
"""What goes first where the default columns do not fit: of one model, whose counts are the same on each GPU."""
DROP_OF_MODELS = ("upper", "whole", "sample", "fits", "low", "high", "ridge", "throughput", "held", "rw", "flops", "ideal")
"""The same where models are compared."""


def check(options: Options, *, timed: bool) -> None:
    """Raises UsageError for a column that a comparison does not have or that needs a GPU, and for options of a module tree."""
    if options.level == "op" or options.filter or options.depth is not None:
        raise UsageError("--depth, --filter and --level op show one model on one GPU: give one batch, precision and GPU, or --format json")
    for name in (*options.columns, *([options.sort] if options.sort else [])):
        find(name, CATALOGUE, "in a comparison", timed=timed)


def comparison_grid(documents: Sequence[Document], options: Options = DEFAULT) -> Grid:
    """One row per document and GPU, models beside each other that run on the same GPU at the same batch and precision.

    The best value of each such group is marked as strong. Raises UsageError as :func:`check` does.
    """
    check(options, timed=any(document.gpus for document in documents))
    pairs: list[Pair] = []
    for document in documents:
        pairs.extend((document, gpu) for gpu in document.gpus or (None,))
    timed = any(gpu for _, gpu in pairs)
    columns = _columns(pairs, options, timed=timed)
    groups = grouped(pairs)
    pairs = [pair for group in groups for pair in group]
    values = {id(pair): tuple(_value(*pair, each.name) for each in columns) for pair in pairs}
    strong = strongest(groups, columns, values)
    remarks: tuple[str, ...] = ()
    if options.relative:
        columns, values = relative(groups, columns, values)
        remarks = (f"values as multiples of {documents[0].model.spec}",)
    if options.sort or options.top:
        key = find(options.sort or ("predicted" if timed else "flops"), CATALOGUE, "in a comparison", timed=timed)
        pairs = ordered(pairs, lambda pair: _value(*pair, key.name), key) if options.sort else pairs
        pairs = pairs[: options.top]
    rows = [Row(values[id(pair)], bound=pair[1].predicted_bound if pair[1] else None, strong=strong[id(pair)]) for pair in pairs]
    models = len({document.model.spec for document in documents})
    return Grid(columns, tuple(rows), shared_caption(documents, *remarks), drop=DROP_OF_MODELS if models > 1 else DROP)


def _columns(pairs: Sequence[Pair], options: Options, *, timed: bool) -> tuple[Column, ...]:
    if options.columns:
        return tuple(find(name, CATALOGUE, "in a comparison", timed=timed) for name in options.columns)
    possible = [each for each in COLUMNS if timed or not each.timed]
    if options.wide:
        return tuple(possible)
    same = {name for name in TELLING if name != "input" and len({_value(*pair, name) for pair in pairs}) == 1}
    if len({_sample(document) for document, _ in pairs}) == 1:
        same.add("input")
    if all(document.batch in (1, None) for document, _ in pairs):
        same.add("sample")
    return tuple(each for each in possible if each.name not in same and each.name not in WIDE)


def _sample(document: Document) -> tuple[tuple[int, ...], ...]:
    """The shapes of the inputs without the batch that was put before them: it has a column of its own."""
    return tuple(each.shape if document.batch is None else each.shape[1:] for each in document.inputs)


def _value(document: Document, gpu: GpuEntry | None, name: str) -> Any:
    totals = document.totals
    if name == "model":
        return document.model.spec
    if name == "input":
        return tuple(each.shape for each in document.inputs)
    if name in ("batch", "precision"):
        return getattr(document, name)
    if name == "rw":
        return totals.mem_read_bytes + totals.mem_write_bytes
    if name in ("params", "macs", "flops", "held", "intensity"):
        return getattr(totals, CATALOGUE[name].field)
    if gpu is None:
        return None
    if name == "gpu":
        return gpu.name
    if name == "sample":
        return gpu.ideal_ms / document.batch if document.batch and gpu.ideal_ms is not None else None
    return getattr(gpu, CATALOGUE[name].field)
