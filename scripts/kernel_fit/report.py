"""Fitting everything, and telling how well it holds."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_fit.plan import CHECKS, TASKS, Tables, Task, fit_memory, fit_task, predicted, values
from kernel_fit.rows import Rows
from kernel_fit.sets import SETS
from modelstat.predict.kernels.constants import DIRECTORY
from modelstat.predict.kernels.dispatch import FILES

DIGITS = 5
"""Significant digits of a constant in the data files."""


def load_tables() -> Tables:
    """The data files of all kernel families."""
    return {name: json.loads((DIRECTORY / f"{name}.json").read_text(encoding="utf-8")) for name in FILES}


def load_sets(folder: Path) -> dict[str, Rows]:
    """All measured sets."""
    return {name: load(folder) for name, load in SETS.items()}


def errors(task: Task, rows: Rows, tables: Tables) -> NDArray[np.float64]:
    """Signed relative error of every row: predicted / measured - 1."""
    table, watch = tables[task.family][task.table], tables[task.family].get("stopwatch", {})
    rates = rows.rates(values(tables["rates"]["values"]))
    return predicted(task, rows, rates, values(table), values(watch)) / rows.seconds - 1.0


def fit_tables(sets: Mapping[str, Rows], tables: Tables) -> Tables:
    """A copy of ``tables`` with everything fitted on ``sets``; a task without rows keeps what it has."""
    tables = copy.deepcopy(tables)
    fit_memory(sets["element-wise"], sets["add fp16"], tables)
    for task in TASKS[1:]:
        if len(sets[task.set].seconds):
            _store(task, tables, *fit_task(task, sets[task.set], tables))
    _copy_shared(tables)
    return tables


def _store(task: Task, tables: Tables, constants: Mapping[str, float], stopwatch: Mapping[str, float]) -> None:
    for entries, found in ((tables[task.family][task.table], constants), (tables[task.family].get("stopwatch", {}), stopwatch)):
        for name, value in found.items():
            entries[name]["value"] = value


def _copy_shared(tables: Tables) -> None:
    """Entries that are ``same_as`` another's follow it."""
    for document in tables.values():
        for table in document.values():
            for entry in table.values():
                if isinstance(entry, dict) and "same_as" in entry:
                    family, name, constant = entry["same_as"].split(".")
                    entry["value"] = tables[family][name][constant]["value"]


def fit_all(folder: Path, date: str) -> str:
    """Fits everything, writes the data files and reports."""
    sets = load_sets(folder)
    tables = fit_tables(sets, load_tables())
    for document in tables.values():
        for entry in (entry for name, table in document.items() if name != "fit" for entry in table.values()):
            entry["value"] = float(f"{entry['value']:.{DIGITS}g}")
    for family in {task.family for task in TASKS}:
        fit: dict[str, Any] = tables[family]["fit"]
        fit["date"] = date
        tasks = [task for task in TASKS if task.family == family]
        fit["error"] = {task.set: round(float(np.mean(np.abs(errors(task, sets[task.set], tables)))), 4) for task in tasks}
    rates_fit: dict[str, Any] = tables["rates"]["fit"]
    rates_fit["date"] = date
    for family, document in tables.items():
        (DIRECTORY / f"{family}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return report(sets, tables)


def validate(folder: Path) -> str:
    """The errors of the constants that are there."""
    return report(load_sets(folder), load_tables())


def report(sets: Mapping[str, Rows], tables: Tables) -> str:
    """A line a set, and below it a line a GPU: fitted on all GPUs, fitted without it, and the bare roofline."""
    figures = "  mean median   bias"
    head = f"{'set':14s} {'GPU':14s} {'n':>6s}  {figures}  {figures}  roofline  goal"
    lines = [f"{'':37s}  {'fitted on all GPUs':22s}  {'fitted without it':22s}", head]
    for task in (*TASKS, *CHECKS):
        rows = sets[task.set]
        inside = errors(task, rows, tables)
        outside = left_out(task, sets, tables) if task in TASKS else inside
        bare = rows.ideal(rows.rates(values(tables["rates"]["values"]))) / rows.seconds - 1.0
        for gpu in ("all", *np.unique(rows.gpus)):
            chosen = (rows.gpus == gpu) | (gpu == "all")
            figures = "  ".join(f"{_percent(error[chosen])}" for error in (inside, outside))
            goal = f"{task.goal:5.0%}" if gpu == "all" else ""
            lines.append(f"{task.set:14s} {gpu:14s} {chosen.sum():6d}  {figures}  {np.mean(np.abs(bare[chosen])):8.1%} {goal}".rstrip())
    return "\n".join(lines)


def left_out(task: Task, sets: Mapping[str, Rows], tables: Tables) -> NDArray[np.float64]:
    """Errors of every row with constants, memory efficiencies included, that were fitted without its GPU."""
    rows = sets[task.set]
    result = np.zeros(len(rows.seconds))
    for gpu in np.unique(rows.gpus):
        without = copy.deepcopy(tables)
        fit_memory(_without(sets["element-wise"], gpu), _without(sets["add fp16"], gpu), without)
        if task.set != "element-wise":
            _store(task, without, *fit_task(task, _without(rows, gpu), without))
        mine = rows.gpus == gpu
        result[mine] = errors(task, rows.select(mine), without)
    return result


def _without(rows: Rows, gpu: Any) -> Rows:
    return rows.select(rows.gpus != gpu)


def _percent(error: NDArray[np.float64]) -> str:
    parts: tuple[Callable[[Any], Any], ...] = (lambda e: np.mean(np.abs(e)), lambda e: np.median(np.abs(e)), np.mean)
    return " ".join(f"{part(error):6.1%}" for part in parts)
