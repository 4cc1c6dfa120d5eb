"""The table of crossings, below the comparison of a range of sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelstat.deploy.crossings import LAYER_SHARE, Crossings, ranges
from modelstat.report.grid import printable

if TYPE_CHECKING:
    from rich.console import Group

BOUNDS = ("overhead", "memory", "compute")


def text(found: Crossings, name: str) -> Group:
    """A table: the sizes of ``name`` (batch, seq) at which each bound holds; and where the memory is full."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from modelstat.report.table import STYLES

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("layer", overflow="fold")
    for bound in BOUNDS:
        table.add_column(f"{bound}-bound", justify="right", no_wrap=True)
    table.add_column("roofline: compute", justify="right", no_wrap=True)
    for row in found.rows:
        label = f"{printable(row.path)} ({printable(row.type)})" if row.path else f"whole model ({printable(row.type)})"
        cells = (Text(ranges(row.turns, bound, found.last), style=STYLES[bound]) for bound in BOUNDS)
        table.add_row(Text(label), *cells, Text(ranges(row.ideal_turns, "compute", found.last)), style=None if row.path else "bold")
    return Group(Text(f"{name} at which each bound holds on {found.gpu.name}", style="bold"), table, Text(note(found, name)))


def note(found: Crossings, name: str) -> str:
    """How far to trust the table, and the size at which the memory is full."""
    if found.gpu.memory_bytes is None:
        memory = "memory: not this GPU's own, so it is not checked"
    elif found.full is None:
        memory = f"memory: not full at {name} {found.last}"
    elif found.full == 0:
        memory = "memory: the smallest size does not fit"
    else:
        memory = f"memory: full above {name} {found.full} (peak memory, up to 95 %)"
    if found.step is None:
        return f"{memory}; every size was walked by itself, so turns are those of the sizes above"
    return f"{memory}; by predicted time and by the roofline; the whole model's turns to {found.step}, a layer's to {LAYER_SHARE:.0%}"
