"""Ops that take functions as arguments, and have no schema."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from modelstat.cost.registry import costs
from modelstat.trace.capture import _Run, capture
from modelstat.trace.precision import precision


class Flex(nn.Module):
    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, query.shape[-2], key.shape[-2], device=query.device)
        attended: Tensor = flex_attention(query, key, value, score_mod=lambda score, b, h, i, j: score * 2, block_mask=mask)
        return attended


@pytest.mark.parametrize("values", [False, True])
def test_flex_attention_is_one_op(values: bool) -> None:
    def given(length: int, width: int) -> Tensor:
        return torch.randn(2, 4, length, width) if values else torch.empty(2, 4, length, width, device="meta")

    inputs = given(128, 16), given(256, 16), given(256, 32)
    trace = capture(Flex(), inputs)
    assert trace.run == "fake"
    (op,) = [op for op in trace.ops if op.name == "modelstat::flex_attention"]
    assert op.outputs[0].shape == (2, 4, 128, 32)
    # Q K^T and the product with V, for 2 x 4 heads
    assert sum(cost.macs for cost in costs(trace)) == 2 * 4 * 128 * 256 * (16 + 32)
    assert [cost for cost in costs(trace) if cost.known == "unknown"] == []


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, ids: Tensor, x: Tensor) -> Tensor:
        taken: Tensor = torch.cond(ids.sum() > 3, lambda y: self.layer(y), lambda y: y + 1, (x,))
        return taken


@pytest.mark.parametrize(("ids", "macs"), [([1, 2, 3], 5 * 4 * 4), ([1, 2, 0], 0)])
def test_cond_on_a_known_predicate_is_the_branch_it_takes(ids: list[int], macs: int) -> None:
    trace = capture(Branching(), (torch.tensor(ids), torch.empty(5, 4, device="meta")))
    assert trace.run == "fake"
    assert sum(cost.macs for cost in costs(trace)) == macs


def test_a_real_run_records_flex_attention_as_one_op_too() -> None:
    inputs = tuple(torch.randn(1, 2, 128, 16) for _ in range(3))
    trace = _Run(Flex(), inputs, {}, "flex", precision("fp32"), None, (), None).real(None, "a test asks for it")
    assert [op.name for op, cost in zip(trace.ops, costs(trace), strict=True) if cost.macs] == ["modelstat::flex_attention"]
    assert sum(cost.macs for cost in costs(trace)) == 2 * 128 * 128 * (16 + 16)
