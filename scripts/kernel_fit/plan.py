"""What is fitted on what: families, tables and sets, and how a set's rows are predicted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernel_fit.rows import Rows
from kernel_fit.search import fit
from modelstat.predict.kernels import attention, batched_gemm, convolution, elementwise, gemm, norm, softmax
from modelstat.predict.kernels.constants import Constants
from modelstat.predict.kernels.rates import Rates
from modelstat.predict.kernels.timing import Time

PRIOR = 1e-3
"""How firmly a constant stays at its start: about as much as a thousandth of the rows at its whole logarithm."""

Tables = dict[str, dict[str, dict[str, dict[str, Any]]]]
"""Family -> table -> name -> entry, as in the data files."""


class Task(NamedTuple):
    """Fits what has a ``start`` in ``table``, and a name that begins with one of ``names``; ``goal`` is the mean error to reach."""

    set: str
    family: str
    table: str
    seconds: Callable[[Any, Rates, Any], Time]
    goal: float
    names: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


TASKS: tuple[Task, ...] = (
    Task("element-wise", "elementwise", "fp32", elementwise.seconds, 0.06),
    Task("linear", "gemm", "fp32", gemm.seconds, 0.14),
    Task("bmm", "batched_gemm", "fp32", batched_gemm.seconds, 0.14),
    Task("norm", "norm", "fp32", norm.seconds, 0.15),
    Task("softmax", "softmax", "fp32", softmax.seconds, 0.12),
    Task("conv", "convolution", "fp32", convolution.seconds, 0.20),
    Task("gemm bf16", "gemm", "half", gemm.seconds, 0.18),
    Task("prefill bf16", "attention", "half", attention.seconds, 0.25, excluded=("decode",)),
    Task("decode bf16", "attention", "half", attention.seconds, 0.25, names=("decode",)),
    Task("conv fp16", "convolution", "half", convolution.seconds, 0.30),
)

CHECKS: tuple[Task, ...] = (
    Task("DeepBench conv", "convolution", "fp32", convolution.seconds, 0.25),
    Task("DeepBench gemm", "gemm", "fp32", gemm.seconds, 0.30),
    Task("vidur fp16", "gemm", "half", gemm.seconds, 0.18),
)
"""Sets that took no part in any fit."""


def values(table: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """The plain values of a table."""
    return {name: float(entry["value"]) for name, entry in table.items()}


def predicted(task: Task, rows: Rows, rates: Rates, constants: Constants, stopwatch: Constants) -> NDArray[np.float64]:
    """What the stopwatch shows (s): the kernel, throttled or not, and the host before it."""
    total = task.seconds(rows.features, rates, constants).total
    if rows.hot is not None:
        total = total * np.where(rows.hot > 0, stopwatch["throttled"], 1.0)
    if rows.host is not None:
        result: NDArray[np.float64] = total + rows.host * stopwatch.get("host_share", 1.0)
        return result
    return np.asarray(total + (stopwatch.get("host_s", 0.0) if rows.dtype == "float32" else 0.0))


def fit_task(task: Task, rows: Rows, tables: Tables, prior: float = PRIOR) -> tuple[dict[str, float], dict[str, float]]:
    """Constants and stopwatch of a task, fitted on ``rows``."""
    table, watch = tables[task.family][task.table], tables[task.family].get("stopwatch", {}) if task.table == "fp32" else {}
    free = [("table", name) for name, entry in table.items() if "start" in entry and _chosen(task, name)]
    free += [("watch", name) for name, entry in watch.items() if "start" in entry]
    start = np.log([(table if kind == "table" else watch)[name]["start"] for kind, name in free])
    constants, stopwatch = values(table), values(watch)
    rates = rows.rates(values(tables["rates"]["values"]))

    def residuals(point: NDArray[np.float64]) -> NDArray[np.float64]:
        for (kind, name), value in zip(free, np.exp(point), strict=True):
            (constants if kind == "table" else stopwatch)[name] = float(value)
        return np.asarray(np.log(predicted(task, rows, rates, constants, stopwatch) / rows.seconds))

    residuals(fit(residuals, np.asarray(start), prior))
    return constants, stopwatch


def _chosen(task: Task, name: str) -> bool:
    return (not task.names or name.startswith(task.names)) and not (task.excluded and name.startswith(task.excluded))


def fit_memory(rows: Rows, add: Rows, tables: Tables) -> None:
    """Writes the memory efficiencies into ``tables``, from element-wise kernels with the stopwatch's host, and vidur's additions."""
    task, entries = TASKS[0], tables["rates"]["values"]
    names = [name for name, entry in entries.items() if "start" in entry]
    watch = tables["elementwise"]["stopwatch"]["host_s"]
    constants = values(tables["elementwise"]["fp32"])
    start = np.log([*(entries[name]["start"] for name in names), watch["start"]])

    def residuals(point: NDArray[np.float64]) -> NDArray[np.float64]:
        found = values(entries) | dict(zip(names, np.exp(point[:-1]).tolist(), strict=True))
        host = {"host_s": float(np.exp(point[-1]))}
        parts = [
            np.log(predicted(task, some, some.rates(found), constants, host) / some.seconds) * weight
            for some, weight in ((rows, 1.0), (add, 1.0))
            if len(some.seconds)
        ]
        return np.concatenate(parts)

    point = np.exp(fit(residuals, np.asarray(start), PRIOR))
    for name, value in zip(names, point[:-1], strict=True):
        entries[name]["value"] = float(value)
    watch["value"] = float(point[-1])
