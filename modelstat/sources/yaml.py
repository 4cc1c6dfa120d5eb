"""A model as data: a YAML file that names a model of another origin, its inputs and where its numbers come from."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from modelstat.errors import InputError, ModelFileError, ModelstatError, SwapError
from modelstat.rewrite.plan import Plan, plan_of
from modelstat.rewrite.source import SwappedSource, changes_precision
from modelstat.sources.inputs import parse_inputs
from modelstat.sources.source import Built, Source
from modelstat.sources.spec import Spec, parse_spec

if TYPE_CHECKING:
    import yaml

KEYS = ("model", "origin", "name", "arguments", "inputs", "precision", "swap", "source")
"""Keys of a model file."""

PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "amp-fp16", "amp-bf16")


class Entry(NamedTuple):
    """A value of the file and the line that it is on."""

    value: Any
    line: int


class YamlSource(Source):
    """``path/model.yaml``: another source, with inputs, a precision and swaps of its own."""

    def __init__(self, spec: str, inner: Source, inputs: str | None, precision: str | None, content: bytes) -> None:
        self.spec = spec
        self.inner = inner
        self.inputs = inputs
        self.precision = precision
        self._digest = hashlib.sha256(content).hexdigest()

    @classmethod
    def of(cls, spec: Spec, folder: Path) -> YamlSource:
        """Read and check the file. Raises ModelFileError with the line of the mistake."""
        path = folder / Path(spec.name).expanduser()
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ModelFileError(f"{path} cannot be read: {error.strerror}") from error
        if spec.member or spec.arguments:
            raise ModelFileError(f"{spec.text}: a model file takes no arguments, write them in the file under `arguments`")
        entries = read_entries(path, content)
        inputs, precision = _inputs(path, entries), _precision(path, entries)
        swaps = _swaps(path, entries)
        if precision and changes_precision(swaps):
            raise _error(path, entries["precision"].line, "a precision of the model would undo that of the swapped layers: leave it out")
        _check_source(path, entries)
        inner = _inner(path, entries)
        return cls(str(path), SwappedSource(inner, swaps) if swaps else inner, inputs, precision, content)

    def key(self) -> dict[str, str]:
        """What decides the model, and the content of the file."""
        return {**self.inner.key(), "yaml": self._digest}

    def build(self, inputs: str | None = None, batch: int | None = None, *, weights: bool = False) -> Built:
        """Build the file's model, with the file's inputs unless others are given."""
        return self.inner.build(self.inputs if inputs is None else inputs, batch, weights=weights)


def read_entries(path: Path, content: bytes) -> dict[str, Entry]:
    """The keys of a model file with their values and lines, from plain data only.

    Raises ModelFileError for what is not YAML, not a mapping, or has an unknown or repeated key.
    """
    import yaml

    loader = None
    try:
        loader = yaml.SafeLoader(content)
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            raise _error(path, root.start_mark.line + 1 if root else 1, "a model file is a mapping, as in `model: resnet50`")
        entries: dict[str, Entry] = {}
        for key_node, value_node in root.value:
            line = key_node.start_mark.line + 1
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key not in KEYS:
                near = get_close_matches(str(key), KEYS, n=2)
                hint = f"did you mean {' or '.join(near)}?" if near else f"the keys are {', '.join(KEYS)}"
                raise _error(path, line, f"unknown key {key!r}, {hint}")
            if key in entries:
                raise _error(path, line, f"{key!r} is there twice, first in line {entries[key].line}")
            _check_keys(path, value_node)
            entries[key] = Entry(loader.construct_object(value_node, deep=True), line)
        return entries
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _error(path, mark.line + 1 if mark else 1, f"{error.problem or error.context}") from error
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is not YAML: {str(error).splitlines()[0]}") from error
    finally:
        if loader is not None:
            loader.dispose()


def _check_keys(path: Path, node: yaml.Node) -> None:
    """Refuse a key that is given twice, below the top level too: YAML would silently take the last one."""
    import yaml

    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise _error(path, key.start_mark.line + 1, f"{key.value!r} is there twice")
                seen.add(key.value)
            _check_keys(path, value)


def _inner(path: Path, entries: dict[str, Entry]) -> Source:
    """The source that the file names by ``model``, or by ``origin`` and ``name``."""
    from modelstat.sources.registry import ORIGINS, make_source, suffixes

    for name in ("model", "origin", "name"):
        if name in entries and not (isinstance(entries[name].value, str) and entries[name].value.strip()):
            raise _error(path, entries[name].line, f"{name} must be text, not {entries[name].value!r}")
    if "model" in entries:
        for name in ("origin", "name"):
            if name in entries:
                raise _error(path, entries[name].line, f"{name} and model exclude each other")
        line, text = entries["model"].line, entries["model"].value
    elif "name" in entries:
        line, text = entries["name"].line, entries["name"].value
        if "origin" in entries:
            origin = entries["origin"].value
            if origin not in ORIGINS:
                raise _error(path, entries["origin"].line, f"no origin is called {origin!r}, there are {', '.join(sorted(ORIGINS))}")
            text = f"{origin}:{text}"
    else:
        raise _error(path, entries["origin"].line if "origin" in entries else 1, "`model` is missing, as in `model: resnet50`")
    arguments = entries.get("arguments", Entry(None, line))
    given = {} if arguments.value is None else arguments.value
    if not isinstance(given, dict) or not all(isinstance(name, str) and name.isidentifier() for name in given):
        raise _error(path, arguments.line, "arguments must be a mapping of names to values, as in `arguments: {num_classes: 10}`")
    try:
        spec = parse_spec(text, suffixes(), ORIGINS)
        if spec.origin == "yaml":
            raise ModelFileError("a model file names a model, not another model file")
        twice = sorted(set(spec.arguments) & set(given))
        if twice:
            raise ModelFileError(f"{', '.join(twice)} is given in the parentheses and under `arguments`")
        return make_source(replace(spec, arguments={**spec.arguments, **given}), path.parent)
    except ModelstatError as error:
        raise _error(path, line, str(error)) from error


def _inputs(path: Path, entries: dict[str, Entry]) -> str | None:
    """The inputs as ``--input`` would spell them, from one text, a list of texts, or a mapping of names to texts."""
    if "inputs" not in entries:
        return None
    value, line = entries["inputs"]
    if isinstance(value, dict):
        text = ",".join(f"{name}={shape}" for name, shape in value.items())
    elif isinstance(value, list):
        text = ",".join(map(str, value))
    else:
        text = str(value)
    if value is None or isinstance(value, (bool, float)):
        raise _error(path, line, f"inputs must be shapes, as in `inputs: 3x224x224`, not {value!r}")
    try:
        return str(parse_inputs(text))
    except InputError as error:
        raise _error(path, line, str(error).removeprefix("--input ")) from error


def _precision(path: Path, entries: dict[str, Entry]) -> str | None:
    value, line = entries["precision"] if "precision" in entries else Entry(None, 1)
    if value is not None and value not in PRECISIONS:
        raise _error(path, line, f"precision {value!r} is not one of {', '.join(PRECISIONS)}")
    return str(value) if value else None


def _swaps(path: Path, entries: dict[str, Entry]) -> tuple[Plan, ...]:
    """The swaps of the file: a list of rules, or of mappings with a rule and where it is applied."""
    value, line = entries["swap"] if "swap" in entries else Entry([], 1)
    if not isinstance(value, list):
        raise _error(path, line, "swap must be a list, as in `swap: [conv=ghost]`")
    try:
        return tuple(map(plan_of, value))
    except SwapError as error:
        raise _error(path, line, str(error)) from error


def _check_source(path: Path, entries: dict[str, Entry]) -> None:
    source, line = entries["source"] if "source" in entries else Entry("", 1)
    if not isinstance(source, (str, list)):
        raise _error(path, line, "source must be text: where the numbers come from")


def _error(path: Path, line: int, reason: str) -> ModelFileError:
    return ModelFileError(f"{path}, line {line}: {reason}")
