"""Finding GPUs: by name, by a definition, or by a TOML file."""

from __future__ import annotations

from collections.abc import Sequence

from modelstat.errors import UnknownGpuError
from modelstat.hardware import names
from modelstat.hardware.gpu import Gpu
from modelstat.hardware.table import load_gpus


def all_gpus() -> tuple[Gpu, ...]:
    """Every GPU of the database, validated."""
    return load_gpus()


def find(text: str) -> Gpu:
    """The GPU that ``text`` means: a name (``RTX 2070 Super``), a definition (it contains ``=``), or a path that ends in ``.toml``.

    Raises UnknownGpuError naming the nearest rows, or GpuDefinitionError.
    """
    if text.strip().lower().endswith(".toml"):
        from modelstat.hardware.definition import load

        return load(text.strip())
    if "=" in text:
        from modelstat.hardware.definition import parse

        return parse(text)
    if not names.compact(text):
        raise UnknownGpuError(f"no GPU is called {text!r}: give a name such as v100; `modelstat gpus` lists all")
    return names.lookup(text.strip(), all_gpus())


def resolve(texts: Sequence[str]) -> tuple[Gpu, ...]:
    """All GPUs of several texts, each a comma list of names, or one definition (it contains ``=``). One given twice counts once."""
    found: dict[str, Gpu] = {}
    for text in texts:
        parts = [text] if "=" in text else [part for part in text.split(",") if part.strip()]
        for part in parts or [text]:
            gpu = find(part)
            found.setdefault(gpu.key, gpu)
    return tuple(found.values())


def siblings(gpu: Gpu) -> tuple[Gpu, ...]:
    """Other boards of the same family: the 16 GB and SXM2 boards of a V100 PCIe 32GB."""
    return names.siblings(gpu, all_gpus())
