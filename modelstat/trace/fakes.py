"""Tensors without values: what a fake run is made of."""

from __future__ import annotations

import weakref

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorConverter, FakeTensorMode
from torch.utils._python_dispatch import _disable_current_modes

from modelstat.trace.known import LIMIT, KnownValues
from modelstat.trace.lazy import is_lazy
from modelstat.trace.memo import Memo
from modelstat.trace.precision import NAMES
from modelstat.trace.values import memory_of

FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
"""Memory format of an image and of a volume whose channels are innermost, by the number of axes."""


_spare: list[Memo] = []
"""Modes that no walk uses now."""


class Fakes:
    """Makes one fake tensor for each tensor that it is shown, always the same one, on one device.

    ``dtype``, if not None, replaces the dtype of floating-point tensors that are ``cast``; ``channels_last`` lays images and weights of
    convolutions out as ``model.to(memory_format=torch.channels_last)`` does. Small tensors with values pass them on to
    ``known``, parameters and floating-point inputs aside.
    """

    def __init__(self, device: str, dtype: torch.dtype | None, channels_last: bool = False) -> None:
        self.device, self.dtype, self.channels_last = device, dtype, channels_last
        self.torch_device = torch.device(device)
        try:
            self.memo = _spare.pop()
        except IndexError:
            self.memo = Memo(_new_mode())
        self.mode = self.memo.mode
        self.known = KnownValues(self.memo.call)
        self.differentiable = device != "cuda" or torch.backends.cuda.is_built()
        """Whether tensors may require gradients: a torch built without CUDA aborts where autograd asks a GPU for its stream."""
        self._trainable: set[int] = set()
        self._made: dict[int, Tensor] = {}
        self._originals: list[Tensor] = []
        self._constants: dict[int, weakref.ref[Tensor]] = {}
        self._storages: dict[int, int] = {}

    def done(self) -> None:
        """After a walk that did not raise: the next one may have the mode, which takes as long to make as some ops.

        It is to make fakes of its own: those of this walk were perhaps written to.
        """
        converter = self.mode.fake_tensor_converter
        if converter.constant_storage_mapping or converter.meta_converter.tensor_memo or converter.meta_converter.storage_memo:
            self.mode.fake_tensor_converter = FakeTensorConverter()
        self.mode.reset_nt_tensor_id_counter()
        _spare.append(self.memo)

    def cast(self, tensor: Tensor) -> Tensor:
        """The fake for a parameter or a buffer, at the chosen precision. A Parameter stays one, with its requires_grad."""
        return self._fake(tensor, self._chosen(tensor))

    def given(self, tensor: Tensor) -> Tensor:
        """The fake for an input, at the chosen precision. Integers keep their values, other inputs are examples of their shape."""
        return self._fake(tensor, self._chosen(tensor), values=not (tensor.is_floating_point() or tensor.is_complex()))

    def keep(self, tensor: Tensor) -> Tensor:
        """The fake for a constant that forward brings along, at its own dtype; a fake tensor stays what it is.

        It lives as long as the constant does: forward may have made it for itself.
        """
        if isinstance(tensor, FakeTensor):
            return tensor
        known = self._made.get(id(tensor))
        if known is not None:
            return known
        made = self._fake(tensor, tensor.dtype, own=False)
        if self._originals[-1] is tensor:
            del self._originals[-1]
            key, fakes = id(tensor), self._made
            self._constants[key] = weakref.ref(tensor, lambda _: fakes.pop(key, None))
        return made

    def trains(self, fake: Tensor) -> bool:
        """Whether the tensor that a fake stands for requires gradients."""
        return id(fake) in self._trainable

    def storage_of(self, fake: Tensor) -> int:
        """Which original memory a fake stands for."""
        return self._storages.get(id(fake), id(fake))

    def _chosen(self, tensor: Tensor) -> torch.dtype:
        return self.dtype if self.dtype is not None and tensor.dtype in NAMES else tensor.dtype

    def _fake(self, tensor: Tensor, dtype: torch.dtype, *, values: bool = True, own: bool = True) -> Tensor:
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
            # Made by hand: through the mode, each would cost as much as an op.
            with torch._C._DisableTorchDispatch():
                strides = last_strides(tensor) if own and self.channels_last and tensor.is_contiguous() else tensor.stride()
                meta = torch.empty_strided(tensor.shape, strides, dtype=dtype, device="meta")
            made = self.memo.fake(meta, self.torch_device)
        if isinstance(tensor, torch.nn.Parameter):
            made._is_param = True
            made.requires_grad_(tensor.requires_grad and self.differentiable)
        elif tensor.requires_grad and self.differentiable and made.is_floating_point():
            made.requires_grad_()
        if tensor.requires_grad:
            self._trainable.add(id(made))
        self._made[id(tensor)] = made
        self._storages[id(made)] = memory_of(tensor)
        plain = type(tensor) in (Tensor, torch.nn.Buffer) and not tensor.is_meta and tensor.layout == torch.strided
        if values and plain and tensor.numel() <= LIMIT:
            with _disable_current_modes():
                self.known.learn(made, tensor.detach().to("cpu", dtype, copy=True))
        return made


def _new_mode() -> FakeTensorMode:
    """Without torch's own memory of what ops return: it refuses quantised weights, of which it compares one with another."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    mode.cache_enabled = False
    return mode


def last_strides(tensor: Tensor) -> tuple[int, ...]:
    """The strides of an image (N, C, H, W) or a volume (N, C, D, H, W) with its channels innermost; those that it has for anything else."""
    layout = FORMATS.get(tensor.dim())
    return tensor.stride() if layout is None else torch.empty(tensor.shape, device="meta").to(memory_format=layout).stride()


def laid_out(tensor: Tensor) -> Tensor:
    """A real image or volume with its channels innermost; anything else as it is."""
    layout = FORMATS.get(tensor.dim())
    return tensor if layout is None else tensor.contiguous(memory_format=layout)


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
