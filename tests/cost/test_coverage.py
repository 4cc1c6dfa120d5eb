"""Every op of a kind has a formula: the kinds as torch itself tags them."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from modelstat.cost.record import FREE
from modelstat.cost.registry import cost_of, find
from tests.cost.ops import op


def overloads() -> Iterator[torch._ops.OpOverload]:
    """Every overload of every aten op that Python can reach."""
    for name in torch._C._dispatch_get_all_op_names():
        if not name.startswith("aten::"):
            continue
        base, _, overload = name.removeprefix("aten::").partition(".")
        packet = getattr(torch.ops.aten, base, None)
        found = getattr(packet, overload or "default", None)
        if isinstance(found, torch._ops.OpOverload):
            yield found


def names(*, tag: torch.Tag | None = None, views: bool = False) -> set[str]:
    found = set()
    for overload in overloads():
        returns_view = any(item.alias_info is not None and not item.alias_info.is_write for item in overload._schema.returns)
        if (tag is not None and tag in overload.tags) or (views and returns_view):
            found.add(overload._schema.name)
    return found


def test_pointwise_ops_have_formulas() -> None:
    tagged = names(tag=torch.Tag.pointwise)
    assert len(tagged) > 200
    assert sorted(name for name in tagged if find(name) is None) == []


def test_core_ops_have_formulas() -> None:
    tagged = names(tag=torch.Tag.core)
    assert len(tagged) > 100
    assert sorted(name for name in tagged if find(name) is None) == []


def test_views_are_known_and_free_as_the_trace_marks_them() -> None:
    views = names(views=True) | names(tag=torch.Tag.inplace_view)
    assert len(views) > 60
    assert sorted(name for name in views if find(name) is None) == []
    assert all(cost_of(op(name, {"self": (3,)}, (3,), view=True)) is FREE for name in views)
