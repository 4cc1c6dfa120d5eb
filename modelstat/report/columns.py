"""The columns that ``--columns`` and ``--sort`` name, at each level, and which are shown by default."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

from modelstat.errors import UsageError
from modelstat.report.document import Level
from modelstat.report.grid import Column

COUNTS = (
    Column("macs", "macs", "MACs", "count"),
    Column("madd", "madd", "MAdd", "count"),
    Column("flops", "flops", "FLOPs", "count"),
    Column("read", "mem_read_bytes", "MemRead", "bytes"),
    Column("write", "mem_write_bytes", "MemWrite", "bytes"),
    Column("rw", "mem_bytes", "MemR+W", "bytes"),
    Column("intensity", "intensity", "FLOP/B", "ratio"),
)
TIMES = (
    Column("bound", "predicted_bound", "bound", "text", timed=True),
    Column("ideal", "ideal_ms", "ideal", "ms", timed=True),
    Column("predicted", "predicted_ms", "predicted", "ms", timed=True),
    Column("share", "predicted_share", "share", "share", timed=True),
    Column("compute", "compute_ms", "compute", "ms", timed=True),
    Column("memory", "memory_ms", "memory", "ms", timed=True),
    Column("ideal_bound", "bound", "ideal bound", "text", timed=True),
    Column("ideal_share", "ideal_share", "ideal share", "share", timed=True),
    Column("below", "below_ideal", "below ideal", "text", timed=True),
)
SHAPES = (
    Column("input", "input_shapes", "input", "shapes"),
    Column("output", "output_shapes", "output", "shapes"),
    Column("dtype", "dtype", "dtype", "text"),
)
MODULE_COLUMNS = (
    Column("layer", "layer", "layer (type)", "text"),
    Column("path", "path", "path", "text"),
    Column("type", "type", "type", "text"),
    Column("depth", "depth", "depth", "integer"),
    Column("calls", "calls", "calls", "integer"),
    *SHAPES,
    Column("params", "params", "params", "count"),
    Column("trainable", "trainable_params", "trainable", "count"),
    *COUNTS,
    *TIMES,
    Column("own_macs", "own_macs", "own MACs", "count"),
    Column("own_madd", "own_madd", "own MAdd", "count"),
    Column("own_flops", "own_flops", "own FLOPs", "count"),
    Column("own_read", "own_mem_read_bytes", "own MemRead", "bytes"),
    Column("own_write", "own_mem_write_bytes", "own MemWrite", "bytes"),
)
OP_COLUMNS = (
    Column("path", "path", "path", "text"),
    Column("op", "op", "op", "text"),
    Column("family", "family", "family", "text"),
    *SHAPES,
    *COUNTS,
    Column("known", "known", "known", "text"),
    *TIMES,
)
CATALOGUE: dict[Level, dict[str, Column]] = {
    "module": {column.name: column for column in MODULE_COLUMNS},
    "op": {column.name: column for column in OP_COLUMNS},
}
DEFAULT: dict[Level, str] = {
    "module": "layer output params madd flops read write intensity bound ideal predicted share",
    "op": "path op output macs flops read write intensity bound ideal predicted share",
}
TIMED = "bound ideal predicted share compute memory below"
WIDE: dict[Level, str] = {
    "module": f"layer calls input output dtype params macs madd flops read write rw intensity {TIMED}",
    "op": f"path op family input output dtype macs madd flops read write rw intensity known {TIMED}",
}


def choose(names: Sequence[str], level: Level, *, timed: bool, wide: bool = False) -> tuple[Column, ...]:
    """The columns to show: those named, else the default ones, without those that need a GPU where there is none.

    Raises UsageError for a name that does not exist, and for one that needs a GPU where none is given.
    """
    if names:
        return tuple(column(name, level, timed=timed) for name in names)
    defaults = (WIDE if wide else DEFAULT)[level].split()
    return tuple(each for each in (CATALOGUE[level][name] for name in defaults) if timed or not each.timed)


def column(name: str, level: Level, *, timed: bool) -> Column:
    """One column of a level by its name, or by its key in the JSON. Raises UsageError as :func:`choose` does."""
    return find(name, CATALOGUE[level], f"at level {level}", timed=timed)


def find(name: str, catalogue: Mapping[str, Column], where: str, *, timed: bool) -> Column:
    """One column of a catalogue. Raises UsageError, which says ``where`` it was looked for, as :func:`choose` does."""
    wanted = name.strip().lower()
    found = catalogue.get(wanted) or next((each for each in catalogue.values() if each.field == wanted), None)
    if found is None:
        raise UsageError(f"no column {name!r} {where}{nearest(wanted, catalogue)}")
    if found.timed and not timed:
        raise UsageError(f"column {name!r} needs a GPU: add --gpu NAME")
    return found


def nearest(wanted: str, known: Iterable[str]) -> str:
    """The end of an error message: the nearest names, then all of them."""
    names = list(known)
    close = difflib.get_close_matches(wanted, names, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}? All: " if close else "choose from "
    return f": {hint}{', '.join(names)}"
