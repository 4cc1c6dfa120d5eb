"""Which swap on which stage of a model saves most time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TextIO

import msgspec

from modelstat.analysis import Analysis
from modelstat.report.caption import BRIEF
from modelstat.report.grid import Column, Grid, Row
from modelstat.report.summary import Line
from modelstat.report.verdict_grid import change_text
from modelstat.report.verdict_layers import Counts, counts, shares


class Trial(NamedTuple):
    """One rule on one stage, and the analysis of the model after it."""

    rule: str
    stage: str
    after: Analysis


class Rank(msgspec.Struct, frozen=True):
    """One trial: how many layers it swapped, the model's counts after it, its times (ms) and its speed-up (above 1: faster)."""

    rule: str
    stage: str
    layers: int
    counts: Counts
    change: dict[str, float | None]
    ideal_ms: float | None
    predicted_ms: float | None
    bound: str | None
    speedup: float | None


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """All trials, the fastest first. ``predicted_ms`` is the model's own time (ms)."""

    schema: Literal["modelstat-swap-best/1"] = "modelstat-swap-best/1"
    model: str
    gpu: str
    batch: int | None
    precision: str
    execution: str
    modelstat: str
    before: Counts
    ideal_ms: float | None
    predicted_ms: float | None
    ranks: tuple[Rank, ...]
    untimed: tuple[str, ...]


def ranked(before: Analysis, trials: Sequence[Trial]) -> Ranking:
    """Trials by predicted time on the first GPU, the fastest first. ``untimed`` are the rules that the GPU has no peak for."""
    from modelstat import __version__

    own, now = counts(before), before.predictions[0]
    ranks = [_rank(trial, own, now.seconds) for trial in trials]
    timed = [rank for rank in ranks if rank.predicted_ms is not None]
    return Ranking(
        model=before.trace.model,
        gpu=before.rooflines[0].gpu.name,
        batch=before.trace.batch,
        precision=before.trace.precision,
        execution=now.execution.text,
        modelstat=__version__,
        before=own,
        ideal_ms=_ms(before.rooflines[0].ideal_seconds),
        predicted_ms=_ms(now.seconds),
        ranks=tuple(sorted(timed, key=lambda rank: (rank.predicted_ms, rank.rule, rank.stage))),
        untimed=tuple(dict.fromkeys(rank.rule for rank in ranks if rank.predicted_ms is None)),
    )


def _rank(trial: Trial, own: Counts, seconds: float | None) -> Rank:
    mine, predicted = counts(trial.after), trial.after.predictions[0]
    return Rank(
        rule=trial.rule,
        stage=trial.stage,
        layers=sum(swap.after is not None for swap in trial.after.trace.swaps),
        counts=mine,
        change=shares(own, mine),
        ideal_ms=_ms(trial.after.rooflines[0].ideal_seconds),
        predicted_ms=_ms(predicted.seconds),
        bound=predicted.bound,
        speedup=seconds / predicted.seconds if seconds and predicted.seconds else None,
    )


COLUMNS = (
    Column("rule", "rule", "swap", "text"),
    Column("stage", "stage", "stage", "text"),
    Column("layers", "layers", "layers", "integer"),
    Column("params", "params", "params", "figure"),
    Column("flops", "flops", "FLOPs", "figure"),
    Column("mem_bytes", "mem_bytes", "MemR+W", "figure"),
    Column("bound", "bound", "bound", "text"),
    Column("ideal", "ideal_ms", "ideal", "ms"),
    Column("predicted", "predicted_ms", "predicted", "ms"),
    Column("speedup", "speedup", "speed-up", "figure"),
)


def grid(ranking: Ranking) -> Grid:
    """One row per trial; counts as their change."""
    rows = [
        Row(
            (
                rank.rule, rank.stage, rank.layers, *(change_text(rank.change[name]) for name in ("params", "flops", "mem_bytes")),
                rank.bound, rank.ideal_ms, rank.predicted_ms, "-" if rank.speedup is None else f"{rank.speedup:.2f}x",
            ),
            bound=rank.bound,
        )
        for rank in ranking.ranks
    ]  # fmt: skip
    batch = "batch as given" if ranking.batch is None else f"batch {ranking.batch}"
    where = f"{ranking.model}; {batch}, {ranking.precision}; {ranking.gpu}; {ranking.execution}"
    return Grid(COLUMNS, tuple(rows), f"{where}; {BRIEF}; modelstat {ranking.modelstat}")


def write(ranking: Ranking, form: str, file: TextIO) -> None:
    """Write the ranking as table, json, csv or markdown."""
    if form == "json":
        file.write(msgspec.json.format(msgspec.json.encode(ranking), indent=2).decode() + "\n")
    elif form == "table":
        _write_table(ranking, file)
    else:
        from modelstat.report.tabular import WRITERS

        WRITERS[form](grid(ranking), file)


def _write_table(ranking: Ranking, file: TextIO) -> None:
    from rich.console import Console

    from modelstat import units
    from modelstat.report.table import lines_text, page_width, rows_table

    width = page_width(file)
    now = "unknown" if ranking.predicted_ms is None else units.seconds(ranking.predicted_ms / 1e3)
    batch = "batch as given" if ranking.batch is None else f"batch {ranking.batch}"
    head: list[Line] = [
        ("Model", f"{ranking.model}, {batch}, precision {ranking.precision}"),
        ("GPU", f"{ranking.gpu}, {ranking.execution}"),
        ("Now", f"{now} predicted"),
    ]
    table = rows_table(grid(ranking), width, narrow=False)
    foot: list[Line] = [("Left out", f"{', '.join(ranking.untimed)}: the GPU has no peak for it")] if ranking.untimed else []
    foot += [("Note", "ranked by predicted time alone: what a swap does to accuracy is not known before it is trained")]
    console = Console(file=file, width=max(width, table.width or 0), highlight=False)
    console.print(lines_text(head, width), "", sep="\n")
    console.print(table, "", sep="\n")
    console.print(lines_text(foot, width))


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3
