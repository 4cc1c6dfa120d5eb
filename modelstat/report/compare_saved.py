"""Saved reports: the JSON that ``--format json`` writes, read back without torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from modelstat.errors import InputError, UsageError
from modelstat.report.document import Document

SUFFIX = ".json"


class _Marked(msgspec.Struct):
    """The one key by which a report is known."""

    schema: str = ""


def is_saved(spec: str) -> bool:
    """Whether a text names a saved report, not a model: ``hf:path/config.json`` is a model of transformers.

    >>> is_saved("reports/old.json"), is_saved("hf:bert/config.json"), is_saved("resnet50")
    (True, False, False)
    """
    return spec.lower().endswith(SUFFIX) and not spec.startswith("hf:")


def read_report(path: Path) -> tuple[Document, ...]:
    """The documents of a saved report, one for each batch and precision. Raises InputError for a file that is none."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    try:
        marks = msgspec.json.decode(data, type=_Marked | list[_Marked])
        schemas = {mark.schema for mark in (marks if isinstance(marks, list) else [marks])}
        if schemas != {"modelstat/1"}:
            way = f"`modelstat MODEL --format json --output {path}` writes one"
            raise InputError(f"{path} is not a report: its schema is not modelstat/1; {way}")
        found = msgspec.json.decode(data, type=Document | list[Document])
    except msgspec.ValidationError as error:
        raise InputError(f"{path} is not a report that this version reads: {error}; write it again with --format json") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not JSON: {error}") from error
    return tuple(found) if isinstance(found, list) else (found,)


def chosen(
    path: str, documents: Sequence[Document], batches: Sequence[int | None], precisions: Sequence[str | None], gpus: Sequence[str]
) -> tuple[Document, ...]:
    """The documents of a report at some batches and precisions, and of their GPUs those with some keys; None and () choose all.

    Raises UsageError for what the report does not hold: it cannot be computed from it.
    """
    found = []
    for wanted, name, option in ((batches, "batch", "--batch"), (precisions, "precision", "--precision")):
        held = dict.fromkeys(getattr(document, name) for document in documents)
        for value in wanted:
            if value is not None and value not in held:
                only = ", ".join(map(str, held))
                raise UsageError(f"{option} {value}: {path} holds {name} {only} only: leave {option} out, or write it again")
    for document in documents:
        if document.batch not in batches and None not in batches:
            continue
        if document.precision not in precisions and None not in precisions:
            continue
        held_gpus = [gpu.key for gpu in document.gpus]
        missing = [key for key in gpus if key not in held_gpus]
        if missing:
            only = ", ".join(held_gpus) or "no GPU"
            raise UsageError(f"--gpu {missing[0]}: {path} holds {only} only: leave --gpu out, or write it again with that GPU")
        found.append(msgspec.structs.replace(document, gpus=tuple(gpu for gpu in document.gpus if not gpus or gpu.key in gpus)))
    return tuple(found)
