"""The table of a sizing: what each GPU takes, and why others are out."""

from __future__ import annotations

from typing import TextIO

from modelstat import units
from modelstat.deploy.fleet import HEADROOM
from modelstat.deploy.sizing import Sizing
from modelstat.report import fleet
from modelstat.report.grid import Column, Grid, printable

COLUMNS = (
    Column("rank", "rank", "", "integer"),
    Column("gpu", "gpu", "GPU", "text"),
    Column("gpus", "gpus", "GPUs", "integer"),
    Column("batch", "batch", "batch", "integer"),
    Column("latency", "latency_ms", "latency", "ms"),
    Column("pass", "pass_ms", "pass", "ms"),
    Column("throughput", "throughput", "samples/s", "speed"),
    Column("utilisation", "utilisation", "in use", "share"),
    Column("power", "power_w", "power (W)", "speed"),
    Column("joules", "joules", "J/sample", "speed"),
    Column("hour", "cost_per_hour", "an hour", "ratio"),
    Column("million", "cost_per_million", "a million", "ratio"),
    Column("fits", "fits", "fits", "flag"),
)
DROP = ("pass", "joules", "fits", "power")


def grid(sizing: Sizing, top: int | None = None) -> Grid:
    """A row a GPU, the best first."""
    rows = (
        {
            "gpu": one.gpu.name, "gpus": one.gpus, "batch": one.batch, "latency": one.latency_seconds * 1e3,
            "pass": one.seconds * 1e3, "throughput": one.throughput, "utilisation": one.utilisation, "power": one.power_watts,
            "joules": one.joules, "hour": one.cost_per_hour, "million": one.cost_per_million, "fits": one.fits,
        }
        for one in sizing.ranked[:top]
    )  # fmt: skip
    known = all(one.fits is not None for one in sizing.ranked)
    return fleet.grid(COLUMNS, rows, caption(sizing), DROP, priced=sizing.currency is not None, fits_known=known)


def caption(sizing: Sizing) -> str:
    """What the columns mean, and what is assumed."""
    return (
        f"{fleet.ranking(sizing.currency)} Capacity is {HEADROOM:.0%} above the demand. latency = (batch - 1) / (requests/s of one GPU) + "
        "pass, without queues; samples/s are one GPU's; in use is the demand's share of all; power is at most all boards at their TDP; "
        f"fits - : the memory is the machine's and not checked. Passes are predicted ({sizing.execution.text}); the report of the model on "
        "one GPU has the interval."
    )


def render(sizing: Sizing, form: str, file: TextIO, *, top: int | None = None, width: int | None = None) -> None:
    """Write as table, json, csv or markdown."""
    shown = grid(sizing, top)
    head = (
        ("Model", f"{printable(sizing.model)}, precision {sizing.precision}"),
        ("Demand", f"{units.per_second(sizing.qps)} samples/s, each within {units.seconds(sizing.latency_seconds)}"),
        ("Answer", fleet.answer(len(sizing.ranked), len(sizing.out))),
    )
    sheet = fleet.Sheet(head, shown, len(sizing.ranked) - len(shown.rows), sizing.out, sizing.notes)
    fleet.render(sizing, sheet, form, file, width)
