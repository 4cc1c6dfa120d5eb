"""A chain of convolutions as data: what `enocr.yaml` gives the sizes of."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn


class PlainConvNet(nn.Module):
    """Convolutions with bias, stride 1 and the size kept, one after another, with max pools between.

    (n, in_channels, height, width) -> (n, channels of the last convolution, height and width halved by every pool).
    """

    def __init__(self, layers: Sequence[str | Sequence[int]], relu_every: int, in_channels: int = 3) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        self.relu_every = relu_every
        for layer in layers:
            if isinstance(layer, str):
                self.layers.append(nn.MaxPool2d(2))
            else:
                out_channels, kernel = layer
                self.layers.append(nn.Conv2d(in_channels, out_channels, kernel, padding=kernel // 2))
                in_channels = out_channels

    def forward(self, image: Tensor) -> Tensor:
        """A ReLU, as a function, after every ``relu_every``-th convolution."""
        done = 0
        for layer in self.layers:
            image = layer(image)
            if not isinstance(layer, nn.MaxPool2d):
                done += 1
                if done % self.relu_every == 0:
                    image = F.relu(image)
        return image


def build(layers: Sequence[str | Sequence[int]], relu_every: int = 2) -> nn.Module:
    """The network in eval mode. ``layers`` are [channels, kernel] of a convolution, or "pool"."""
    return PlainConvNet(layers, relu_every).eval()
