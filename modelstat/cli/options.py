"""How an option looks in the help: its group and its placeholder."""

from __future__ import annotations

import inspect

from cyclopts import Group, Parameter

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
