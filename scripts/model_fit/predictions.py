"""Predicted times for measured rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import msgspec

from model_fit.hosts import ESTIMATED, Host, hosts
from model_fit.rows import Row, by_model
from model_fit.score import Scored
from model_fit.traces import Traces, changed, execution, spec_of
from modelstat.cost.record import Cost
from modelstat.cost.registry import costs
from modelstat.errors import ModelstatError
from modelstat.hardware.database import find
from modelstat.predict.prediction import predict
from modelstat.predict.roofline import roofline
from modelstat.records import Trace


class Skipped(NamedTuple):
    """A row that has no prediction, and why."""

    row: Row
    reason: str


class Ready(NamedTuple):
    """A row whose host cost is not known yet, with what a prediction needs; ``ideal`` is the roofline's time (s)."""

    row: Row
    trace: Trace
    cost: tuple[Cost, ...]
    ideal: float

    def at(self, host: Host) -> Scored:
        """The prediction with a host, its copy of the images included."""
        made = predict(self.trace, self.cost, find(self.row.gpu), msgspec.structs.replace(execution(self.row), host_seconds=host.issue))
        copy = host.copy_seconds(self.row.precision)
        times = [float(seconds or 0.0) + copy for seconds in (made.seconds, made.low_seconds, made.high_seconds)]
        return Scored(self.row, *times, self.ideal)


class Scores(NamedTuple):
    """Scored rows, how many were left out and why, and the hosts that were estimated."""

    scored: list[Scored]
    skipped: Counter[str]
    hosts: dict[str, Host]


def score(
    rows: Sequence[Row], configs: Path, workers: int = 1, progress: Callable[[int], None] | None = None, *, copies: bool = True
) -> Scores:
    """Predicts every row. ``progress`` is told how many models are done; ``copies`` lets a host copy its images too."""
    scored: list[Scored] = []
    skipped: Counter[str] = Counter()
    waiting: list[Ready] = []
    known = [(members, configs) for _, members in by_model([row for row in rows if row.source not in ESTIMATED])]
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for done, results in enumerate(pool.map(_score_model, known, chunksize=4), 1):
            for one in results:
                if isinstance(one, Scored):
                    scored.append(one)
                else:
                    skipped[one.reason] += 1
            if progress is not None:
                progress(done)
    for _, members in by_model([row for row in rows if row.source in ESTIMATED]):
        for found in _ready(members, configs):
            if isinstance(found, Ready):
                waiting.append(found)
            else:
                skipped[found.reason] += 1
    estimated = hosts(waiting, copies=copies)
    for each in waiting:
        host = estimated[each.row.source, each.row.gpu]
        if each.row.model in host.probes:
            skipped["gave its GPU's host"] += 1
        else:
            scored.append(each.at(host))
    scored.sort(key=lambda one: one.row.line)
    return Scores(scored, skipped, {" ".join(key): host for key, host in estimated.items()})


def _score_model(given: tuple[list[Row], Path]) -> list[Scored | Skipped]:
    return [each.at(Host()) if isinstance(each, Ready) else each for each in _ready(*given)]


def _ready(members: Sequence[Row], configs: Path) -> Iterator[Ready | Skipped]:
    """Rows of one model, input, precision and layout."""
    first = members[0]
    traces = Traces(spec_of(first.model, first.source, configs), first)
    for row in members:
        try:
            trace = traces.at(row.batch)
            cost = costs(trace)
            ideal = roofline(trace, cost, find(row.gpu)).ideal_seconds
        except ModelstatError as error:
            yield Skipped(row, f"cannot be traced: {error}"[:160])
            continue
        if changed(trace, row.params_m):
            yield Skipped(row, "params differ by more than 2 %")
        elif ideal is None:
            yield Skipped(row, f"no {row.precision} peak on {row.gpu}")
        else:
            yield Ready(row, trace, cost, ideal)
