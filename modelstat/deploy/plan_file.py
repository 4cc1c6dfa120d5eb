"""A precision plan as YAML: a rule for all layers, and patterns with rules of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from modelstat.deploy.plan import Plan, Rule
from modelstat.errors import ModelFileError, ModelstatError

KEYS = ("weights", "activations", "group")


def read_plan(file: str) -> Plan:
    """Read and check a plan.

    ::

        weights: int4
        group: 128
        layers:
          lm_head: none
          "*.mlp.*": {weights: int8, activations: int8}

    A pattern is a glob on the path of a layer, and the last one that matches decides; ``none`` leaves a layer as it is. Raises
    ModelFileError.
    """
    import yaml

    path = Path(file).expanduser()
    try:
        document = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise ModelFileError(f"{file} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{file} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict):
        raise ModelFileError(f"{file}: a precision plan is a mapping, as in `weights: int8`")
    layers = document.pop("layers", {}) or {}
    if not isinstance(layers, dict):
        raise ModelFileError(f'{file}: layers is a mapping from patterns to rules, as in `"layer4.*": {{weights: int8}}`')
    rules = tuple((str(pattern), _rule(file, str(pattern), given)) for pattern, given in layers.items())
    return Plan(_rule(file, "the plan", document), rules, str(path))


def _rule(file: str, where: str, given: Any) -> Rule:
    if given is None or given == "none":
        return Rule()
    if isinstance(given, str):
        given = {"weights": given}
    if not isinstance(given, dict):
        raise ModelFileError(f"{file}: {where}: {given!r} is no rule: write none, int8, or {{weights: int8, activations: int8}}")
    for key in given:
        if key not in KEYS:
            raise ModelFileError(f"{file}: {where}: unknown key {key!r}, the keys are {', '.join(KEYS)}, and layers at the top")
    words = {key: None if value in (None, "none") else value for key, value in given.items()}
    group = words.get("group")
    if group is not None and type(group) is not int:
        raise ModelFileError(f"{file}: {where}: a group of {group!r} weights is no whole number")
    try:
        weights, activations = (None if words.get(key) is None else str(words[key]) for key in KEYS[:2])
        rule = Rule(weights, activations, group)
        rule.check(f"{file}: {where}")
    except ModelstatError as error:
        raise ModelFileError(str(error)) from error
    return rule
