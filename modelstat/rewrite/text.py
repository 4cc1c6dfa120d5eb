"""The text of a rule, ``conv=ghost(ratio=2,kernel=3)``, read once into a frozen record. Nothing here imports torch."""

from __future__ import annotations

import ast
import re
from typing import Any, NamedTuple

from modelstat.errors import SwapError

EXAMPLE = "conv=ghost or conv=ghost(ratio=2,kernel=3)"


class RuleText(NamedTuple):
    """Which layers (``conv``), what they become (``ghost``), and the parameters as they were written."""

    target: str
    name: str
    arguments: dict[str, Any]


def parse_rule(text: str) -> RuleText:
    """Read a rule. Values are Python literals or bare words. Raises SwapError that names the text.

    >>> parse_rule("conv=ghost(ratio=2, norm=none)")
    RuleText(target='conv', name='ghost', arguments={'ratio': 2, 'norm': 'none'})
    """
    found = re.fullmatch(r"\s*([\w-]+)\s*=\s*([\w-]+)\s*(\(.*\))?\s*", text, re.DOTALL)
    if found is None:
        raise SwapError(f"{text!r} is not a swap: write it like {EXAMPLE}")
    target, name, call = found.groups()
    return RuleText(target.lower(), name.lower().replace("-", "_"), _arguments(text, call or "()"))


def _arguments(text: str, call: str) -> dict[str, Any]:
    try:
        node = ast.parse(f"f{call}", mode="eval").body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise SwapError(f"{text!r}: parameters are written name=value, like {EXAMPLE}") from error
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.args:
        raise SwapError(f"{text!r}: parameters are given by name and once, like {EXAMPLE}")
    arguments: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in arguments:
            raise SwapError(f"{text!r}: {keyword.arg or '**'} is given twice" if keyword.arg else f"{text!r}: ** is not possible here")
        try:
            value = keyword.value.id if isinstance(keyword.value, ast.Name) else ast.literal_eval(keyword.value)
        except (ValueError, TypeError) as error:
            raise SwapError(f"{text!r}: the value of {keyword.arg} must be a number, a word, True or False") from error
        arguments[keyword.arg] = value
    return arguments
