"""A trace at any batch from the traces of two."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torchvision
from torch import nn

from modelstat.cost.registry import costs
from modelstat.records import Trace
from modelstat.trace.batches import HIGH, LOW, BatchPair, NotAffineError
from modelstat.trace.capture import capture


def walk(model: nn.Module, shape: tuple[int, ...], batch: int) -> Trace:
    return capture(model, (torch.empty(batch, *shape, device="meta"),), batch=batch)


def small(name: str) -> nn.Module:
    with torch.device("meta"):
        model: nn.Module = torchvision.models.get_model(name)
    return model.eval()


class Folded(nn.Module):
    """Folds the batch into the sequence and back, slices, expands, concatenates and runs an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.zeros(1, 1, 6))
        self.fc = nn.Linear(6, 6)
        self.rnn = nn.LSTM(6, 5, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch = x.shape[0]
        x = torch.cat([self.token.expand(batch, -1, -1), x], 1)
        x = self.fc(x.reshape(-1, 6)).view(batch, -1, 6)
        return self.rnn(x)[0][:, -1].repeat(2, 1)


@pytest.mark.parametrize("batch", [2, 4, 7, 256])
@pytest.mark.parametrize(
    ("model", "shape"),
    [
        pytest.param("resnet18", (3, 64, 64), id="resnet18"),
        pytest.param("swin_t", (3, 64, 64), id="swin_t"),
        pytest.param("vit_b_16", (3, 224, 224), id="vit_b_16"),
        pytest.param("shufflenet_v2_x1_0", (3, 64, 64), id="shufflenet"),
        pytest.param(Folded, (4, 6), id="folded"),
    ],
)
def test_is_what_a_walk_at_that_batch_records(model: Any, shape: tuple[int, ...], batch: int) -> None:
    net = small(model) if isinstance(model, str) else model().eval()
    pair = BatchPair(walk(net, shape, LOW), walk(net, shape, HIGH))
    found = pair.at(batch)
    assert found == walk(net, shape, batch)
    assert costs(found, alike=pair.alike) == costs(found)


def test_ops_that_repeat_are_alike() -> None:
    """Three equal blocks, and a wider one: only values and modules differ among the first."""

    class Blocks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.Sequential(*(nn.Sequential(nn.Linear(4, size), nn.ReLU()) for size in (4, 4, 4, 8)))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.blocks(x)
            return found

    net = Blocks().eval()
    pair = BatchPair(walk(net, (4,), LOW), walk(net, (4,), HIGH))
    running = [(index, first) for index, first in enumerate(pair.alike) if not pair.low.ops[index].view]
    places = {index: place for place, (index, _) in enumerate(running)}
    assert [places[first] for _, first in running] == [0, 1, 0, 1, 0, 1, 6, 7]



def test_control_flow_that_depends_on_the_batch_is_refused() -> None:
    class Loop(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(x.shape[0]):
                x = x + 1
            return x

    with pytest.raises(NotAffineError, match="number of ops"):
        BatchPair(walk(Loop(), (4,), LOW), walk(Loop(), (4,), HIGH))


def test_a_tensor_with_two_batch_axes_is_refused() -> None:
    class Similarity(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ x.T

    with pytest.raises(NotAffineError, match=r"\(2, 2\) and \(3, 3\)"):
        BatchPair(walk(Similarity(), (4,), LOW), walk(Similarity(), (4,), HIGH))


def test_a_batch_of_one_is_refused() -> None:
    pair = BatchPair(walk(nn.Linear(4, 4), (4,), LOW), walk(nn.Linear(4, 4), (4,), HIGH))
    with pytest.raises(NotAffineError, match="batch 1 must be traced by itself"):
        pair.at(1)
