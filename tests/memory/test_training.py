"""Memory of a step of training: sums of small models, real runs, and real optimizers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from modelstat.errors import UsageError
from modelstat.memory.optimizer import OPTIMIZERS, check_optimizer, optimizer_bytes
from modelstat.memory.peak import timeline
from modelstat.memory.training import TrainingMemory, backward_start, training_memory
from modelstat.trace.capture import capture
from tests.memory.nets import TextReader, UNet, encoder
from tests.memory.observer import observed_training


def test_two_layers_by_hand() -> None:
    # fp32, batch 5: input 8, hidden 32 before and after the ReLU, output 4.
    model, batch = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)), 5
    trace = capture(model, (torch.ones(batch, 8),), training=True)
    parameters = 8 * 32 + 32 + 32 * 4 + 4
    memory = training_memory(trace, "adam")
    assert (memory.weight_bytes, memory.gradient_bytes, memory.optimizer_bytes) == (4 * parameters, 4 * parameters, 8 * parameters)
    # The most is held where the ReLU goes back: its result, which it kept, and the gradients on both sides of it; the ReLU's input was
    # let go in the forward. Beside them the input, the output and the loss (a scalar).
    assert trace.ops[memory.op].name == "aten::threshold_backward"
    assert memory.activation_bytes == 4 * (batch * (8 + 3 * 32 + 4) + 1)
    last_layer = 32 * 4 + 4
    assert memory.peak_bytes == 12 * parameters + 4 * last_layer + memory.activation_bytes


def test_what_autograd_keeps_is_let_go_while_it_runs() -> None:
    # Each layer keeps its input, 4 x 100 x 64 bytes; nothing else is large.
    depth, width, batch = 6, 64, 100
    model = nn.Sequential(*(nn.Sequential(nn.Linear(width, width, bias=False), nn.Sigmoid()) for _ in range(depth)))
    trace = capture(model, (torch.ones(batch, width),), training=True)
    start, kept, weights = backward_start(trace), 4 * batch * width, 4 * depth * width * width
    live = [size - weights for _, size in timeline(trace)]
    assert live[start] == kept * (1 + depth) + 4  # the input, the result of every sigmoid, the loss
    assert live[-1] == kept * 2 + weights + 4  # the input, the output, all gradients
    # The last layer goes back: its gradients before and after it, and the one of its weight.
    assert max(live) == kept * (1 + depth + 2) + 4 * width * width + 4


def test_half_precision_keeps_an_optimizers_state_in_fp32() -> None:
    model, x = nn.Linear(8, 4, bias=False), (torch.ones(2, 8),)

    def memory(precision: str) -> TrainingMemory:
        return training_memory(capture(model, x, training=True, precision_name=precision), "adam")

    assert [memory("bf16").weight_bytes, memory("bf16").gradient_bytes, memory("bf16").optimizer_bytes] == [2 * 32, 2 * 32, 8 * 32]
    mixed = memory("amp-bf16")
    assert [mixed.weight_bytes, mixed.gradient_bytes, mixed.optimizer_bytes] == [4 * 32, 4 * 32, 8 * 32]


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [
        ("sgd", lambda parameters: torch.optim.SGD(parameters, lr=0.1)),
        ("momentum", lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9)),
        ("adam", lambda parameters: torch.optim.Adam(parameters)),
        ("adam", lambda parameters: torch.optim.AdamW(parameters)),
    ],
)
def test_state_is_that_of_torchs_optimizers(name: str, optimizer: Callable[..., torch.optim.Optimizer]) -> None:
    model = TextReader()
    model.head.bias.requires_grad_(False)
    trace = capture(model, (torch.ones(1, 3, 32, 128),), training=True)
    real = optimizer([parameter for parameter in model.parameters() if parameter.requires_grad])
    model(torch.ones(1, 3, 32, 128)).sum().backward()
    real.step()
    state = [item for each in real.state.values() for item in each.values() if isinstance(item, torch.Tensor) and item.dim() > 0]
    assert optimizer_bytes(trace, name) == sum(tensor.numel() * tensor.element_size() for tensor in state)


def test_an_optimizer_that_does_not_exist() -> None:
    assert list(OPTIMIZERS) == ["sgd", "momentum", "adam"]
    with pytest.raises(UsageError, match="unknown optimizer 'lion': choose one of sgd, momentum, adam"):
        check_optimizer("lion")


def test_a_trace_without_a_backward() -> None:
    with pytest.raises(UsageError, match="Linear: its trace has no backward"):
        training_memory(capture(nn.Linear(2, 2), (torch.ones(1, 2),)), "sgd")


def convolutional(name: str) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        models = pytest.importorskip("torchvision.models", reason="torchvision is not installed")
        model: nn.Module = getattr(models, name)()
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        return model

    return build


class Attend(nn.Module):
    """Attention by a fused kernel, and by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        fused = F.scaled_dot_product_attention(q, k, v)
        by_hand = (q @ k.transpose(-2, -1)).softmax(-1) @ v
        return self.out((fused + by_hand).transpose(1, 2).flatten(2))


STEPS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "resnet18": (convolutional("resnet18"), (2, 3, 64, 64)),
    "mobilenet_v3": (convolutional("mobilenet_v3_small"), (2, 3, 64, 64)),
    "squeezenet": (convolutional("squeezenet1_1"), (2, 3, 64, 64)),
    "unet": (UNet, (2, 3, 32, 32)),
    "text reader": (TextReader, (2, 3, 32, 128)),
    "attention": (Attend, (2, 16, 32)),
    "encoder": (lambda: encoder(dropout=0.0), (2, 10, 32)),
}


@pytest.mark.parametrize("name", STEPS)
def test_the_peak_of_a_step_is_that_of_a_real_one(name: str) -> None:
    build, shape = STEPS[name]
    model, x = build().train(), torch.randn(shape)
    memory = training_memory(capture(model, (x,), training=True), "sgd")
    real = observed_training(model, x)
    assert memory.peak_bytes == real.peak
    assert memory.gradient_bytes == sum(parameter.grad.nbytes for parameter in model.parameters() if parameter.grad is not None)
