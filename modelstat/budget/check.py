"""Checking budgets: each model is analyzed, from the cache where it was traced before, and held against its limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from modelstat import __version__, units
from modelstat.budget.baseline import drifted, incomparable, read_baseline, write_baseline
from modelstat.budget.culprits import culprits
from modelstat.budget.limits import LIMITS, QUANTITIES, Limit
from modelstat.budget.record import Budget
from modelstat.budget.result import Checked, Measure, Outcome
from modelstat.errors import BudgetError, ModelstatError
from modelstat.report.document import Document
from modelstat.report.timing import GpuEntry


def check(
    path: Path,
    budgets: Sequence[Budget],
    *,
    update_baseline: bool = False,
    cache: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Checked:
    """Check every budget of a file. What one of them raises is its outcome: the others are checked all the same.

    ``update_baseline`` first writes each report as the baseline; ``cache`` and ``progress`` are as for
    :func:`modelstat.walking.trace_spec`.
    """
    outcomes = []
    for budget in budgets:
        try:
            outcome = _checked(path, budget, analyzed(budget, cache=cache, progress=progress), update_baseline=update_baseline)
        except ModelstatError as error:
            outcome = _outcome(path, budget, error=" ".join(str(error).split()))
        except Exception as error:
            outcome = _outcome(path, budget, error=f"{type(error).__name__}: {error} (this is a bug in modelstat)")
        outcomes.append(outcome)
    return Checked(version=__version__, file=str(path), outcomes=tuple(outcomes))


def analyzed(budget: Budget, *, cache: bool = True, progress: Callable[[int], None] | None = None) -> Document:
    """The report of a budget's model under its circumstances. Raises ModelstatError."""
    from modelstat.analysis import Analysis
    from modelstat.api import trace_spec

    trace = trace_spec(
        budget.model,
        budget.input,
        budget.batch,
        budget.precision,
        eval_mode=budget.eval,
        channels_last=budget.execution.walks_channels_last,
        cache=cache,
        progress=progress,
        folder=budget.folder,
    )
    analysis = Analysis.from_trace(trace, () if budget.gpu is None else [budget.gpu], execution=budget.execution)
    analysis.require_peak()
    # A file is known by its place beside the budget file: a baseline is the same in every checkout.
    return relabelled(analysis.document, budget.model)


def relabelled(document: Document, spec: str) -> Document:
    """The document under the name by which the budget file knows its model."""
    return msgspec.structs.replace(document, model=msgspec.structs.replace(document.model, spec=spec))


def _checked(path: Path, budget: Budget, document: Document, *, update_baseline: bool) -> Outcome:
    notes: list[str] = []
    if update_baseline:
        write_baseline(budget, document)
        notes.append(f"wrote {budget.baseline}")
    baseline = read_baseline(budget)
    reason = None if baseline is None else incomparable(budget.baseline, baseline, document)
    if budget.regression and baseline is None:
        way = "`modelstat check --update-baseline` writes it, to be committed"
        raise BudgetError(f"max_regression needs the baseline {budget.baseline}, which is not there: {way}")
    if budget.regression and reason:
        raise BudgetError(reason)
    if baseline is not None and reason:
        notes.append(reason)
        baseline = None
    if document.coverage.unknown_ops:
        names = ", ".join(op.name for op in document.coverage.unknown_ops)
        notes.append(f"no formula for {names}: their FLOPs are in no number here")
    measures = list(_measures(budget, document, baseline))
    failed = [measure for measure in measures if not measure.passed]
    if failed and baseline is not None and (drift := drifted(baseline, document)):
        notes.append(drift)
    return _outcome(
        path,
        budget,
        measures=tuple(measures),
        notes=tuple(notes),
        culprits=culprits([measure.quantity for measure in failed], document, baseline),
        against="" if baseline is None else str(budget.baseline),
    )


def _outcome(path: Path, budget: Budget, **fields: object) -> Outcome:
    measures = fields.get("measures", ())
    failed = isinstance(measures, tuple) and not all(measure.passed for measure in measures)
    status = "error" if "error" in fields else "failed" if failed else "passed"
    return Outcome(budget=budget.name, model=budget.model, file=str(path), line=budget.line, status=status, **fields)  # type: ignore[arg-type]


def _measures(budget: Budget, document: Document, baseline: Document | None) -> Iterator[Measure]:
    gpu = document.gpus[0] if document.gpus else None
    for name, allowed in budget.limits.items():
        limit = LIMITS[name]
        yield held_against(limit, _measured(limit.quantity, document, gpu), allowed)
    if budget.regression and baseline is not None:
        then = baseline.gpus[0] if baseline.gpus else None
        for name, share in budget.regression.items():
            yield regression(name, _measured(name, baseline, then), _measured(name, document, gpu), share)


def _measured(quantity: str, document: Document, gpu: GpuEntry | None) -> float:
    value = QUANTITIES[quantity].measure(document, gpu)
    if value is None:
        raise BudgetError(f"{quantity} is unknown: {gpu.missing if gpu and gpu.missing else 'nothing moves in this model'}")
    return value


def held_against(limit: Limit, measured: float, allowed: float) -> Measure:
    """One limit and what was measured."""
    over = allowed - measured if limit.least else measured - allowed
    quantity = QUANTITIES[limit.quantity]
    margin = _margin(over, allowed)
    missed = "short" if limit.least else "over"
    left = missed if margin is None else f"{units.percent(abs(margin))} {missed if over > 0 else 'left'}"
    return Measure(
        limit=limit.name,
        quantity=limit.quantity,
        measured=measured,
        allowed=allowed,
        margin=margin,
        passed=over <= 0,
        text=f"{quantity.label} {quantity.show(measured)}",
        limit_text=f"at {'least' if limit.least else 'most'} {quantity.show(allowed)} ({left})",
    )


def regression(name: str, before: float, after: float, share: float) -> Measure:
    """One quantity and what the baseline allows it. Sums of times are the same up to rounding where nothing changed."""
    quantity = QUANTITIES[name]
    allowed = before * (1 + share)
    grown = units.change(after / before - 1) if before else f"{quantity.show(after)} instead of {quantity.show(before)}"
    return Measure(
        limit="max_regression",
        quantity=name,
        measured=after,
        allowed=allowed,
        margin=_margin(after - allowed, allowed),
        passed=after <= allowed * (1 + 1e-9),
        text=f"{quantity.label} {grown}",
        limit_text=f"at most {units.change(share)} over the baseline",
        baseline=before,
    )


def _margin(over: float, allowed: float) -> float | None:
    """The share of a limit that is left, None where the limit is zero and something is over it."""
    return -over / allowed if allowed else None if over > 0 else 0.0
