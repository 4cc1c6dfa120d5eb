from __future__ import annotations

from modelstat.cost.registry import cost_of
from tests.cost.ops import op, tensor


def test_only_the_rows_looked_up_are_read() -> None:
    cost = cost_of(op("aten::embedding", {"weight": (50, 12), "indices": tensor((4, 6), "int64")}, (4, 6, 12)))
    assert (cost.flops, cost.read, cost.write) == (0, 24 * 12 * 4 + 24 * 8, 24 * 12 * 4)


def test_a_table_is_read_at_most_once() -> None:
    cost = cost_of(op("aten::embedding", {"weight": (2, 768), "indices": tensor((1, 512), "int64")}, (1, 512, 768)))
    assert cost.read == 2 * 768 * 4 + 512 * 8


def test_bags_are_summed() -> None:
    indices, offsets = tensor((20,), "int64"), tensor((4,), "int64")
    inputs = {"weight": (100, 16), "indices": indices, "offsets": offsets}
    plain = cost_of(op("aten::_embedding_bag", inputs, (4, 16)))
    weighted = cost_of(op("aten::_embedding_bag", {**inputs, "per_sample_weights": (20,)}, (4, 16)))
    assert (plain.flops, plain.read, plain.write) == (20 * 16, 20 * 16 * 4 + 20 * 8 + 4 * 8, 4 * 64)
    assert (weighted.flops, weighted.read) == (2 * 20 * 16, plain.read + 80)
