"""Forward and backward from one walk: closed forms, torch's own counter, and whose module each op of the backward is."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import varlen
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count

from modelstat.cost.registry import costs
from modelstat.errors import TraceError
from modelstat.memory.training import backward_start
from modelstat.records import Trace
from modelstat.trace.capture import capture


def macs(trace: Trace) -> tuple[int, int]:
    """MACs of the forward and of the backward. Every op must be known."""
    found, start = costs(trace), backward_start(trace)
    assert [op.name for op, cost in zip(trace.ops, found, strict=True) if cost.known == "unknown"] == []
    return sum(cost.macs for cost in found[:start]), sum(cost.macs for cost in found[start:])


def by_module(trace: Trace, *, backward: bool) -> dict[str, int]:
    """MACs of one direction by path of the module; those without any are left out."""
    counts: Counter[str] = Counter()
    start = backward_start(trace)
    for index, (op, cost) in enumerate(zip(trace.ops, costs(trace), strict=True)):
        if (index > start) == backward:
            counts[trace.modules[op.module].path] += cost.macs
    return dict(+counts)


def train(model: nn.Module, *args: torch.Tensor, **options: Any) -> Trace:
    return capture(model, args, training=True, **options)


@pytest.mark.parametrize("needs_gradient", [False, True])
def test_linear_layers_cost_twice_as_much_going_back(needs_gradient: bool) -> None:
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 4))
    first, others = 5 * 8 * 32, 5 * (32 * 16 + 16 * 4)
    x = torch.ones(5, 8, requires_grad=needs_gradient)
    # A first layer's input is given: nobody asks for its gradient.
    assert macs(train(model, x)) == (first + others, 2 * others + first * (1 + needs_gradient))


@pytest.mark.parametrize(
    ("layer", "shape", "forward"),
    [
        (nn.Conv1d(4, 6, 3, padding=1), (2, 4, 10), 2 * 6 * 10 * 4 * 3),
        (nn.Conv2d(4, 6, 3, stride=2), (2, 4, 9, 9), 2 * 6 * 4 * 4 * 4 * 9),
        (nn.Conv2d(4, 8, 3, groups=4, dilation=2), (1, 4, 9, 9), 8 * 5 * 5 * 1 * 9),
        (nn.Conv3d(2, 3, 2), (1, 2, 4, 4, 4), 3 * 27 * 2 * 8),
        (nn.ConvTranspose2d(4, 6, 3, stride=2), (1, 4, 5, 5), 4 * 5 * 5 * 6 * 9),
    ],
)
def test_convolutions_cost_twice_as_much_going_back(layer: nn.Module, shape: tuple[int, ...], forward: int) -> None:
    assert macs(train(layer, torch.ones(shape))) == (forward, forward)
    assert macs(train(layer, torch.ones(shape, requires_grad=True))) == (forward, 2 * forward)


def test_resnet18_agrees_with_torchs_own_counter() -> None:
    models = pytest.importorskip("torchvision.models", reason="torchvision is not installed")
    model, x = models.resnet18().train(), torch.randn(2, 3, 64, 64)
    with FlopCounterMode(display=False) as forward:
        y = model(x)
    with FlopCounterMode(display=False) as backward:
        y.sum().backward()
    assert macs(train(model, x)) == (forward.get_total_flops() // 2, backward.get_total_flops() // 2)


def test_attention_computes_its_scores_again() -> None:
    class Attend(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query = nn.Parameter(torch.ones(2, 4, 6, 8))

        def forward(self, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
            return F.scaled_dot_product_attention(self.query, keys, values)

    trace = train(Attend(), torch.ones(2, 4, 7, 8), torch.ones(2, 4, 7, 5))
    pairs = 2 * 4 * 6 * 7
    assert macs(trace) == (pairs * (8 + 5), pairs * (3 * 8 + 2 * 5))
    assert macs(trace)[1] == sdpa_backward_flop_count((2, 4, 6, 5), (2, 4, 6, 8), (2, 4, 7, 8), (2, 4, 7, 5)) // 2
    (forward,) = (op for op in trace.ops if op.name == "modelstat::attention")
    assert [(spec.shape, spec.dtype) for spec in forward.outputs] == [((2, 4, 6, 5), "float32"), ((2, 4, 6), "float32")]
    (backward,) = (op for op in trace.ops if op.name == "modelstat::attention_backward")
    assert [spec.shape for spec in backward.outputs] == [(2, 4, 6, 8), (2, 4, 7, 8), (2, 4, 7, 5)]
    assert backward.tensor("logsumexp") == forward.outputs[1]


LENGTHS = (2, 3, 5)
"""Of sequences that differ: 10 tokens, and 2 x 2 + 3 x 3 + 5 x 5 = 38 pairs for each head."""


def test_attention_of_jagged_sequences_goes_back_in_one_op() -> None:
    class Attend(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project = nn.Linear(8, 24, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q, k, v = (part.unflatten(-1, [2, 4]).transpose(1, 2) for part in self.project(x).chunk(3, dim=-1))
            return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2)

    x = torch.nested.nested_tensor([torch.ones(length, 8) for length in LENGTHS], layout=torch.jagged)
    trace = train(Attend(), x)
    project, pairs = 10 * 8 * 24, 2 * 38
    assert macs(trace) == (project + pairs * (4 + 4), project + pairs * 5 * 4)
    (backward,) = (op for op in trace.ops if op.name == "modelstat::varlen_attention_backward")
    assert [spec.shape for spec in backward.outputs] == 3 * [(10, 2, 4)]


def test_attention_of_packed_sequences_goes_back_as_torchs_own_counter_has_it() -> None:
    class Attend(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query = nn.Parameter(torch.ones(10, 2, 8, dtype=torch.float16))

        def forward(self, ends: torch.Tensor) -> Any:
            return varlen.varlen_attn(self.query, self.query, self.query, ends, ends, 5, 5)

    pairs = 2 * 38
    assert macs(train(Attend(), torch.tensor([0, 2, 5, 10], dtype=torch.int32))) == (pairs * (8 + 8), pairs * 5 * 8)


def test_a_grouped_product_has_a_gradient_for_each_factor() -> None:
    class Experts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate, self.weight = nn.Linear(16, 16), nn.Parameter(torch.ones(4, 16, 32))

        def forward(self, x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
            return F.grouped_mm(self.gate(x), self.weight, offs=ends)

    trace = train(Experts(), torch.ones(24, 16), torch.tensor([6, 12, 18, 24], dtype=torch.int32))
    gate, experts = 24 * 16 * 16, 24 * 16 * 32
    assert macs(trace) == (gate + experts, gate + 2 * experts)


def test_a_bias_of_the_scores_that_is_trained_gets_a_gradient() -> None:
    class Biased(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bias = nn.Parameter(torch.zeros(4, 6, 6))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.scaled_dot_product_attention(x, x, x, attn_mask=self.bias)

    trace = train(Biased(), torch.ones(2, 4, 6, 8))
    (backward,) = (op for op in trace.ops if op.name == "modelstat::attention_backward")
    assert backward.outputs[3].shape == (4, 6, 6)
    assert any(value.output and value.bytes == 4 * 4 * 6 * 6 for value in trace.values)


@pytest.mark.parametrize(
    ("rnn", "elements"),
    [
        (nn.LSTM(4, 6, num_layers=2, bidirectional=True), 2 * 24 * (4 + 6) + 2 * 24 * (12 + 6)),
        (nn.GRU(4, 6, batch_first=True), 18 * (4 + 6)),
        (nn.RNN(4, 6, bias=False), 6 * (4 + 6)),
        (nn.LSTM(4, 6, proj_size=3), 24 * (4 + 3) + 3 * 6),
    ],
)
def test_an_rnn_costs_twice_as_much_going_back(rnn: nn.Module, elements: int) -> None:
    trace = train(rnn, torch.ones(5, 2, 4))
    assert macs(trace) == (5 * 2 * elements, 2 * 5 * 2 * elements)
    gradients = sorted(value.bytes for value in trace.values if value.output and value.birth > backward_start(trace))
    assert gradients == sorted(4 * parameter.numel() for parameter in rnn.parameters())


class Net(nn.Module):
    """Functional calls, a layer that runs twice, and a weight that is used without its module's forward."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.shared = nn.Linear(8, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.table = nn.Linear(8, 5, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.norm(self.conv(x))).flatten(2).transpose(1, 2)
        x = x + self.attention(x, x, x, need_weights=False)[0]
        x = self.shared(F.gelu(self.shared(x)))
        return F.linear(x, self.table.weight).softmax(-1)


