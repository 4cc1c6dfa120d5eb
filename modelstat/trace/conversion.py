"""Modules that convert themselves (``self.gate.to(x.dtype)`` in a forward) in a run on fake tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


@contextmanager
def replaceable_tensors() -> Iterator[None]:
    """Lets ``Module.to`` put converted parameters in the place of the old ones.

    Torch itself swaps the contents of the two for fake tensors, and refuses where anything else still points to them.
    """
    original = nn.Module._apply
    nn.Module._apply = _apply  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module._apply = original  # type: ignore[method-assign]


def _apply(self: nn.Module, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
    if recurse:
        for child in self.children():
            child._apply(fn)
    for name, parameter in self._parameters.items():
        if parameter is not None:
            with torch.no_grad():
                converted = fn(parameter)
            if converted is not parameter:
                self._parameters[name] = nn.Parameter(converted, parameter.requires_grad)
    for name, buffer in self._buffers.items():
        if buffer is not None:
            self._buffers[name] = fn(buffer)
    return self
