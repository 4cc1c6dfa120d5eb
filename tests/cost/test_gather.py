from __future__ import annotations

from typing import Any

import pytest

from modelstat.cost.registry import cost_of
from tests.cost.ops import op, tensor


def ids(*shape: int) -> Any:
    return tensor(shape, "int64")


@pytest.mark.parametrize(
    ("name", "inputs", "output", "read"),
    [
        ("aten::gather", {"self": (100, 8), "index": ids(5, 8)}, (5, 8), 5 * 8 * 4 + 5 * 8 * 8),
        ("aten::index_select", {"self": (100, 8), "index": ids(5)}, (5, 8), 5 * 8 * 4 + 5 * 8),
        ("aten::index", {"self": (100, 8), "indices": [ids(5), ids(5)]}, (5,), 5 * 4 + 2 * 5 * 8),
        ("aten::index", {"self": (3, 8), "indices": [ids(50)]}, (50, 8), 3 * 8 * 4 + 50 * 8),
        ("aten::take", {"self": (100, 8), "index": ids(7)}, (7,), 7 * 4 + 7 * 8),
        ("aten::masked_select", {"self": (10,), "mask": tensor((10,), "bool")}, (4,), 10 * 4 + 10),
    ],
)
def test_gathers_read_what_they_pick(name: str, inputs: dict[str, Any], output: Any, read: int) -> None:
    cost = cost_of(op(name, inputs, output))
    assert (cost.flops, cost.read, cost.write) == (0, read, 4 * cost_elements(output))


def cost_elements(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


TARGET = tensor((100, 8))


@pytest.mark.parametrize(
    ("name", "inputs", "arguments", "flops", "read", "write"),
    [
        ("aten::scatter_", {"index": ids(5, 8), "src": (5, 8)}, {"dim": 0}, 0, 40 * 8 + 40 * 4, 40 * 4),
        ("aten::scatter", {"index": ids(5, 8), "src": (5, 8)}, {"dim": 0}, 0, 800 * 4 + 40 * 8 + 40 * 4, 800 * 4),
        ("aten::scatter_add_", {"index": ids(5, 8), "src": (5, 8)}, {"dim": 0}, 40, 40 * 8 + 40 * 4 + 40 * 4, 40 * 4),
        ("aten::scatter_reduce_", {"index": ids(5, 8), "src": (5, 8)}, {"dim": 0, "reduce": "amax"}, 40, 40 * 16, 40 * 4),
        ("aten::index_add_", {"index": ids(5), "source": (5, 8)}, {"dim": 0}, 40, 5 * 8 + 40 * 4 + 40 * 4, 40 * 4),
        ("aten::index_copy_", {"index": ids(5), "source": (5, 8)}, {"dim": 0}, 0, 5 * 8 + 40 * 4, 40 * 4),
        ("aten::index_fill_", {"index": ids(3)}, {"dim": 1, "value": 0}, 0, 3 * 8, 300 * 4),
        ("aten::index_put_", {"indices": [ids(5)], "values": (5, 8)}, {}, 0, 5 * 8 + 40 * 4, 40 * 4),
        ("aten::index_put_", {"indices": [ids(5)], "values": ()}, {}, 0, 5 * 8 + 4, 40 * 4),
        ("aten::index_put_", {"indices": [ids(5), ids(5)], "values": (5,)}, {"accumulate": True}, 5, 10 * 8 + 20 + 20, 20),
        ("aten::index_put", {"indices": [ids(5)], "values": (5, 8)}, {}, 0, 800 * 4 + 40 + 160, 800 * 4),
        ("aten::put_", {"index": ids(6), "source": (6,)}, {}, 0, 48 + 24, 24),
    ],
)  # fmt: skip
def test_scatters(name: str, inputs: dict[str, Any], arguments: dict[str, Any], flops: int, read: int, write: int) -> None:
    in_place = name.endswith("_")
    output = TARGET if in_place else (100, 8)
    cost = cost_of(op(name, {"self": TARGET, **inputs}, output, mutates=("self",) if in_place else (), **arguments))
    assert (cost.flops, cost.read, cost.write) == (flops, read, write)


def test_a_window_replaced_is_not_read() -> None:
    cost = cost_of(op("aten::slice_scatter", {"self": (100, 8), "src": (10, 8)}, (100, 8)))
    assert (cost.read, cost.write) == ((800 - 80) * 4 + 80 * 4, 800 * 4)


def test_masked_scatter() -> None:
    inputs = {"self": TARGET, "mask": tensor((100, 8), "bool"), "source": (50, 8)}
    assert cost_of(op("aten::masked_scatter", inputs, (100, 8))).read == 3200 + 800 + 1600
    assert cost_of(op("aten::masked_scatter_", inputs, TARGET, mutates=("self",))).read == 800 + 1600
