"""The rules: a table, and a function that adds to it. A new rule is one file in ``rules`` with one registered function.

Nothing here imports torch, and no rule does before it is applied: what is asked is checked before a model is built.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, NamedTuple

from modelstat.errors import SwapError
from modelstat.rewrite.text import parse_rule

if TYPE_CHECKING:
    from torch import nn

    from modelstat.rewrite.site import Site

TARGETS = {
    "conv": "convolution",
    "linear": "linear layer",
    "act": "activation",
    "norm": "normalisation",
    "attention": "attention",
    "precision": "convolution or linear layer",
}
"""What the left side of a rule selects, in words. :mod:`modelstat.rewrite.targets` decides which layers these are."""

Function = Callable[..., "nn.Module"]
"""``(site, **parameters)``: the layer that takes the place of ``site.layer``. Raises SkipError where there is none."""
Check = Callable[[Mapping[str, Any]], "str | None"]
"""What is wrong with the parameters, None if nothing is."""


class SkipError(Exception):
    """A rule does not take this layer; the text says why, as the end of ``left as it was: ...``."""


class Rule(NamedTuple):
    """One registered rule. ``parameters`` are its names with their defaults."""

    target: str
    name: str
    function: Function
    parameters: Mapping[str, Any]
    summary: str
    check: Check | None = None


class Asked(NamedTuple):
    """A rule and the parameters that were given, checked."""

    rule: Rule
    arguments: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The rule in one canonical spelling: ``conv=ghost(kernel=3)``."""
        inside = ",".join(f"{name}={value}" for name, value in sorted(self.arguments.items()))
        return f"{self.rule.target}={self.rule.name}" + (f"({inside})" if inside else "")

    def __call__(self, site: Site) -> nn.Module:
        """The layer that takes the place of ``site.layer``. Raises SkipError where the rule does not take it."""
        return self.rule.function(site, **self.arguments)


_RULES: dict[tuple[str, str], Rule] = {}


def register(target: str, name: str, function: Function, parameters: Mapping[str, Any], summary: str, check: Check | None = None) -> None:
    """Add a rule. Raises SwapError for a name that is taken and for a target that does not exist."""
    if target not in TARGETS:
        raise SwapError(f"rule {target}={name}: {target!r} is none of {', '.join(TARGETS)}")
    if (target, name) in _RULES:
        raise SwapError(f"rule {target}={name} is taken already")
    _RULES[target, name] = Rule(target, name, function, dict(parameters), summary, check)


def rule(text: str, check: Check | None = None) -> Callable[[Function], Function]:
    """Decorator: registers a function as ``target=name``.

    Its keyword-only arguments are the rule's parameters, the first line of its docstring is the summary.
    """
    target, _, name = text.partition("=")

    def add(function: Function) -> Function:
        signature = inspect.signature(function)
        parameters = {each.name: each.default for each in signature.parameters.values() if each.kind is each.KEYWORD_ONLY}
        register(target, name, function, parameters, (function.__doc__ or "").strip().partition("\n")[0], check)
        return function

    return add


@cache
def _load() -> None:
    """Import every file of rules: each registers its own."""
    import modelstat.rewrite.rules as package

    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")


def rules() -> tuple[Rule, ...]:
    """All rules, by target."""
    _load()
    return tuple(sorted(_RULES.values(), key=lambda each: (list(TARGETS).index(each.target), each.name)))


def ask(text: str) -> Asked:
    """A rule by its text, its parameters checked. Raises SwapError with the list of rules and the nearest name."""
    _load()
    target, name, arguments = parse_rule(text)
    found = _RULES.get((target, name))
    if found is None:
        raise SwapError(_unknown(text, target, name))
    for given, value in arguments.items():
        if given not in found.parameters:
            close = get_close_matches(given, found.parameters, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            known = ", ".join(f"{each}={default}" for each, default in found.parameters.items()) or "no parameters"
            raise SwapError(f"{text!r}: {target}={name} has no parameter {given!r}: {hint}It has {known}")
        default = found.parameters[given]
        if not _fits(value, default):
            raise SwapError(f"{text!r}: {given} is {_kind(default)}, not {value!r}")
    wrong = found.check({**found.parameters, **arguments}) if found.check else None
    if wrong:
        raise SwapError(f"{text!r}: {wrong}")
    return Asked(found, {given: value for given, value in arguments.items() if value != found.parameters[given]})


def _unknown(text: str, target: str, name: str) -> str:
    known = [f"{each.target}={each.name}" for each in rules() if each.target != "act"]
    everything = ", ".join([*known, f"act=NAME ({', '.join(each.name for each in rules() if each.target == 'act')})"])
    close = get_close_matches(f"{target}={name}", [f"{each.target}={each.name}" for each in rules()], n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    return f"no swap is called {text!r}: {hint}There are {everything}"


def _fits(value: Any, default: Any) -> bool:
    if default is None:
        return type(value) is int
    if isinstance(default, float):
        return type(value) in (int, float)
    return type(value) is type(default)


def _kind(default: Any) -> str:
    return {bool: "True or False", float: "a number", str: "a word"}.get(type(default), "a whole number")
