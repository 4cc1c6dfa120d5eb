"""What an op returns, remembered: the same op on the same shapes is not worked out twice.

The outputs of an op on tensors without values follow from shapes, dtypes and arguments alone, and working them out takes most of a
walk's time. The memory is shared by all walks of a process, and forgotten at its end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._C import _len_torch_dispatch_stack
from torch._C._dynamo.guards import _reinterpret_tensor  # type: ignore[attr-defined]
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.autograd import forward_ad

from modelstat.trace.arguments import tensors_of
from modelstat.trace.facts import Facts, facts_of

LIMIT = 50_000
"""Entries. A walk of a large model learns a few hundred."""

BELOW = 1
"""Dispatch modes below the recorder: that of its tensors. Torch's own for tracing lies there as well, and is to see every op."""
META, STRIDED = torch.device("meta"), torch.strided
_make_subclass: Any = Tensor._make_subclass
SCALARS = (int, float, bool)
INTEGERS = frozenset({int})
PLAIN = (torch.dtype, torch.layout, torch.memory_format, torch.device, str)
_layout: Any = Tensor.layout.__get__  # type: ignore[attr-defined]  # (a fake tensor's own is written in Python)


class Fresh(NamedTuple):
    """A tensor with a storage of its own."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device


class Alias(NamedTuple):
    """A tensor on the storage of the op's first argument, of the same dtype."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    device: torch.device


FIRST = object()
"""The op returns its first argument, changed in place."""


class Remembered:
    """One op with its arguments.

    ``recipe`` makes its outputs: one tensor's, a pair of a list type and its recipes, or None where they cannot be made. ``told`` is
    for the recorder: what it wrote down of the op when it saw it last, which is the same each time.
    """

    __slots__ = ("recipe", "told")

    def __init__(self, recipe: Any) -> None:
        self.recipe = recipe
        self.told: Any = None

    @property
    def parts(self) -> list[Any]:
        """The recipe of each tensor that is made."""
        return [part for part in self.recipe[1] if part is not None] if type(self.recipe) is tuple else [self.recipe]

    @property
    def first(self) -> bool:
        """Whether all outputs lie in the memory of the first argument."""
        return bool(self.parts) and all(part is FIRST or type(part) is Alias for part in self.parts)


_outputs: dict[tuple[Any, ...] | None, Remembered] = {}


