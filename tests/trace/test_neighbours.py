"""What else lives in the process while a model is walked: other threads' calls, compiled functions, and what the model keeps."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence
from torch.utils.flop_counter import FlopCounterMode

from modelstat.trace.capture import capture


def test_modules_that_another_thread_calls_are_not_the_walks() -> None:
    """Torch's hooks of all modules are the whole process's."""
    stop = threading.Event()
    other = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))

    def call() -> None:
        while not stop.is_set():
            other(torch.zeros(2, 3))

    model = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(20)))
    alone = capture(model, (torch.zeros(2, 4),))
    thread = threading.Thread(target=call)
    thread.start()
    try:
        assert [capture(model, (torch.zeros(2, 4),)) for _ in range(20)] == [alone] * 20
    finally:
        stop.set()
        thread.join()


def test_nothing_is_compiled_inside() -> None:
    compiled: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        compiled.append(graph)
        return graph.forward

    def double(x: Tensor) -> Tensor:
        return x * 2

    class Net(nn.Module):
        double: Any

        def __init__(self) -> None:
            super().__init__()
            self.double = torch.compile(double, backend=backend)

        def forward(self, x: Tensor) -> Any:
            return self.double(x)

    net = Net()
    assert [op.name for op in capture(net, (torch.zeros(3),)).ops] == ["aten::mul"]
    assert compiled == []
    net(torch.zeros(3))
    assert len(compiled) == 1


def test_lists_in_a_tuple_come_back() -> None:
    class Keeping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kept: tuple[list[Tensor], dict[str, Any]] = ([], {"deep": ([],)})

        def forward(self, x: Tensor) -> Tensor:
            self.kept[0].append(x)
            self.kept[1]["deep"][0].append(x)
            return x * 2

    model = Keeping()
    capture(model, (torch.zeros(3),))
    assert model.kept == ([], {"deep": ([],)})


class Recurrent(nn.Module):
    """Sequences of two lengths, whose work depends on values."""

    cell: Any

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTM(4, 5)

    def forward(self, x: Tensor) -> Any:
        return self.cell(pack_sequence([x[0], x[1, :2]]))[0].data


@pytest.mark.parametrize("precision", ["fp32", "amp-fp16", "amp-bf16"])
@pytest.mark.parametrize("training", [False, True])
def test_a_packed_lstm_runs_in_every_precision(precision: str, training: bool) -> None:
    trace = capture(Recurrent(), (torch.zeros(2, 3, 4),), precision_name=precision, training=training)
    assert "modelstat::lstm_layer" in [op.name for op in trace.ops]
    assert trace.outputs == ((5, 5),)  # three steps and two


def test_a_mode_of_the_users_sees_an_rnn_in_a_real_run() -> None:
    class Counting(nn.Module):
        cell: Any

        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.GRU(4, 5)
            self.counted = nn.Parameter(torch.zeros(1))

        def forward(self, x: Tensor) -> Tensor:
            with FlopCounterMode(display=False) as counter:
                y: Tensor = self.cell(x)[0]
            return y[: 1 + (x.sum().item() > 0)] * counter.get_total_flops()

    trace = capture(Counting(), (torch.ones(3, 2, 4),))
    assert trace.run == "real"
    (factor,) = (op.arguments["other"] for op in trace.ops if op.name == "aten::mul")
    # Three gates of 5 from 4 inputs and 5 hidden units, for three steps of two sequences.
    assert factor == 2 * 3 * 2 * 3 * 5 * (4 + 5)
