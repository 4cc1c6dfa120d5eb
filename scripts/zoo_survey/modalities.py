"""What the architectures of transformers take: text, images, or anything else."""

from __future__ import annotations

from collections.abc import Iterable

from modelstat.sweeping.row import Row

KINDS = ("text only", "images only", "audio, video and several")


def modalities(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows by kind, as the model classes themselves declare it (``input_modalities``)."""
    found: dict[str, list[Row]] = {kind: [] for kind in KINDS}
    for row in rows:
        found[kind_of(row.name)].append(row)
    return found


def kind_of(architecture: str) -> str:
    """The kind of a ``model_type``; a model that needs a package that is not installed counts by its module's docstring, as several."""
    from modelstat.sources.hf_config import default_classes, model_class

    try:
        kind, name = default_classes(architecture)
        declared = model_class(str(name), kind).input_modalities
    except Exception:
        return KINDS[2]
    taken = {declared} if isinstance(declared, str) else set(declared)
    return KINDS[0] if taken == {"text"} else KINDS[1] if taken == {"image"} else KINDS[2]