class Memo:
    """Calls ops on the fake tensors of one mode."""

    def __init__(self, mode: FakeTensorMode) -> None:
        self.mode = mode
        lenient = getattr(mode, "_allow_unsafe_data_ptr_access", False)
        self._guard: Any = (
            torch._C._set_warn_deprecated_on_mutable_data_ptr if lenient else torch._C._set_throw_on_mutable_data_ptr
        )  # what torch makes of a request for an address, as in the constructor of its fake tensors
        self._first: dict[torch.device, tuple[torch.device, dict[str, Any]]] = {}

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``func(*args, **kwargs)``, without calling it where the same was called before."""
        key = key_of(facts_of(func), args, kwargs, []) if type(func) is OpOverload and _len_torch_dispatch_stack() == BELOW else None
        known = _outputs.get(key) if key is not None else None
        if known is not None and known.recipe is not None:
            return self.outputs(known.recipe, args)
        outputs = func(*args, **kwargs)
        if key is not None and known is None:
            if len(_outputs) >= LIMIT:
                _outputs.clear()
            _outputs[key] = Remembered(_recipe(outputs, args, kwargs))
        return outputs

    def recall(self, facts: Facts, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[FakeTensor]) -> Remembered | None:
        """What is remembered of the same op on the same arguments, if its outputs can be made. ``tensors`` gets the fake tensors."""
        key = key_of(facts, args, kwargs, tensors)
        known = _outputs.get(key)  # (None is no key)
        return known if known is not None and known.recipe is not None else None

    def outputs(self, recipe: Any, args: tuple[Any, ...]) -> Any:
        """What the op returns, made anew."""
        if recipe is FIRST:
            return args[0]
        with torch._C._DisableTorchDispatch():
            if type(recipe) is tuple:
                kind, parts = recipe
                return kind([None if part is None else self._made(part, args) for part in parts])
            return self._made(recipe, args)

    def _made(self, recipe: Any, args: tuple[Any, ...]) -> Tensor:
        if recipe is FIRST:
            first: Tensor = args[0]
            return first
        if type(recipe) is Fresh:
            return self.fake(torch.empty_strided(recipe.shape, recipe.strides, dtype=recipe.dtype, device=META), recipe.device)
        return self._window(args[0], *recipe)

    def window(self, base: Tensor, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, device: torch.device) -> FakeTensor:
        """A tensor on the storage of another one, of its dtype."""
        with torch._C._DisableTorchDispatch():
            return self._window(base, shape, strides, offset, device)

    def _window(self, base: Tensor, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, device: torch.device) -> FakeTensor:
        # (Torch adds the offset to that of the tensor, whose dtype and flags the new one has.)
        return self.fake(_reinterpret_tensor(base, shape, strides, offset - base.storage_offset()), device)

    def fake(self, meta: Tensor, device: torch.device) -> FakeTensor:
        """A fake tensor on a device, with the shape and the storage of one on the meta device.

        The first is made by torch; the others get its attributes, which are the same for all that are new.
        """
        known = self._first.get(device)
        if known is None:
            first = FakeTensor(self.mode, meta, device)
            self._first[device] = first.device, dict(first.__dict__)
            return first
        made: FakeTensor = _make_subclass(FakeTensor, meta, False, dispatch_device=True, device_for_backend_keys=known[0])
        self._guard(made)
        made.__dict__ = known[1].copy()
        return made


def key_of(facts: Facts, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[FakeTensor]) -> tuple[Any, ...] | None:
    """All that decides the outputs, or None for a call that must be made: of a user's op, on values, or on tensors of a special kind.

    ``tensors`` gets the fake tensors, in order.
    """
    if not facts.pure or forward_ad._current_level >= 0:  # (derivatives carried along are no part of a key, nor zeros that stand for them)
        return None
    parts: list[Any] = [facts.number, torch.get_default_dtype()]
    if not _describe(args, parts, tensors):
        return None
    for name, value in kwargs.items():
        parts.append(name)
        if not _describe((value,), parts, tensors):
            return None
    if torch.is_inference_mode_enabled():
        if not all(tensor.is_inference() for tensor in tensors):
            return None  # a view would be none that inference mode makes, on a storage that autograd follows
    elif torch.is_grad_enabled() and any(tensor.is_inference() for tensor in tensors):
        return None  # autograd refuses such a tensor and all views of it
    return tuple(parts)


def _describe(values: Any, parts: list[Any], tensors: list[FakeTensor]) -> bool:
    for value in values:
        kind = type(value)
        if kind is FakeTensor:
            # A negated view looks like its base, as does a conjugated one; a constant has values that the mode follows.
            if value.constant is not None or _layout(value) is not STRIDED or value.is_neg():
                return False
            parts += (value.shape, value.stride(), value.storage_offset(), value.dtype, value.fake_device, value.is_conj())
            tensors.append(value)
        elif value is None:
            parts.append(None)
        elif kind in SCALARS:
            # 1, 1.0 and True are equal, but promote to different dtypes; 0.0 and -0.0 are equal, and are told apart.
            parts += (kind, value if value or kind is not float else str(value))
        elif kind is list or kind is tuple:
            if INTEGERS.issuperset(map(type, value)):
                parts.append(tuple(value))
                continue
            parts.append(len(value))
            if not _describe(value, parts, tensors):
                return False
        elif kind in PLAIN:
            parts.append(value)
        else:
            return False
    return True


def _recipe(outputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """How to make the outputs again, or None where that is not known."""
    taken = _storages((args, tuple(kwargs.values())))
    if isinstance(outputs, Tensor):
        return _one(outputs, args, taken)
    if type(outputs) not in (list, tuple):
        return None
    parts = []
    for output in outputs:
        part = None if output is None else _one(output, args, taken)
        if output is not None and part is None:
            return None
        parts.append(part)
        taken |= _storages(output)
    return type(outputs), tuple(parts)


def _one(output: Any, args: tuple[Any, ...], taken: set[int]) -> Any:
    first = args[0] if args else None
    if type(output) is not FakeTensor or output.constant is not None or output.layout is not torch.strided:
        return None
    if output is first:
        return FIRST
    if output.is_conj() or output.is_neg():
        return None
    shape, strides, storage = tuple(output.shape), output.stride(), output.untyped_storage()
    if type(first) is FakeTensor and storage._cdata == first.untyped_storage()._cdata:
        alike = output.dtype == first.dtype and not first.is_conj()
        return Alias(shape, strides, int(output.storage_offset()), output.device) if alike else None
    span = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) if output.numel() else 0
    own = storage._cdata not in taken and output.storage_offset() == 0 and storage.nbytes() == span * output.element_size()
    return Fresh(shape, strides, output.dtype, output.device) if own else None


def _storages(value: Any) -> set[int]:
    return {tensor.untyped_storage()._cdata for tensor in tensors_of(value)}
