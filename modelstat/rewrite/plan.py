"""What to do to a model: one rule on one selection of layers, and several of them one after another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from modelstat.errors import SwapError
from modelstat.rewrite.registry import Asked, ask
from modelstat.rewrite.selection import Selection, from_mapping


class Plan(NamedTuple):
    """One rule and where it is applied."""

    asked: Asked
    selection: Selection

    @property
    def text(self) -> str:
        """The rule, and in parentheses what it is limited to."""
        limits = self.selection.text
        return f"{self.asked.text} ({limits})" if limits else self.asked.text


def plans(rules: Iterable[str], selection: Selection = Selection()) -> tuple[Plan, ...]:  # noqa: B008
    """One plan per rule, all on one selection. Raises SwapError for a rule that does not exist."""
    return tuple(Plan(ask(text), selection) for text in rules)


def plan_of(entry: Any) -> Plan:
    """A plan from plain data: a rule's text, or a mapping with ``rule`` and a selection. Raises SwapError."""
    if isinstance(entry, str):
        return Plan(ask(entry), Selection())
    if not isinstance(entry, Mapping) or not isinstance(entry.get("rule"), str):
        raise SwapError(f"a swap is a text such as conv=ghost, or a mapping with a rule, not {entry!r}")
    return Plan(ask(entry["rule"]), from_mapping({name: value for name, value in entry.items() if name != "rule"}))
