from __future__ import annotations

import pytest

from modelstat.cost.registry import cost_of
from tests.cost.ops import op, tensor, unary


@pytest.mark.parametrize("name", ["_softmax", "_log_softmax", "_safe_softmax", "softmax", "log_softmax"])
def test_five_per_element(name: str) -> None:
    cost = cost_of(unary(f"aten::{name}", (4, 8, 10), dim=-1))
    assert (cost.flops, cost.read, cost.write, cost.family) == (5 * 320, 1280, 1280, "softmax")


def test_with_mask() -> None:
    cost = cost_of(op("aten::_masked_softmax", {"self": (4, 10), "mask": tensor((4, 10), "bool")}, (4, 10)))
    assert (cost.flops, cost.read) == (6 * 40, 4 * 40 + 40)


def test_logsumexp() -> None:
    assert cost_of(op("aten::logsumexp", {"self": (4, 10)}, (4,), dim=[1])).flops == 4 * 40 + 2 * 4
    assert cost_of(unary("aten::_logcumsumexp", (4, 10), dim=1)).flops == 8 * 40
