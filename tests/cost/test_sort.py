from __future__ import annotations

from modelstat.cost.registry import cost_of
from tests.cost.ops import op, tensor


def test_sort() -> None:
    indices = tensor((4, 1000), "int64")
    cost = cost_of(op("aten::sort", {"self": (4, 1000)}, (4, 1000), indices, dim=1))
    assert (cost.flops, cost.read, cost.write) == (4 * 1000 * 10, 4 * 4000, (4 + 8) * 4000)


def test_topk() -> None:
    cost = cost_of(op("aten::topk", {"self": (4, 1000)}, (4, 5), tensor((4, 5), "int64"), k=5))
    assert cost.flops == 4000 + 4 * 5 * 3


def test_integers_sort_for_free() -> None:
    assert cost_of(op("aten::sort", {"self": (16,)}, (16,), (16,), dtype="int64")).flops == 0


def test_searching() -> None:
    cost = cost_of(op("aten::searchsorted", {"sorted_sequence": (1024,), "self": (7,)}, tensor((7,), "int64")))
    assert cost.flops == 7 * 10
    assert cost_of(op("aten::bucketize", {"self": (7,), "boundaries": (9,)}, tensor((7,), "int64"))).flops == 7 * 4


def test_selection_and_unique() -> None:
    assert cost_of(op("aten::kthvalue", {"self": (4, 10)}, (4,), tensor((4,), "int64"), k=2)).flops == 40
    assert cost_of(op("aten::_unique2", {"self": (16,)}, (5,))).flops == 16 * (4 + 1)