def test_every_op_of_the_backward_belongs_to_the_module_of_its_forward() -> None:
    trace = train(Net(), torch.ones(2, 3, 6, 6))
    forward, backward = by_module(trace, backward=False), by_module(trace, backward=True)
    tokens, pairs = 2 * 36, 2 * 2 * 36 * 36
    assert forward == {
        "conv": 2 * 36 * 8 * 27,
        "attention": tokens * 8 * 24 + pairs * (4 + 4),
        "attention.out_proj": tokens * 8 * 8,
        "shared": 2 * tokens * 8 * 8,
        "table": tokens * 8 * 5,
    }
    assert backward == {
        "conv": forward["conv"],  # its input is given
        "attention": 2 * tokens * 8 * 24 + pairs * 5 * 4,
        "attention.out_proj": 2 * forward["attention.out_proj"],
        "shared": 2 * forward["shared"],
        "table": 2 * forward["table"],
    }
    places = {op.name: trace.modules[op.module].path for op in trace.ops[backward_start(trace) :]}
    assert (places["aten::native_batch_norm_backward"], places["aten::threshold_backward"]) == ("norm", "")
    assert places["aten::gelu_backward"] == ""


def test_gradients_go_only_where_something_is_trained() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(8 * 4 * 4, 10))
    model[0].requires_grad_(False)
    trace = train(model, torch.ones(2, 3, 6, 6))
    head = 2 * 128 * 10
    assert macs(trace) == (2 * 8 * 16 * 27 + head, head)
    frozen = nn.Linear(4, 4).requires_grad_(False)
    with pytest.raises(TraceError, match="Linear in training mode: no output depends on a parameter that is trained"):
        train(frozen, torch.ones(1, 4))


