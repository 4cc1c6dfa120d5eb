"""Models that the tests of memory run for real."""

from __future__ import annotations

import torch
from torch import nn


class UNet(nn.Module):
    """Two levels down and up again, with a skip over each."""

    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2, self.bottom = block(3, 8), block(8, 16), block(16, 32)
        self.pool = nn.MaxPool2d(2)
        self.up2, self.merge2 = nn.ConvTranspose2d(32, 16, 2, stride=2), block(32, 16)
        self.up1, self.merge1 = nn.ConvTranspose2d(16, 8, 2, stride=2), block(16, 8)
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one = self.down1(x)
        two = self.down2(self.pool(one))
        up = self.merge2(torch.cat([self.up2(self.bottom(self.pool(two))), two], 1))
        return self.head(self.merge1(torch.cat([self.up1(up), one], 1)))


def block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.ReLU(inplace=True),
    )


class TextReader(nn.Module):
    """Reads lines of text: convolutions that halve the height, then one classifier for each column."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs, stride in ((3, 16, (1, 1)), (16, 32, (2, 2)), (32, 48, (2, 1)), (48, 64, (2, 1))):
            layers += [nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.Hardswish()]
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(64 * 4, 97)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        columns = self.features(x).flatten(1, 2).transpose(1, 2)
        return self.head(columns).log_softmax(-1)


def encoder(dropout: float = 0.1) -> nn.Module:
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
