from __future__ import annotations

from typing import Any

import pytest

from modelstat.cost.registry import cost_of
from tests.cost.ops import op, tensor, unary


@pytest.mark.parametrize(("train", "flops"), [(True, 2 * 40), (None, 2 * 40), (False, 0)])
def test_dropout(train: bool | None, flops: int) -> None:
    arguments: dict[str, Any] = {} if train is None else {"train": train}
    cost = cost_of(op("aten::native_dropout", {"input": (40,)}, (40,), tensor((40,), "bool"), unused=(1,), **arguments))
    assert (cost.flops, cost.read, cost.write) == (flops, 160, 160)


def test_draws_are_only_written() -> None:
    assert (cost_of(op("aten::randn", {}, (10,))).read, cost_of(op("aten::randn", {}, (10,))).write) == (0, 40)
    assert cost_of(unary("aten::bernoulli", (10,))).read == 40


def test_multinomial_sums_its_weights() -> None:
    assert cost_of(op("aten::multinomial", {"self": (4, 100)}, tensor((4, 3), "int64"))).flops == 400
