"""Non-tensor arguments as plain data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

MISSING = object()
"""What has no plain form, and stays out of the record."""


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in an argument or a result, also in lists."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_of(item)


def mapped(value: Any, function: Callable[[torch.Tensor], Any]) -> Any:
    """An argument with every tensor replaced, also in lists."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(item, function) for item in value)
    return value


def named_tensors(given: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors among an op's arguments, each with the argument's name."""
    for name, value in given.items():
        for tensor in tensors_of(value):
            yield name, tensor


def plain_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that are not tensors, as JSON can hold them.

    Of tensors, what their shape does not tell: the stored elements of a sparse one (``nnz``) and the weight inside a packed one
    (``weight_shape``, ``weight_dtype``, ...).
    """
    plain: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, torch.Tensor):
            if value.layout != torch.strided and value.layout != torch._mkldnn:  # type: ignore[attr-defined]
                plain["nnz"] = int(value._nnz())
        elif isinstance(value, torch.ScriptObject):
            plain.update(packed_weight(value))
        else:
            item = _plain(value)
            if item is not MISSING:
                plain[name] = item
    return plain


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, complex):
        return [value.real, value.imag]
    if isinstance(value, (list, tuple)):
        items = [_plain(item) for item in value]
        return MISSING if MISSING in items else items
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return str(value).removeprefix("torch.")
    if isinstance(value, torch.device):
        return value.type
    return MISSING


def packed_weight(packed: Any) -> dict[str, Any]:
    """Shape, dtype and bytes of the weight in a quantised layer's packed parameters, and its convolution's geometry."""
    try:
        # A fake run's modes know no quantised tensors, and these are real.
        with _disable_current_modes():
            weight, bias = packed.unpack()
    except (AttributeError, RuntimeError):
        return {}
    row: dict[str, Any] = {
        "weight_shape": list(weight.shape),
        "weight_dtype": str(weight.dtype).removeprefix("torch."),
        "weight_bytes": weight.numel() * weight.element_size(),
        "bias": bias is not None,
    }
    for name in ("stride", "padding", "output_padding", "dilation", "groups", "transpose"):
        if hasattr(packed, name):
            value = getattr(packed, name)()
            row["transposed" if name == "transpose" else name] = list(value) if isinstance(value, (list, tuple)) else value
    return row
