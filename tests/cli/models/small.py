"""Models that the command line is tried on."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Net(nn.Module):
    """One convolution: 3 x 8 x 9 + 8 = 224 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, image: Tensor) -> Tensor:
        output: Tensor = self.conv(image)
        return output


class Raises(nn.Module):
    def forward(self, image: Tensor) -> Tensor:
        raise RuntimeError("the flux capacitor\nis empty")


class Unknown(nn.Module):
    """Uses an op that nobody has a formula for."""

    def forward(self, image: Tensor) -> Tensor:
        twisted: Tensor = twist(image)
        return twisted


@torch.library.custom_op("modelstat_tests::twist", mutates_args=())
def twist(image: Tensor) -> Tensor:
    return image.flip(-1)


@twist.register_fake
def _(image: Tensor) -> Tensor:
    return torch.empty_like(image)


def broken() -> nn.Module:
    raise ValueError("no such width: -1")


def number() -> int:
    return 42


def with_inputs() -> tuple[nn.Module, tuple[Tensor, ...]]:
    return Net(), (torch.zeros(2, 3, 32, 128),)
