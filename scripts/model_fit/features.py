"""Whole models as arrays: what each kernel family sees of each model, and how often."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from model_fit.rows import Row, by_model
from model_fit.traces import Traces, changed, execution, spec_of
from modelstat.cost.registry import costs
from modelstat.errors import ModelstatError
from modelstat.predict.kernels.dispatch import family_of
from modelstat.predict.launch import launches
from modelstat.records import Trace

Kernels = dict[tuple[str, bool], tuple[Any, Any]]
"""(family, contraction) -> an array with a line a distinct kernel, and how often each runs."""


class Dataset(NamedTuple):
    """``columns``: (family, contraction) -> features (a line a kernel), counts, and the run that each belongs to; ``runs`` of ``rows``."""

    rows: list[Row]
    runs: Any
    columns: dict[tuple[str, bool], tuple[Any, Any, Any]]

    @property
    def measured(self) -> Any:
        """Measured seconds (s) of each row."""
        return np.array([row.measured_seconds for row in self.rows])


def kernels_of(trace: Trace, row: Row) -> Kernels:
    """The kernels of one run, by family."""
    cost = costs(trace)
    pairs = [(each.op, each.kernel.cost) for each in launches(trace, cost, execution(row)) if not each.op.view]
    counted: dict[tuple[str, bool], Counter[tuple[float, ...]]] = defaultdict(Counter)
    for op, one in pairs:
        if one.known != "free" and (one.read or one.write or one.flops):
            family = family_of(op, one)
            counted[family.name, one.unit == "matmul"][tuple(map(float, family.features(op, one)))] += 1
    return {key: (np.array(list(lines)), np.array(list(lines.values()), dtype=float)) for key, lines in counted.items()}


def dataset(rows: Sequence[Row], configs: Path, workers: int | None = None) -> Dataset:
    """All rows whose model can be traced and is the one that was measured."""
    kept: list[Row] = []
    runs: list[int] = []
    known: dict[tuple[Any, ...], int] = {}
    parts: dict[tuple[str, bool], list[tuple[Any, Any, Any]]] = defaultdict(list)
    models = [(members, configs) for _, members in by_model(list(rows))]
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for done, (good, made, problems) in enumerate(pool.map(_runs_of, models, chunksize=4)):
            if done % 200 == 0:
                print(f"{done} of {len(models)} models", file=sys.stderr, flush=True)
            for problem in problems:
                print(problem, file=sys.stderr)
            for key, kernels in made.items():
                known[key] = len(known)
                for family, (lines, counts) in kernels.items():
                    parts[family].append((lines, counts, np.full(len(counts), known[key])))
            for row in good:
                kept.append(row)
                runs.append(known[_key(row)])
    columns = {family: tuple(map(np.concatenate, zip(*members, strict=True))) for family, members in parts.items()}
    return Dataset(kept, np.array(runs), columns)  # type: ignore[arg-type]


def _key(row: Row) -> tuple[Any, ...]:
    return row.model, row.input, row.precision, row.layout, row.batch, row.mode


def _runs_of(given: tuple[list[Row], Path]) -> tuple[list[Row], dict[tuple[Any, ...], Kernels], list[str]]:
    """Rows of one model that can be used, the kernels of each of its runs, and what is wrong with the others."""
    members, configs = given
    traces = Traces(spec_of(members[0].model, members[0].source, configs), members[0])
    good: list[Row] = []
    made: dict[tuple[Any, ...], Kernels] = {}
    problems: list[str] = []
    for row in members:
        try:
            trace = traces.at(row.batch)
        except ModelstatError as error:
            problems.append(f"line {row.line}: {error}")
            continue
        if changed(trace, row.params_m):
            continue
        if _key(row) not in made:
            made[_key(row)] = kernels_of(trace, row)
        good.append(row)
    return good, made, problems
