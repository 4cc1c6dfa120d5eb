"""Peak memory of small models, as sums of the tensors that are alive."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from modelstat.memory.peak import PeakMemory, live_bytes, peak_memory, timeline
from modelstat.records import Value
from modelstat.trace.capture import capture

lives = st.tuples(st.integers(0, 100), st.integers(-1, 9), st.integers(0, 11)).map(
    lambda life: Value(life[0], "activation", life[1], life[1] + life[2])
)


@given(st.lists(lives, max_size=8), st.integers(0, 10))
def test_a_value_counts_from_its_birth_to_its_death(values: list[Value], ops: int) -> None:
    alive = [sum(value.bytes for value in values if value.birth <= op <= value.death) for op in range(ops)]
    assert live_bytes(values, ops) == alive


def test_a_chain_holds_two_results_and_its_input() -> None:
    # fp32: input 4 x 8, hidden 4 x 64, output 4 x 2. The ReLU is alive with the product that it reads.
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
    trace = capture(model, (torch.ones(4, 8),))
    weights = 4 * (8 * 64 + 64 + 64 * 2 + 2)
    assert peak_memory(trace) == PeakMemory(weights, 4 * (4 * 8 + 4 * 64 + 4 * 64), op=2)
    assert trace.ops[2].name == "aten::relu"
    names = [op.name for op in trace.ops]
    assert names == ["aten::t", "aten::addmm", "aten::relu", "aten::t", "aten::addmm"]
    after = [4 * 32, 4 * (32 + 256), 4 * (32 + 512), 4 * (32 + 256), 4 * (32 + 256 + 8)]
    assert timeline(trace) == [(index, weights + size) for index, size in enumerate(after)]


def test_views_and_writes_in_place_hold_nothing_more() -> None:
    class InPlace(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x + 1
            y.view(-1)[:3].mul_(2)
            return F.relu(y.t(), inplace=True)

    trace = capture(InPlace(), (torch.ones(4, 8),))
    assert peak_memory(trace) == PeakMemory(0, 4 * (32 + 32), op=0)
    assert {size for _, size in timeline(trace)} == {4 * 64}


def test_a_result_that_is_not_let_go_counts_to_the_end() -> None:
    class Hoarder(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            kept = [x + number for number in range(5)]
            return torch.stack(kept).sum()

    # The input, five results, the stack of them, and its sum.
    assert peak_memory(capture(Hoarder(), (torch.ones(16),))).activation_bytes == 4 * (16 + 5 * 16 + 5 * 16 + 1)


def test_a_constant_of_the_module_is_there_all_along_and_one_that_forward_makes_is_not() -> None:
    class Constants(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.ones(64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x + torch.tensor([1.0] * 16)
            return (y * 2).sum() + self.table.sum()

    trace = capture(Constants(), (torch.ones(16),))
    constants = [value for value in trace.values if value.kind == "constant"]
    assert [(value.bytes, value.birth > -1, value.death < len(trace.ops)) for value in constants] == [(64, True, True), (256, False, False)]
    # The table, the input, y, its product and the sum of that: the constant is gone.
    assert peak_memory(trace).activation_bytes == 4 * (64 + 16 + 16 + 16 + 1)


def test_indices_that_nothing_reads_are_held_all_the_same() -> None:
    # 1 x 4 x 4 in, 1 x 2 x 2 out in fp32, and as many indices in int64.
    assert peak_memory(capture(nn.MaxPool2d(2), (torch.ones(1, 4, 4),))).activation_bytes == 4 * (16 + 4) + 8 * 4


def test_half_precision_halves_everything_and_autocast_keeps_weights() -> None:
    model, x = nn.Linear(8, 4, bias=False), (torch.ones(2, 8),)
    assert peak_memory(capture(model, x, precision_name="fp32")) == PeakMemory(4 * 32, 4 * (16 + 8), 1)
    assert peak_memory(capture(model, x, precision_name="fp16")) == PeakMemory(2 * 32, 2 * (16 + 8), 1)
    # Under autocast the casts of the input and of the weight are values; the weight's is kept.
    mixed = peak_memory(capture(model, x, precision_name="amp-fp16"))
    assert mixed.weight_bytes == 4 * 32
    assert mixed.activation_bytes == 4 * 16 + 2 * (16 + 32 + 8)


def test_a_tied_weight_counts_once_and_buffers_count() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = nn.Linear(8, 8, bias=False)
            self.two = nn.Linear(8, 8, bias=False)
            self.two.weight = self.one.weight
            self.register_buffer("mean", torch.zeros(10))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.two(self.one(x))

    assert peak_memory(capture(Tied(), (torch.ones(1, 8),))).weight_bytes == 4 * (64 + 10)


def test_a_model_without_ops_holds_its_weights_and_inputs() -> None:
    trace = capture(nn.Identity(), (torch.ones(3),))
    assert peak_memory(trace) == PeakMemory(0, 12, None)
    assert timeline(trace) == []


def test_what_an_rnn_returns_beside_its_output_is_held() -> None:
    # LSTM(4 -> 6) over 5 steps of 2: output 5 x 2 x 6, and h_n, c_n, h_0 and c_0 of 2 x 6 each.
    trace = capture(nn.LSTM(4, 6), (torch.ones(5, 2, 4),))
    assert peak_memory(trace).activation_bytes == 4 * (5 * 2 * 4 + 5 * 2 * 6 + 4 * 2 * 6)
