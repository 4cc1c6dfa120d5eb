"""Predicted times for measured rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from model_fit.rows import Row, by_model
from model_fit.score import Scored
from model_fit.traces import Traces, changed, spec_of
from modelstat.cost.registry import costs
from modelstat.errors import ModelstatError
from modelstat.hardware.database import find
from modelstat.predict.execution import HOSTS, Execution
from modelstat.predict.prediction import predict
from modelstat.predict.roofline import roofline

ESTIMATED_HOST = ("pytorch-gpu-benchmark",)
"""Sources with small batches, whose times hold their machine's host: one cost for each GPU, from the three fastest models, which
are then left out."""

Predictor = Callable[[float], tuple[float, float, float]]
"""From a host's seconds (s) an op to the predicted time and its interval (s)."""


def score(rows: Sequence[Row], configs: Path) -> tuple[list[Scored], dict[str, int], dict[str, float]]:
    """Scored rows, how many were left out and why, and the host costs (s) that were estimated."""
    skipped: dict[str, int] = {}
    pending: list[tuple[Row, Predictor, float]] = []
    for done, ((model, inputs, precision), members) in enumerate(by_model(list(rows))):
        if done % 100 == 0:
            print(f"{done} models", file=sys.stderr, flush=True)
        traces = Traces(spec_of(model, members[0].source, configs), inputs, precision)
        for row in members:
            try:
                trace = traces.at(row.batch)
            except ModelstatError as error:
                skipped[f"cannot be traced: {error}"[:160]] = skipped.get(f"cannot be traced: {error}"[:160], 0) + 1
                continue
            if changed(trace, row.params_m):
                skipped["params differ by more than 2 %"] = skipped.get("params differ by more than 2 %", 0) + 1
                continue
            cost = costs(trace)
            gpu = find(row.gpu)
            ideal = roofline(trace, cost, gpu).ideal_seconds
            if ideal is None:
                skipped[f"no peak on {row.gpu}"] = skipped.get(f"no peak on {row.gpu}", 0) + 1
                continue
            execution = Execution(mode=row.mode, channels_last=row.layout == "nhwc")  # type: ignore[arg-type]
            if row.source not in ESTIMATED_HOST:
                made = predict(trace, cost, gpu, execution)
                pending.append((row, _constant(made.seconds, made.low_seconds, made.high_seconds), ideal))
                continue
            pending.append((row, _hosted(trace, cost, gpu, execution), ideal))
    hosts = _hosts(pending)
    scored = []
    for row, predictor, ideal in pending:
        host, fastest = hosts.get((row.source, row.gpu), (HOSTS["typical"], frozenset()))
        if row.model in fastest:
            skipped["gave its GPU's host cost"] = skipped.get("gave its GPU's host cost", 0) + 1
            continue
        scored.append(Scored(row, *predictor(host), ideal))
    return scored, skipped, {f"{source} {gpu}": host for (source, gpu), (host, _) in hosts.items()}


def _constant(*seconds: float | None) -> Predictor:
    kept = tuple(float(one or 0.0) for one in seconds)
    return lambda _: (kept[0], kept[1], kept[2])


def _hosted(trace: object, cost: object, gpu: object, execution: Execution) -> Predictor:
    def made(host: float) -> tuple[float, float, float]:
        import msgspec

        one = predict(trace, cost, gpu, msgspec.structs.replace(execution, host_seconds=host))  # type: ignore[arg-type]
        return float(one.seconds or 0.0), float(one.low_seconds or 0.0), float(one.high_seconds or 0.0)

    return made


def _hosts(pending: Sequence[tuple[Row, Predictor, float]]) -> dict[tuple[str, str], tuple[float, frozenset[str]]]:
    """For each source and GPU: the cost that its three fastest models allow, and their names."""
    found: dict[tuple[str, str], tuple[float, frozenset[str]]] = {}
    groups: dict[tuple[str, str], list[tuple[Row, Predictor]]] = {}
    for row, predictor, _ in pending:
        if row.source in ESTIMATED_HOST:
            groups.setdefault((row.source, row.gpu), []).append((row, predictor))
    for key, members in groups.items():
        shortest: dict[str, float] = {}
        for row, _ in members:
            shortest[row.model] = min(row.measured_seconds, shortest.get(row.model, row.measured_seconds))
        models = sorted(shortest, key=shortest.__getitem__)[:3]
        probes = [(row, predictor) for row, predictor in members if row.model in models]
        found[key] = (_solve(probes), frozenset(models))
    return found


def _solve(probes: Sequence[tuple[Row, Predictor]]) -> float:
    """The largest cost (s) with which no probe is predicted slower than it was measured: issuing alone takes no longer than the pass.

    A probe that its GPU alone explains, or more, says nothing of the host.
    """
    candidates = [1e-6 * 1.05**step for step in range(110)]
    bounds = [max((one for one in candidates if predictor(one)[0] <= row.measured_seconds), default=None) for row, predictor in probes]
    return min((one for one in bounds if one is not None), default=HOSTS["typical"])
