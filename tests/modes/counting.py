"""What the tests of this directory have in common: a function as a model, and the counts of one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn

from modelstat.cost.registry import costs
from modelstat.records import Trace
from modelstat.report.document import build
from modelstat.trace.capture import capture


class Call(nn.Module):
    """A function of the inputs as a model; ``children`` and ``parameters`` are its own."""

    def __init__(self, function: Callable[..., Any], **members: Any) -> None:
        super().__init__()
        self.function = function
        for name, member in members.items():
            setattr(self, name, member)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(self, *args, **kwargs)


class Counted(NamedTuple):
    params: int
    macs: int
    run: str
    trace: Trace
    warnings: tuple[str, ...]


def count(model: nn.Module, *inputs: Any, kwargs: dict[str, Any] | None = None) -> Counted:
    """Params and MACs of ``model(*inputs, **kwargs)``. Every op must have a formula."""
    trace = capture(model, inputs, kwargs)
    cost = costs(trace)
    assert [op.name for op, each in zip(trace.ops, cost, strict=True) if each.known == "unknown"] == []
    params = sum(parameter.elements for parameter in trace.parameters if parameter.kind == "parameter")
    return Counted(params, sum(each.macs for each in cost), trace.run, trace, build(trace, cost).warnings)


def calls(trace: Trace) -> dict[str, int]:
    """How often each module was called, by path."""
    return {module.path: module.calls for module in trace.modules}


def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


def parameter(*shape: int, dtype: torch.dtype = torch.float32) -> nn.Parameter:
    return nn.Parameter(torch.ones(shape, dtype=dtype))
