"""Build a model of any size without allocating its weights.

Small tensors stay real, large ones go to the meta device as they are made. So what a constructor computes to steer itself
(``torch.linspace(0, rate, depth).tolist()``, lengths of sequences, indices) keeps its values, and a weight costs nothing.
Where a constructor needs the values of a large tensor, only what ``torch.empty`` allocates goes to meta, which is how
torch's layers allocate their weights; only where that fails too is the model built for real.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from modelstat.errors import BuildError
from modelstat.sources.guard import guarded

SMALL_BYTES = 64 * 1024
"""A tensor of at most this size (B) stays real ..."""
SMALL_TOTAL_BYTES = 64 * 1024**2
"""... until this much (B) is real; then only tensors of at most TINY_BYTES (B) do."""
TINY_BYTES = 1024

VALUE_HINTS = ("meta", "item()", "data", "storage", "values", "numpy", "notimplemented")
"""Words in the messages of a constructor that fails for want of values."""

NOTE_REAL = "built with real (random) weights, since its constructor needs their values"

Result = TypeVar("Result")


class Weightless(TorchDispatchMode):
    """Sends large new tensors to the meta device.

    ``empty_only`` does so only for what ``torch.empty`` allocates. ``redirected`` counts the bytes that were not allocated.
    """

    def __init__(self, *, empty_only: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.empty_only = empty_only
        self.real = 0
        self.redirected = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        tensors = _tensors(args, kwargs)
        if any(tensor.is_meta for tensor in tensors):
            return self._on_meta(func, args, kwargs)
        may_redirect = not self.empty_only or func in _EMPTY
        if not tensors and may_redirect and _makes_strided(func, kwargs):
            # Factories of quantised tensors do not exist on meta: such a tensor is made for real.
            with contextlib.suppress(NotImplementedError):
                made = func(*args, **_meta_options(func, kwargs))
                if isinstance(made, torch.Tensor) and self._large(made):
                    return made
        result = func(*args, **kwargs)
        if may_redirect and _is_fresh(func, result):
            if self._large(result):
                return torch.empty_strided(result.size(), result.stride(), dtype=result.dtype, device="meta")
            self.real += result.nbytes
        return result

    def _large(self, tensor: torch.Tensor) -> bool:
        large = tensor.nbytes > (SMALL_BYTES if self.real < SMALL_TOTAL_BYTES else TINY_BYTES)
        self.redirected += tensor.nbytes * large
        return large

    def _on_meta(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an op of which one input is on meta: all the others follow. What it writes into a real tensor is lost."""
        result = func(*_to_meta(args), **_meta_options(func, _to_meta(kwargs)))
        written = [
            args[index] if index < len(args) else kwargs.get(argument.name)
            for index, argument in enumerate(func._schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        if isinstance(result, torch.Tensor) and func._schema.returns[0].alias_info is not None and written:
            return written[0]
        return result


_EMPTY = frozenset({torch.ops.aten.empty.memory_format, torch.ops.aten.empty_strided.default})


def _tensors(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    for value in (*args, *kwargs.values()):
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, torch.Tensor):
                found.append(item)
    return found


def _to_meta(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value if value.is_meta else torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, (tuple, list)):
        return type(value)(_to_meta(item) for item in value)
    if isinstance(value, dict):
        return {name: _to_meta(item) for name, item in value.items()}
    return value


def _meta_options(func: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The options of a call that runs on meta: no other device, and no generator, for there is nothing to draw."""
    options = dict(kwargs)
    if options.get("generator") is not None:
        options["generator"] = None
    if any(argument.name == "device" for argument in func._schema.arguments) and (
        "device" in options or not any(argument.name == "self" for argument in func._schema.arguments)
    ):
        options["device"] = torch.device("meta")
    if options.get("pin_memory"):
        options["pin_memory"] = False
    return options


def _makes_strided(func: Any, kwargs: dict[str, Any]) -> bool:
    return kwargs.get("layout") in (None, torch.strided) and any(argument.name == "device" for argument in func._schema.arguments)


def _is_fresh(func: Any, result: Any) -> bool:
    """The op made a new dense tensor of its own: not a view, not one of its inputs, not sparse or quantised."""
    if type(result) is not torch.Tensor or result.layout is not torch.strided or result.is_quantized or result.is_meta:
        return False
    return func._schema.returns[0].alias_info is None


def build_weightless(build: Callable[[], Result]) -> tuple[Result, tuple[str, ...]]:
    """Call ``build`` without allocating large tensors, and say in notes if that was not possible.

    An exception counts as the user's own if nothing had been sent to meta, or if two ways end with the same one and it does not speak of
    values; otherwise the next, less thrifty way is tried, and the last exception is raised.
    The real build is not tried where it would not fit the machine's memory.
    """
    before = ""
    for empty_only in (False, True):
        mode = Weightless(empty_only=empty_only)
        try:
            with guarded(), mode:
                return build(), ()
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            if mode.redirected == 0 or (text == before and not any(hint in text.lower() for hint in VALUE_HINTS)):
                raise
            before = text
            if empty_only and mode.redirected > memory_bytes() / 2:
                reason = f"it needs the values of its weights, and these ({mode.redirected / 1e9:.0f} GB and more) do not fit this machine"
                raise BuildError(f"{reason}: {error}") from error
    return build_real(build), (NOTE_REAL,)


def build_real(build: Callable[[], Result]) -> Result:
    """Call ``build`` with real, seeded random weights."""
    with guarded():
        return build()


def memory_bytes() -> float:
    """Physical memory (B) of this machine; infinite where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return math.inf
