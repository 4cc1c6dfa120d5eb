"""The origins of models: a table, and a function that adds to it. A new origin is one file and one row."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, cast

from modelstat.errors import ModelstatError, UsageError
from modelstat.sources.source import Source
from modelstat.sources.spec import Spec, parse_spec

Factory = Callable[[Spec, Path], Source]
"""Makes the Source of a parsed spec; relative paths are relative to the folder given with it."""


class Origin(NamedTuple):
    """Where models come from: how a Source is made, and the file suffixes that choose this origin without a prefix."""

    factory: Factory | str
    """The factory, or ``module:attribute`` of one that is imported when it is first needed."""
    suffixes: tuple[str, ...] = ()


ORIGINS: dict[str, Origin] = {
    "torchvision": Origin("modelstat.sources.torchvision:TorchvisionSource.of"),
    "timm": Origin("modelstat.sources.timm:TimmSource.of"),
    "hf": Origin("modelstat.sources.hf:HfSource.of"),
    "diffusers": Origin("modelstat.sources.diffusers:DiffusersSource.of"),
    "file": Origin("modelstat.sources.file:FileSource.of", (".py",)),
    "yaml": Origin("modelstat.sources.yaml:YamlSource.of", (".yaml", ".yml")),
}


def register(name: str, origin: Origin) -> None:
    """Add an origin. Raises UsageError if the name or one of its suffixes is taken."""
    taken = {name} & set(ORIGINS) | set(origin.suffixes) & set(suffixes())
    if taken:
        raise UsageError(f"origin {name!r}: {', '.join(sorted(taken))} is taken already")
    ORIGINS[name] = origin


def parse(text: str, folder: Path | None = None) -> Source:
    """The source that a spec names, without importing torch. Files are relative to ``folder`` (default: the working directory).

    Raises SourceError with the position of a mistake, ModelFileError for a file that is missing or wrong.

    >>> parse("torchvision:resnet50").spec
    'torchvision:resnet50'
    """
    return make_source(parse_spec(text, suffixes(), ORIGINS), folder or Path())


def make_source(spec: Spec, folder: Path) -> Source:
    """The source of a parsed spec. Raises ModelFileError for a file that is missing or wrong."""
    if spec.origin is None:
        from modelstat.sources.bare import BareSource

        return BareSource(spec)
    return _load(ORIGINS[spec.origin].factory)(spec, folder)


def suffixes() -> dict[str, str]:
    """The origin of each file suffix."""
    return {suffix: name for name, origin in ORIGINS.items() for suffix in origin.suffixes}


def _load(factory: Factory | str) -> Factory:
    if callable(factory):
        return factory
    module, _, path = factory.partition(":")
    found: object = import_module(module)
    for attribute in path.split("."):
        found = getattr(found, attribute)
    if not callable(found):
        raise ModelstatError(f"{factory} is not callable")
    return cast("Factory", found)
