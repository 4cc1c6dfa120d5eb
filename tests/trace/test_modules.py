"""Which row an op belongs to, and how often each module is called."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from modelstat.records import Trace
from modelstat.trace.capture import capture


class Block(nn.Module):
    def __init__(self, act: nn.Module) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.act = act

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.act(self.fc(x)))


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(ids))


class Direct(nn.Module):
    """Calls forward and uses weights behind the module's back."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.spare = nn.Linear(4, 4, bias=False)
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.fc.forward(self.fc.forward(x))
        return torch.nn.functional.linear(x, self.spare.weight) * self.scale


def calls(trace: Trace) -> dict[str, int]:
    return {module.path: module.calls for module in trace.modules}


def places(trace: Trace) -> list[tuple[str, str, int]]:
    return [(op.name, trace.modules[op.module].path, op.call) for op in trace.ops if not op.view]


def test_a_shared_module_has_a_row_under_each_parent() -> None:
    act = nn.ReLU()
    trace = capture(nn.Sequential(Block(act), Block(act)), (torch.ones(2, 4),))
    assert calls(trace) == {"": 1, "0": 1, "0.fc": 1, "0.act": 2, "1": 1, "1.fc": 1, "1.act": 2}
    assert places(trace) == [
        ("aten::addmm", "0.fc", 0),
        ("aten::relu", "0.act", 0),
        ("aten::relu", "0.act", 1),
        ("aten::addmm", "1.fc", 0),
        ("aten::relu", "1.act", 0),
        ("aten::relu", "1.act", 1),
    ]
    instances = {module.path: module.instance for module in trace.modules}
    assert instances["0.act"] == instances["1.act"]
    assert instances["0.fc"] != instances["1.fc"]


def test_a_tied_weight_counts_once_where_it_is_registered_first() -> None:
    trace = capture(Tied(), (torch.zeros(2, 3, dtype=torch.long),))
    assert [(parameter.name, parameter.elements, parameter.bytes) for parameter in trace.parameters] == [("embedding.weight", 40, 160)]
    assert places(trace) == [("aten::embedding", "embedding", 0), ("aten::mm", "head", 0)]


def test_an_op_on_the_parameter_of_a_module_that_is_not_running_belongs_to_that_module() -> None:
    trace = capture(Direct(), (torch.ones(2, 4),))
    assert calls(trace) == {"": 1, "fc": 2, "spare": 1}
    assert places(trace) == [("aten::addmm", "fc", 0), ("aten::addmm", "fc", 1), ("aten::mm", "spare", 0), ("aten::mul", "", 0)]


def test_a_cast_weight_is_still_that_modules_weight() -> None:
    trace = capture(Direct(), (torch.ones(2, 4),), precision_name="amp-fp16")
    assert [path for name, path, _ in places(trace) if name in ("aten::addmm", "aten::mm")] == ["fc", "fc", "spare"]


def test_shapes_are_of_the_first_call_and_the_last_where_it_differs() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pool = nn.MaxPool2d(2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.pool(self.pool(x))

    pool = capture(Twice(), (torch.ones(1, 3, 8, 8),)).modules[1]
    assert (pool.input_shapes, pool.output_shapes) == (((1, 3, 8, 8),), ((1, 3, 4, 4),))
    assert (pool.last_input_shapes, pool.last_output_shapes) == (((1, 3, 4, 4),), ((1, 3, 2, 2),))
    assert pool.attributes["kernel_size"] == 2


def test_wrappers_do_not_show_in_paths() -> None:
    inner = nn.Sequential(nn.Linear(4, 4))

    def compiled(module: nn.Module) -> nn.Module:
        wrapped: Any = torch.compile(module, backend="eager")
        return wrapped

    for model in (compiled(inner), nn.DataParallel(inner), nn.Sequential(compiled(inner[0]))):
        trace = capture(model, (torch.ones(2, 4),))
        assert calls(trace) == {"": 1, "0": 1}
