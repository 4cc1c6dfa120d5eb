"""How an option looks in the help: its group and its placeholder."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from cyclopts import CoercionError, Group, Parameter, Token, convert

WHAT = Group("What to analyze", sort_key=1)
LANGUAGE = Group("Language models", sort_key=2)
RUN = Group("How it runs", sort_key=3)
SHOW = Group("What to show", sort_key=4)
DRAW = Group("What to draw", sort_key=5)

_HAS_METAVAR = "metavar" in inspect.signature(Parameter).parameters


def option(group: Group, placeholder: str | None = None) -> Parameter:
    """An option in a group. The placeholder (``N``) is shown where the installed cyclopts can (those for Python 3.10 cannot)."""
    if placeholder is None or not _HAS_METAVAR:
        return Parameter(group=group)
    return Parameter(group=group, metavar=placeholder)


def whole(kind: type, tokens: Sequence[Token]) -> Any:
    """The value of an argument. Raises CoercionError for 2.5 where a whole number is asked for, which would become 2."""
    for token in tokens:
        if kind is int and not token.value.removeprefix("-").isdecimal():
            raise CoercionError(token=token, target_type=kind)
    return convert(kind, tokens)
