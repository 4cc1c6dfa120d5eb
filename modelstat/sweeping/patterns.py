"""From what the user writes to the models of a sweep: names, globs over an origin, globs of files, and lists of them."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

from modelstat.errors import ModelFileError, UnknownModelError, UsageError
from modelstat.sources.registry import ORIGINS, suffixes
from modelstat.sources.spec import Spec, call_text, parse_spec
from modelstat.sweeping.names import names

_MAGIC = frozenset("*?[")


def expand(texts: Sequence[str]) -> tuple[str, ...]:
    """The specs that several texts name, in order, each once.

    ``timm:*`` and ``torchvision:resnet*(num_classes=10)`` are globs over an origin, ``zoo_configs/*.yaml`` and ``nets/*.py:build`` over
    files; a glob without an origin looks through torchvision and then timm. Nothing is built: whether a model exists is found out by
    the worker that builds it, but a glob that matches nothing, and a file that does not exist, are errors here.

    Raises SourceError (UnknownModelError, ModelFileError), naming what is nearest, and UsageError if there is no text at all.
    """
    specs = [parse_spec(text, suffixes(), ORIGINS) for text in texts]
    if not specs:
        raise UsageError("no model is named: give specs, globs such as 'timm:*', or --from FILE with one spec a line")
    known = names(origin for spec in specs if _is_glob(spec) and not _is_file(spec) for origin in _origins(spec))
    return tuple(dict.fromkeys(found for spec in specs for found in _expanded(spec, known)))


def read_lines(lines: Iterable[str]) -> Iterator[str]:
    """The specs of a list: one a line, without empty lines and ``#`` comments.

    >>> list(read_lines(["# three", "timm:*  # all", "", "resnet50"]))
    ['timm:*', 'resnet50']
    """
    for line in lines:
        text = line.strip()
        if text.startswith("#"):
            continue
        text = text.partition(" #")[0].strip()
        if text:
            yield text


def parts(text: str) -> tuple[str, str]:
    """Origin and name of an expanded spec, for its row.

    >>> parts("timm:vit_base_patch16_224(img_size=384)"), parts("resnet50")
    (('timm', 'vit_base_patch16_224(img_size=384)'), ('bare', 'resnet50'))
    """
    origin = parse_spec(text, suffixes(), ORIGINS).origin
    return origin or "bare", text.removeprefix(f"{origin}:")


def located(text: str, folder: Path) -> str:
    """An expanded spec with the path of its file made absolute, so that a worker in another folder finds it."""
    spec = parse_spec(text, suffixes(), ORIGINS)
    return _text(replace(spec, name=str(folder / Path(spec.name).expanduser()))) if _is_file(spec) else text


def _has_suffix(spec: Spec) -> bool:
    """Whether the suffix of its file says the origin."""
    return spec.origin is not None and bool(ORIGINS[spec.origin].suffixes)


def _is_file(spec: Spec) -> bool:
    """Whether it names a file or a folder: ``hf:configs/bert/config.json`` does too."""
    return _has_suffix(spec) or (spec.origin is not None and ("/" in spec.name or spec.name.endswith(".json")))


def _is_glob(spec: Spec) -> bool:
    # A file may be called so: what exists by that name is no glob.
    return bool(_MAGIC & set(spec.name)) and not (_is_file(spec) and Path(spec.name).expanduser().exists())


def _origins(spec: Spec) -> tuple[str, ...]:
    """The origins that a glob looks through."""
    if spec.origin is not None:
        return (spec.origin,)
    from modelstat.sources.bare import LIBRARIES

    return tuple(library.origin for library in LIBRARIES if library.installed())


def _text(spec: Spec) -> str:
    """A file whose suffix says the origin is named by its path alone."""
    if not _has_suffix(spec):
        return spec.text
    member = f":{spec.member}" if spec.member else ""
    return f"{spec.name}{member}{call_text(spec.arguments)}"


def _expanded(spec: Spec, known: Mapping[str, list[str]]) -> list[str]:
    if _is_file(spec):
        return [_text(replace(spec, name=path)) for path in _files(spec)]
    if not _is_glob(spec):
        return [_text(spec)]
    found: dict[str, str] = {}
    for origin in _origins(spec):
        for name in known[origin]:
            if fnmatchcase(name, spec.name):
                found.setdefault(name, replace(spec, origin=origin, name=name).text)
    if not found:
        raise UnknownModelError(_nothing(spec, [name for origin in _origins(spec) for name in known[origin]]))
    return list(found.values())


def _files(spec: Spec) -> list[str]:
    """The files of a spec's path, sorted. Raises ModelFileError if there are none."""
    pattern = str(Path(spec.name).expanduser())
    if not _is_glob(spec):
        if Path(pattern).is_file() or (Path(pattern).is_dir() and not _has_suffix(spec)):
            return [spec.name]
        raise ModelFileError(_nothing(spec, _beside(Path(pattern))))
    found = sorted(path for path in glob.glob(pattern, recursive=True) if Path(path).is_file())
    if not found:
        raise ModelFileError(_nothing(spec, _beside(Path(pattern))))
    return found


def _beside(path: Path) -> list[str]:
    """Files of the folder that have the same suffix."""
    return sorted(str(file) for file in path.parent.glob(f"*{path.suffix}")) if path.parent.is_dir() else []


def _nothing(spec: Spec, candidates: Sequence[str]) -> str:
    wanted = "".join(letter for letter in spec.name if letter not in _MAGIC and letter != "]")
    near = get_close_matches(wanted, candidates, n=3, cutoff=0.5)
    hint = f"the nearest are {', '.join(near)}" if near else "nothing there is called anything like it"
    return f"{spec.text!r} matches no {'file' if _is_file(spec) else 'model'}: {hint}"
