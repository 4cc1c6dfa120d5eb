"""Models that profiles and timed runs are of."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def small() -> nn.Module:
    """The model of data/torch_cpu.json.gz and data/torch_gpu.json, on 2 x 3 x 32 x 32."""
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)).eval()


class Twice(nn.Module):
    """Two equal layers and one called twice: only the order tells the calls apart."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.second(torch.relu(self.first(torch.relu(self.second(x)))))
        return y


class Recurrent(nn.Module):
    """Two LSTM layers, which are one call to a profiler."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 8, num_layers=2)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.lstm(x)[0]
        return y


class Writes(nn.Module):
    """A forward that changes whatever it can reach."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.seen: list[Tensor] = []
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x)
        self.get_buffer("calls").add_(1)
        torch.backends.mha.set_fastpath_enabled(not torch.backends.mha.get_fastpath_enabled())
        torch.set_num_threads(1)
        y: Tensor = self.linear(x) + torch.rand_like(x)
        return y
