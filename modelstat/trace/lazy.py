"""Parameters of lazy layers, which have no shape before the first call."""

from __future__ import annotations

from torch import Tensor
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter


def is_lazy(tensor: Tensor) -> bool:
    """Whether a parameter or buffer waits for its first call to be given a shape."""
    return type(tensor) in (UninitializedParameter, UninitializedBuffer)
