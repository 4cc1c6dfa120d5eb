"""Tensors without values: what a fake run is made of."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from modelstat.trace.lazy import is_lazy
from modelstat.trace.precision import NAMES


class Fakes:
    """Makes one fake tensor for each tensor that it is shown, always the same one, on one device.

    ``dtype``, if not None, replaces the dtype of floating-point tensors that are ``cast``.
    """

    def __init__(self, device: str, dtype: torch.dtype | None) -> None:
        self.device, self.dtype = device, dtype
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self._made: dict[int, Tensor] = {}
        self._originals: list[Tensor] = []
        self._storages: dict[int, int] = {}

    def cast(self, tensor: Tensor) -> Tensor:
        """The fake for a parameter, a buffer or an input, at the chosen precision. A Parameter stays one, with its requires_grad."""
        dtype = self.dtype if self.dtype is not None and tensor.dtype in NAMES else tensor.dtype
        return self._fake(tensor, dtype)

    def keep(self, tensor: Tensor) -> Tensor:
        """The fake for a constant that forward brings along, at its own dtype; a fake tensor stays what it is."""
        if isinstance(tensor, FakeTensor):
            return tensor
        return self._fake(tensor, tensor.dtype)

    def storage_of(self, fake: Tensor) -> int:
        """Which original memory a fake stands for."""
        return self._storages.get(id(fake), id(fake))

    def _fake(self, tensor: Tensor, dtype: torch.dtype) -> Tensor:
        known = self._made.get(id(tensor))
        if known is not None:
            return known
        made: Tensor
        # An id is only good for as long as its tensor lives.
        self._originals.append(tensor)
        if is_lazy(tensor):
            self._made[id(tensor)] = tensor
            return tensor
        if type(tensor) not in (Tensor, torch.nn.Parameter, torch.nn.Buffer) or tensor.layout != torch.strided or tensor.is_quantized:
            made = self.mode.from_tensor(tensor)
        else:
            with self.mode, torch.no_grad():
                made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=dtype, device=self.device)
        if isinstance(tensor, torch.nn.Parameter):
            made = torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
        elif tensor.requires_grad and made.is_floating_point():
            made.requires_grad_()
        self._made[id(tensor)] = made
        self._storages[id(made)] = _storage_key(tensor)
        return made


def materialize(tensor: Tensor, dtype: torch.dtype | None) -> Tensor:
    """A real tensor in place of a meta one: standard normal, ones for bool, 0 or 1 for integers (from torch's global generator).

    A real tensor is cloned, so that the run cannot write to the user's.
    """
    wanted = dtype if dtype is not None and tensor.dtype in NAMES else tensor.dtype
    if not tensor.is_meta:
        return tensor.detach().clone().to(wanted)
    if wanted == torch.bool:
        return torch.ones(tensor.shape, dtype=torch.bool)
    if not wanted.is_floating_point and not wanted.is_complex:
        return torch.randint(0, 2, tuple(tensor.shape)).to(wanted)
    return torch.randn(tensor.shape, dtype=wanted if wanted.is_complex else torch.float32).to(wanted)


def _storage_key(tensor: Tensor) -> Any:
    try:
        return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return id(tensor)
