"""Precisions: which dtype parameters and inputs take, and whether autocast is on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch

from modelstat.errors import UsageError
from modelstat.trace.lazy import is_lazy


class Precision(NamedTuple):
    """``dtype`` replaces the floating-point dtype of parameters, buffers and inputs; ``autocast`` is autocast's own dtype."""

    name: str
    dtype: torch.dtype | None
    autocast: torch.dtype | None = None


PRECISIONS: dict[str, Precision] = {
    p.name: p
    for p in (
        Precision("fp32", torch.float32),
        Precision("tf32", torch.float32),
        Precision("fp16", torch.float16),
        Precision("bf16", torch.bfloat16),
        Precision("fp64", torch.float64),
        Precision("amp-fp16", None, torch.float16),
        Precision("amp-bf16", None, torch.bfloat16),
    )
}

NAMES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16", torch.float64: "fp64"}


def precision(name: str) -> Precision:
    """The precision by name. Raises UsageError naming the ones that there are."""
    try:
        return PRECISIONS[name]
    except KeyError:
        raise UsageError(f"unknown precision {name!r}: choose one of {', '.join(PRECISIONS)}") from None


def own_precision(model: torch.nn.Module, tensors: Iterator[torch.Tensor]) -> str:
    """The name of the dtype that holds most of the model's floating-point parameters (of its inputs, if it has none)."""
    elements: dict[torch.dtype, int] = {}
    for parameter in model.parameters():
        if parameter.dtype in NAMES and not is_lazy(parameter):
            elements[parameter.dtype] = elements.get(parameter.dtype, 0) + parameter.numel()
    for tensor in () if elements else tensors:
        if tensor.dtype in NAMES:
            elements[tensor.dtype] = elements.get(tensor.dtype, 0) + tensor.numel()
    return NAMES[max(elements, key=lambda dtype: elements[dtype])] if elements else "fp32"


@contextmanager
def autocast(device: str, dtype: torch.dtype | None) -> Iterator[None]:
    """Autocast with a device's own lists, also where that device is not there.

    ``torch.autocast("cuda")`` turns itself off without a driver, so its switches are set by hand, and put back.
    """
    if dtype is None:
        yield
        return
    before = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device), torch.is_autocast_cache_enabled()
    torch.set_autocast_enabled(device, True)
    torch.set_autocast_dtype(device, dtype)
    torch.set_autocast_cache_enabled(True)
    torch.autocast_increment_nesting()
    try:
        yield
    finally:
        if torch.autocast_decrement_nesting() == 0:
            torch.clear_autocast_cache()
        torch.set_autocast_enabled(device, before[0])
        torch.set_autocast_dtype(device, before[1])
        torch.set_autocast_cache_enabled(before[2])
