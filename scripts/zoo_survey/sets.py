"""The sets of models that are surveyed, as specs."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).resolve().parent.parent.parent / "tests" / "zoo" / "data"


class Part(NamedTuple):
    """One set. ``specs`` may be globs; what fails at the first of the ``precisions`` is tried at the next."""

    name: str
    specs: tuple[str, ...]
    precisions: tuple[str | None, ...] = (None,)


def parts() -> tuple[Part, ...]:
    """All sets, in the order of the page."""
    rows = read("torchvision.csv")
    others = tuple(f"torchvision:{row['model']}" + (f"({row['arguments']})" if row["arguments"] else "") for row in rows)
    return (
        Part("torchvision", classifiers() + others),
        Part("timm", ("timm:*",)),
        # Models whose own code mixes dtypes do not run in bf16 anywhere.
        Part("transformers", ("hf:*",), ("bf16", None)),
        Part("diffusers", ("diffusers:*",)),
    )


def classifiers() -> tuple[str, ...]:
    """torchvision's classification models; googlenet without the auxiliary heads that its published numbers leave out."""
    from torchvision import models

    names = models.list_models(module=models)
    return tuple(f"torchvision:{name}" + ("(aux_logits=False)" if name == "googlenet" else "") for name in names)


def read(name: str) -> list[dict[str, str]]:
    """A table of tests/zoo/data; empty if it is not there."""
    path = DATA / name
    if not path.is_file():
        return []
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
