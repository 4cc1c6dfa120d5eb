"""RMSNorm is one op, as it is one kernel on a GPU."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from modelstat.cost.registry import costs
from modelstat.trace.capture import capture


@pytest.mark.parametrize(("affine", "per_element"), [(True, 4), (False, 3)])
def test_it_is_recorded_whole(affine: bool, per_element: int) -> None:
    trace = capture(nn.RMSNorm(8, elementwise_affine=affine), (torch.rand(2, 5, 8),))
    assert [op.name for op in trace.ops] == ["aten::rms_norm"]
    assert sum(cost.flops for cost in costs(trace)) == per_element * 80


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(4)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        normed: torch.Tensor = self.norm(tokens)
        # each row has a mean square of 1, so this is false, whatever is in them
        return normed if (normed.square().mean(-1) < 1.5).all() else normed.sum().reshape(1)


def test_a_real_run_keeps_its_values() -> None:
    trace = capture(Branching(), (torch.arange(1.0, 9.0).reshape(2, 4),))
    assert trace.run == "real"
    assert trace.outputs == ((2, 4),)
    assert [op.name for op in trace.ops].count("aten::rms_norm") == 1


def test_in_training_it_is_its_parts() -> None:
    trace = capture(nn.RMSNorm(8), (torch.rand(2, 8),), training=True)
    assert "aten::rms_norm" not in {op.name for op in trace.ops}
    assert any("backward" in op.name or op.name == "aten::mul" for op in trace.ops)
