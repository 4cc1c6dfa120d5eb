from __future__ import annotations

from collections.abc import Iterator

import pytest

from modelstat.cost.registry import USER_FORMULAS, Work, cost_of
from modelstat.cost.user import evaluate, formula
from modelstat.errors import CostError
from tests.cost.ops import op, unary


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """No user's formula survives a test."""
    yield
    USER_FORMULAS.clear()


def test_one_line_of_macs() -> None:
    formula("my::op")(lambda op: op.inputs[0].elements * 8)
    cost = cost_of(unary("my::op", (10,)))
    assert (cost.macs, cost.flops, cost.madd, cost.read, cost.write) == (80, 160, 160 - 10, 40, 40)
    assert (cost.family, cost.known, cost.unit) == ("user", "formula", "matmul")


def test_work_and_free() -> None:
    formula("my::op")(lambda op: Work(flops=3, read=1, write=2))
    formula("my::view")(lambda op: None)
    cost = cost_of(unary("my::op", (10,)))
    assert (cost.macs, cost.flops, cost.read, cost.write, cost.unit) == (0, 3, 1, 2, "vector")
    assert cost_of(unary("my::view", (10,))).known == "free"


def test_what_the_trace_stores_gives_the_same_cost_later() -> None:
    formula("my::op")(lambda op: op.inputs[0].elements * 8)
    formula("my::view")(lambda op: None)
    for name in ("my::op", "my::view"):
        live = cost_of(unary(name, (10,)))
        stored = evaluate(unary(name, (10,)))
        assert stored is not None
        assert cost_of(op(name, {"self": (10,)}, (10,), cost=stored)) == live
    assert evaluate(unary("aten::add", (10,))) is None


def test_a_cell_that_runs_again_replaces() -> None:
    formula("my::op")(lambda op: 1)
    formula("my::op")(lambda op: 2)
    assert cost_of(unary("my::op", (1,))).macs == 2


def test_built_in_formulas_are_replaced_only_on_request() -> None:
    with pytest.raises(CostError, match="aten::mm has a formula already \\(matmul\\): pass override=True"):
        formula("aten::mm")
    formula("aten::mm", override=True)(lambda op: 7)
    assert cost_of(op("aten::mm", {"self": (2, 2), "mat2": (2, 2)}, (2, 2))).macs == 7


def test_a_name_needs_its_namespace() -> None:
    with pytest.raises(CostError, match="'op' has no namespace"):
        formula("op")


def test_a_formula_that_fails_names_itself() -> None:
    formula("my::op")(lambda op: op.inputs[3].elements)
    with pytest.raises(CostError, match=r"my::op.*test_user\.py"):
        cost_of(unary("my::op", (1,)))
