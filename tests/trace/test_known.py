"""Values that a fake run follows: control flow by small integers needs no real run."""

# mypy: disable-error-code="union-attr,arg-type,operator,attr-defined"
# Attributes of built models are whatever the model gives them.
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from modelstat.cost.registry import costs
from modelstat.records import Trace
from modelstat.trace.capture import capture

IDS = torch.tensor([[5, 7, 7, 1], [7, 2, 3, 4]])
GRID = torch.tensor([[2, 4, 6]])


class Run(nn.Module):
    """A model that is one function, beside a weight of 3 that makes its values unknown."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("lengths", torch.tensor([2, 3]))

    def forward(self, *given: Tensor) -> Any:
        return self.function(self, *given)


def trace(function: Callable[..., Any], *given: Tensor) -> Trace:
    return capture(Run(function), given)


def embedded(model: Run, ids: Tensor) -> Tensor:
    return ids[..., None] * model.weight  # (2, 4, 3), values unknown


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        # three of the eight ids are 7
        (lambda m, ids, grid: embedded(m, ids)[ids == 7], (3, 3)),
        (lambda m, ids, grid: embedded(m, ids).masked_select((ids == 7).unsqueeze(-1)), (9,)),
        (lambda m, ids, grid: m.weight.expand(int((ids == 7).sum()), 3), (3, 3)),
        (lambda m, ids, grid: torch.nonzero(ids == 7), (3, 2)),
        (lambda m, ids, grid: torch.unique(ids), (6,)),  # 1, 2, 3, 4, 5, 7
        (lambda m, ids, grid: m.weight.new_zeros(grid.tolist()[0]), (2, 4, 6)),
        # a picture of 4 x 6 patches, twice
        (lambda m, ids, grid: torch.repeat_interleave(grid[:, 1] * grid[:, 2], grid[:, 0]).cumsum(0), (2,)),
        (lambda m, ids, grid: m.weight.expand(sum(m.lengths.tolist()), 3), (5, 3)),
        (lambda m, ids, grid: torch.cat([m.weight.expand(n, 3) for n in torch.arange(3)]), (3, 3)),  # 0 + 1 + 2
        # a write through a view is seen
        (lambda m, ids, grid: m.weight.expand(int(_filled(5, 2).sum()), 3), (3, 3)),
        # a list of tensors, and a number in a text
        (lambda m, ids, grid: m.weight.expand(int(torch.tensor([ids[0, 0], grid[0, 0]]).sum()), 3), (7, 3)),
        (lambda m, ids, grid: {"expert_5": m.weight}[f"expert_{ids[0, 0]}"], (3,)),
        # shapes are enough
        (lambda m, ids, grid: m.weight.expand(int(torch.ones_like(embedded(m, ids)).sum()), 3), (24, 3)),
    ],
)
def test_small_integers_need_no_real_run(function: Callable[..., Any], shape: tuple[int, ...]) -> None:
    found = trace(function, IDS, GRID)
    assert found.run == "fake"
    assert found.outputs[0] == shape
    assert tuple(function(Run(function), IDS, GRID).shape) == shape  # what torch itself returns


def _filled(count: int, start: int) -> Tensor:
    mask = torch.zeros(count)
    mask[start:] = 1
    return mask


@pytest.mark.parametrize(
    "function",
    [
        lambda m, ids: m.weight.expand(int(m.weight.sum()), 3),
        lambda m, ids: m.weight.expand(int((ids * m.weight[0]).sum()), 3),
        # what was known is overwritten with what is not, also through a view and an alias
        lambda m, ids: m.weight.expand(int(torch.zeros(3).copy_(m.weight).sum()), 3),
        lambda m, ids: m.weight.expand(int(_overwritten(m.weight).sum()), 3),
        lambda m, ids: m.weight.expand(int(torch.randint(1, 2, (3,)).sum()), 3),
    ],
)
def test_what_comes_from_weights_or_chance_is_not_known(function: Callable[..., Any]) -> None:
    assert trace(function, IDS).run == "real"


def _overwritten(weight: Tensor) -> Tensor:
    values = torch.zeros(4)
    values[1:].add_(weight)
    return values


def test_floating_point_inputs_are_examples_of_their_shape() -> None:
    found = capture(Run(lambda m, x: m.weight if x.sum() > 0 else -m.weight), (torch.ones(4),))
    assert found.run == "real"


def test_nothing_is_written_to_the_model_or_its_inputs() -> None:
    def function(model: Run, ids: Tensor) -> Tensor:
        model.lengths.add_(1)
        ids.zero_()
        return model.weight.expand(int(model.lengths.sum() + ids.sum()), 3)

    model, ids = Run(function), IDS.clone()
    found = capture(model, (ids,))
    assert (found.run, found.outputs[0]) == ("fake", (3 + 4, 3))
    assert model.lengths.tolist() == [2, 3]
    assert torch.equal(ids, IDS)


class Routed(nn.Module):
    """A mixture of experts that loops over the experts that were chosen."""

    def __init__(self, experts: int, width: int, chosen: int) -> None:
        super().__init__()
        self.chosen = chosen
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(experts))

    def forward(self, x: Tensor) -> Tensor:
        weights, picked = self.router(x).softmax(-1).topk(self.chosen, dim=-1)
        output = x.new_zeros(x.shape[0], 2 * x.shape[1])
        mask = torch.nn.functional.one_hot(picked, len(self.experts)).permute(2, 1, 0)
        for (index,) in torch.nonzero(mask.sum((1, 2))):
            place, token = torch.where(mask[index])
            output.index_add_(0, token, self.experts[int(index)](x[token]) * weights[token, place, None])
        return output


def test_routing_without_weights_is_assumed_to_be_even() -> None:
    with torch.device("meta"):
        model = Routed(experts=4, width=8, chosen=2).eval()
    found = capture(model, (torch.empty(10, 8, device="meta"),))
    assert found.run == "fake"
    assert "assumed" in found.notes[-1]
    # the router: 10 x 8 x 4; the experts: 10 tokens, each through 2 of them, 8 x 16
    assert sum(cost.macs for cost in costs(found)) == 10 * 8 * 4 + 10 * 2 * 8 * 16
    assert [module.calls for module in found.modules if module.path.startswith("experts.")] == [1, 1, 1, 1]


def test_a_model_with_weights_of_its_own_routes_by_them() -> None:
    torch.manual_seed(0)
    found = capture(Routed(experts=4, width=8, chosen=2).eval(), (torch.randn(10, 8),))
    assert found.run == "real"
    assert sum(cost.macs for cost in costs(found)) == 10 * 8 * 4 + 10 * 2 * 8 * 16


class Converting(nn.Module):
    """Converts a part of itself in its forward."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        self.gate = self.gate.to(torch.float64)
        result: Tensor = self.gate(x.double())
        return result


def test_a_module_may_convert_itself() -> None:
    model = Converting()
    found = capture(model, (torch.randn(3, 4),))
    assert found.run == "fake"
    assert sum(cost.macs for cost in costs(found)) == 3 * 4 * 2
    assert model.gate.weight.dtype == torch.float32
