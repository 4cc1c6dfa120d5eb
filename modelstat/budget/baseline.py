"""The committed report that a budget is held against: reading it, writing it, and whether it can be compared at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from modelstat.budget.record import Budget
from modelstat.errors import BudgetError, InputError
from modelstat.report.caption import inputs_text
from modelstat.report.document import Document

UPDATE = "`modelstat check --update-baseline` writes it anew"


def read_baseline(budget: Budget) -> Document | None:
    """The budget's baseline, None where there is no file. Raises BudgetError for a file that is no report."""
    from modelstat.report.compare_saved import read_report

    if not budget.baseline.exists():
        return None
    try:
        documents = read_report(budget.baseline)
    except InputError as error:
        raise BudgetError(f"baseline {error} ({UPDATE})") from error
    if len(documents) != 1 or len(documents[0].gpus) > 1:
        raise BudgetError(f"baseline {budget.baseline} holds several batches, precisions or GPUs, not one of each: {UPDATE}")
    return documents[0]


def write_baseline(budget: Budget, document: Document) -> None:
    """Write a report as the budget's baseline, whole or not at all. Raises OutputError."""
    from modelstat.cli.output import Output
    from modelstat.errors import OutputError
    from modelstat.report import json

    try:
        budget.baseline.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"baseline {budget.baseline} cannot be written: {error.strerror or error}") from error
    with Output(budget.baseline, "baseline") as out:
        json.write([document], out.stream)


def incomparable(path: Path, old: Document, new: Document) -> str | None:
    """Why a baseline says nothing about a new report, and the way out; None where it can be compared."""
    differing = next(_differences(old, new), None)
    return None if differing is None else f"baseline {path} cannot be compared: {differing}: {UPDATE}"


def _differences(old: Document, new: Document) -> Iterator[str]:
    """What was counted otherwise, or is not the same question: what a number of the baseline does not stand for."""
    if old.convention != new.convention:
        yield "it counts by another convention"
    pairs = {
        "modelstat": (old.versions.get("modelstat", "unknown"), new.versions.get("modelstat", "unknown")),
        "model": (old.model.spec, new.model.spec),
        "precision": (old.precision, new.precision),
        "batch": (old.batch, new.batch),
        "input": (inputs_text(old), inputs_text(new)),
    }
    gpus = [document.gpus[0] if document.gpus else None for document in (old, new)]
    for name in ("name", "peak_flops", "bandwidth_bytes", "execution"):
        pairs["GPU" if name == "name" else f"GPU's {name}"] = tuple(getattr(gpu, name, None) for gpu in gpus)  # type: ignore[assignment]
    for name, (before, after) in pairs.items():
        if before != after:
            yield f"it is of {name} {before}, this is of {after}"


def drifted(old: Document, new: Document) -> str | None:
    """Other versions of the packages that built the model, which may have changed it; None where they are the same."""
    changed = [
        f"{name} {old.versions.get(name, 'absent')}, now {version}"
        for name, version in new.versions.items()
        if name != "modelstat" and old.versions.get(name) != version
    ]
    return f"the baseline was written with {'; '.join(changed)}" if changed else None
