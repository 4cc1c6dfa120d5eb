"""GhostNet's module."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class GhostModule(nn.Module):
    """Half of the channels from a convolution, the others from a cheap depthwise operation on that half.

    (n, c, *image) -> (n, out_channels, *smaller image). ``primary`` makes the intrinsic channels, ``cheap`` one or more ghosts of each;
    both are concatenated and cut to ``out_channels``. Han et al., GhostNet: More Features from Cheap Operations, CVPR 2020, section 3.1.
    """

    def __init__(self, primary: nn.Module, cheap: nn.Module, out_channels: int, axes: int) -> None:
        super().__init__()
        self.primary = primary
        self.cheap = cheap
        self.out_channels = out_channels
        self.axis = -1 - axes
        """Of the channels, from behind: there may be no batch."""

    def forward(self, image: Tensor) -> Tensor:
        """Intrinsic channels first, then their ghosts."""
        intrinsic = self.primary(image)
        features = torch.cat((intrinsic, self.cheap(intrinsic)), self.axis)
        return features if features.shape[self.axis] == self.out_channels else features.narrow(self.axis, 0, self.out_channels)