def test_dropout_and_batchnorm_train_but_for_what_is_kept_in_eval() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Dropout(0.5)).eval()
    trace = train(model, torch.ones(2, 3, 4, 4))
    assert trace.training
    assert {"aten::bernoulli_", "aten::native_dropout"} & {op.name for op in trace.ops}
    model.train()
    model[1].eval()
    (norm,) = (op for op in train(model, torch.ones(2, 3, 4, 4)).ops if op.name == "aten::native_batch_norm")
    assert norm.argument("training") is False


@pytest.mark.parametrize(("reentrant", "again"), [(False, 1), (True, 2)])
def test_a_checkpoint_runs_forward_again(reentrant: bool, again: int) -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return checkpoint(self.block, x, use_reentrant=reentrant)

    layer = 4 * 8 * 8
    trace = train(Checkpointed(), torch.ones(4, 8, requires_grad=True))
    # Both layers go back; without reentry the forward stops once it has what was not kept: the last layer's output is not needed.
    assert macs(trace) == (2 * layer, 2 * 2 * layer + again * layer)
    assert by_module(trace, backward=True) == {"block.0": 3 * layer, "block.2": (1 + again) * layer}


def test_a_custom_function_goes_back_its_own_way() -> None:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x @ x

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            (x,) = ctx.saved_tensors
            return grad @ x.t() + x.t() @ grad

    class Squares(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Identity()
            self.weight = nn.Parameter(torch.ones(6, 6))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return Square.apply(self.inner(x * self.weight))

    trace = train(Squares(), torch.ones(6, 6))
    assert macs(trace) == (6 * 6 * 6, 2 * 6 * 6 * 6)


def test_a_model_that_needs_values_runs_for_real() -> None:
    class Picky(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.fc = nn.LSTM(4, 4, batch_first=True), nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.fc(x)
            y = y * 2 if float(y.detach().sum()) > 0 else y
            y = self.rnn(y)[0]
            return F.scaled_dot_product_attention(y, y, y)

    model = Picky()
    trace = train(model, torch.ones(2, 5, 4))
    linear, rnn, attention = 10 * 4 * 4, 10 * 16 * 8, 2 * 5 * 5
    assert trace.run == "real"
    assert macs(trace) == (linear + rnn + attention * 8, linear + 2 * rnn + attention * 20)
    assert all(parameter.grad is None for parameter in model.parameters())
