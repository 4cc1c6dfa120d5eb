from __future__ import annotations

import pytest

from modelstat.cost.registry import cost_of
from tests.cost.ops import op, unary


@pytest.mark.parametrize(
    "name", ["aten::_unsafe_view", "aten::alias", "aten::detach", "aten::permute", "aten::split", "aten::sym_size", "aten::resize_"]
)
def test_free(name: str) -> None:
    cost = cost_of(unary(name, (10,)))
    assert (cost.bytes, cost.flops, cost.known) == (0, 0, "free")


def test_bookkeeping_without_tensors() -> None:
    assert cost_of(op("profiler::_record_function_enter_new", {})).known == "free"


@pytest.mark.parametrize("name", ["aten::contiguous", "aten::reshape", "aten::to"])
def test_a_view_that_had_to_copy_is_a_copy(name: str) -> None:
    cost = cost_of(unary(name, (10,)))
    assert (cost.bytes, cost.known, cost.family) == (80, "formula", "copy")


def test_reading_a_scalar() -> None:
    assert cost_of(op("aten::_local_scalar_dense", {"self": ()})).read == 4
