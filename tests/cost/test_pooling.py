from __future__ import annotations

from typing import Any

import pytest

from modelstat.cost.registry import cost_of
from tests.cost.ops import op, tensor

TABLE: list[tuple[str, Any, Any, Any, int]] = [
    ("aten::max_pool2d_with_indices", (1, 64, 112, 112), (1, 64, 56, 56), [3, 3], 64 * 56 * 56 * 9),
    ("aten::max_pool2d_with_indices", (1, 4, 8, 8), (1, 4, 4, 4), [2], 64 * 4),
    ("aten::max_pool1d", (1, 4, 8), (1, 4, 4), [2], 16 * 2),
    ("aten::max_pool3d_with_indices", (1, 4, 8, 8, 8), (1, 4, 4, 4, 4), [2, 2, 2], 256 * 8),
    ("aten::avg_pool2d", (1, 4, 8, 8), (1, 4, 4, 4), 2, 64 * 4),
    ("aten::avg_pool3d", (1, 4, 2, 7, 7), (1, 4, 1, 1, 1), [2, 7, 7], 4 * 98),
]


@pytest.mark.parametrize(("name", "data", "output", "kernel", "flops"), TABLE)
def test_a_kernel_per_output(name: str, data: Any, output: Any, kernel: Any, flops: int) -> None:
    cost = cost_of(op(name, {"self": data}, output, tensor(output, "int64"), unused=(1,), kernel_size=kernel))
    assert (cost.flops, cost.macs, cost.family) == (flops, 0, "pooling")


def test_adaptive() -> None:
    assert (
        cost_of(op("aten::_adaptive_avg_pool2d", {"self": (2, 16, 7, 7)}, (2, 16, 1, 1), output_size=[1, 1])).flops == 2 * 16 * 49 + 2 * 16
    )
    assert cost_of(op("aten::adaptive_max_pool2d", {"self": (2, 16, 7, 7)}, (2, 16, 2, 2), output_size=[2, 2])).flops == 2 * 16 * 49


def test_indices_cost_bytes_only_where_they_are_used() -> None:
    used = op("aten::max_pool2d_with_indices", {"self": (1, 4, 8, 8)}, (1, 4, 4, 4), tensor((1, 4, 4, 4), "int64"), kernel_size=[2, 2])
    assert (cost_of(used).read, cost_of(used).write) == (4 * 256, 4 * 64 + 8 * 64)


def test_unpooling_moves() -> None:
    cost = cost_of(op("aten::max_unpool2d", {"self": (1, 4, 4, 4), "indices": tensor((1, 4, 4, 4), "int64")}, (1, 4, 8, 8)))
    assert (cost.flops, cost.read, cost.write) == (0, 4 * 64 + 8 * 64, 4 * 256)
