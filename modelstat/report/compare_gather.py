"""From what a user names (models, analyses, saved reports) to the documents that are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from modelstat.analysis import Analysis
from modelstat.hardware.database import resolve
from modelstat.hardware.gpu import Gpu
from modelstat.predict.execution import Execution
from modelstat.records import Trace
from modelstat.report.compare import Subject
from modelstat.report.compare_saved import chosen, is_saved, read_report

Batches = Sequence[int | None]
Precisions = Sequence[str | None]


def gather(
    models: Sequence[Any],
    batches: Batches,
    precisions: Precisions,
    gpus: Sequence[Gpu],
    execution: Execution,
    trace: Callable[[Any, int | None, str | None], Trace],
) -> list[Subject]:
    """The documents of each model, in order. ``trace`` walks what is no report, at one batch and precision.

    Without ``gpus`` such a model is timed on the GPUs that the reports among the models hold. Raises UsageError for what a report does
    not hold, InputError for a file that is none, and what ``trace`` raises.
    """
    keys = [gpu.key for gpu in gpus]
    held = [_report(model, batches, precisions, keys) for model in models]
    if not gpus and None in held:
        entries = [gpu for subject in held if subject is not None for document in subject.documents for gpu in document.gpus]
        gpus = resolve(list(dict.fromkeys(entry.key for entry in entries)))

    def walked(model: Any) -> Subject:
        traces = [trace(model, batch, precision) for precision in precisions for batch in batches]
        return Subject(tuple(Analysis.from_trace(each, gpus, execution=execution).document for each in traces))

    return [walked(model) if subject is None else subject for model, subject in zip(models, held, strict=True)]


def _report(model: Any, batches: Batches, precisions: Precisions, keys: Sequence[str]) -> Subject | None:
    """What a report holds of what is asked for, None for a model that has to be walked."""
    if isinstance(model, Analysis):
        return Subject(chosen(model.trace.model, [model.document], batches, precisions, keys))
    if isinstance(model, str) and is_saved(model):
        path = Path(model).expanduser()
        return Subject(chosen(model, read_report(path), batches, precisions, keys), path.name)
    return None
