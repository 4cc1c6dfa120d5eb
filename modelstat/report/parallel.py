"""The lines about several GPUs, below the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from modelstat import units
from modelstat.deploy.collectives import Collective
from modelstat.deploy.parallel import Parallel
from modelstat.records import Trace
from modelstat.report.grid import printable

if TYPE_CHECKING:
    from rich.table import Table


def lines(found: Parallel) -> list[tuple[str, str]]:
    """Labels and texts: the layout, one GPU's share, the exchanges, and the bounds of the time."""
    layout = found.layout
    ways = [f"{count}-way {kind} parallel" for kind, count in (("tensor", layout.tensor), ("data", layout.data)) if count > 1]
    ways += [f"{layout.pipeline} pipeline stages"] if layout.pipeline > 1 else []
    link = ""
    if found.link is not None and (found.collectives or found.gradient):
        link = f"; {units.bandwidth(found.link.bytes_per_second)} in one direction ({found.link.source})"
    what = [("Layout", f"{layout.gpus} x {found.gpu.name}: {', '.join(ways)}{link}")]
    memory = f"{units.bytes_(found.weight_bytes)} of weights, at most {units.bytes_(found.peak_bytes)} at peak"
    fits = {True: ", fits", False: ", does not fit", None: ""}[found.fits]
    what.append(("Each GPU", f"at most {units.count(found.flops)} FLOPs, {units.bytes_(found.bytes)} moved, {memory}{fits}"))
    if layout.tensor > 1:
        what.append(("Split", f"{units.percent(found.split_share)} of the MACs; the rest runs whole on every GPU"))
    if found.collectives:
        what.append(("Exchanges", ", ".join(_kinds(found.collectives))))
    sides = ", ".join(
        f"{name} {units.seconds(seconds)}"
        for name, seconds in (("compute", found.compute_seconds), ("memory", found.memory_seconds), ("comm", found.comm_seconds))
    )
    low, high = units.seconds(found.lower_seconds), units.seconds(found.upper_seconds)
    alone = units.seconds(found.alone_seconds)
    what.append(("Bounds", f"{low} to {high} a pass, {found.bound}-bound ({sides}); one GPU alone at least {alone}"))
    if found.predicted_seconds is not None and found.low_seconds is not None and found.high_seconds is not None:
        predicted, fast, slow = map(units.seconds, (found.predicted_seconds, found.low_seconds, found.high_seconds))
        spent = f", exchanges {units.seconds(found.comm_seconds)} of it" if found.comm_seconds else ""
        what.append(("Predicted", f"{predicted} a pass (90 %: {fast} to {slow}){spent}"))
    if found.throughput is not None:
        what.append(("Throughput", f"at most {units.per_second(found.throughput)} samples/s, every GPU busy"))
    if found.gradient is not None and found.link is not None:
        spent = units.seconds(found.gradient.seconds(found.link))
        what.append(("Gradients", f"all-reduce of {units.bytes_(found.gradient.bytes)} among {layout.data} replicas a step: {spent}"))
    return what


def _kinds(collectives: Sequence[Collective]) -> list[str]:
    sums: dict[str, tuple[int, float]] = {}
    for one in collectives:
        count, size = sums.get(one.kind, (0, 0.0))
        sums[one.kind] = count + 1, size + one.sent_bytes
    return [f"{count} x {kind} ({units.bytes_(round(size))} sent by each GPU)" for kind, (count, size) in sums.items()]


def stage_table(found: Parallel, trace: Trace) -> Table:
    """A row a stage: the modules in which it begins and ends, and what it takes."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for heading in ("stage", "from", "to"):
        table.add_column(heading, overflow="fold")
    for heading in ("weights", "FLOPs", "moved", "sent", "at least"):
        table.add_column(heading, justify="right", no_wrap=True)
    for index, stage in enumerate(found.stages, start=1):
        ends = [printable(trace.modules[trace.ops[op].module].path or "the model") for op in (stage.first, stage.last)]
        table.add_row(
            str(index), *map(Text, ends), units.bytes_(stage.weight_bytes), units.count(stage.flops), units.bytes_(stage.bytes),
            units.bytes_(stage.sent_bytes), units.seconds(stage.seconds),
        )  # fmt: skip
    return table
