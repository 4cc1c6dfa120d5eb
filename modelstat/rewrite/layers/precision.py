"""A layer that computes in another precision than the layers around it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class AtPrecision(nn.Module):
    """Casts its input to ``dtype``, runs the layer, and casts the output back to what the input was."""

    casts_its_input = True
    """Whoever runs the model need not cast what goes in, even where all layers are in one precision."""

    def __init__(self, layer: nn.Module, dtype: torch.dtype) -> None:
        super().__init__()
        self.layer = layer.to(dtype)
        self.dtype = dtype

    def forward(self, features: Tensor, *rest: Any) -> Tensor:
        """The layer's output, in the dtype of ``features``."""
        outputs: Tensor = self.layer(features.to(self.dtype), *rest)
        return outputs.to(features.dtype)
