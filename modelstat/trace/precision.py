"""Precisions: which dtype parameters and inputs take, and whether autocast is on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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


def own_precision(weights: Iterable[torch.Tensor], inputs: Iterable[torch.Tensor]) -> str:
    """The name of the dtype that holds most of a model's floating-point parameters (of its inputs, if it has none)."""
    elements: dict[torch.dtype, int] = {}
    for tensor in weights:
        if tensor.dtype in NAMES and isinstance(tensor, torch.nn.Parameter) and not is_lazy(tensor):
            elements[tensor.dtype] = elements.get(tensor.dtype, 0) + tensor.numel()
    for tensor in () if elements else inputs:
        if tensor.dtype in NAMES:
            elements[tensor.dtype] = elements.get(tensor.dtype, 0) + tensor.numel()
    return NAMES[max(elements, key=lambda dtype: elements[dtype])] if elements else "fp32"


def is_mixed(weights: Iterable[torch.Tensor]) -> bool:
    """Whether parameters have several floating-point dtypes: nothing is cast then, unless a precision is asked for."""
    return len({tensor.dtype for tensor in weights if tensor.dtype in NAMES and isinstance(tensor, torch.nn.Parameter)}) > 1


@contextmanager
def autocast(device: str, dtype: torch.dtype | None) -> Iterator[None]:
    """Autocast with a device's own lists, also where that device is not there.

    ``torch.autocast("cuda")`` turns itself off without a driver, so its switches are set by hand, and put back. Without a dtype, an
    autocast that is on around the analysis is turned off: the precision alone decides.
    """
    if dtype is None:
        around = [each for each in ("cpu", "cuda") if torch.is_autocast_enabled(each)]
        for each in around:
            torch.set_autocast_enabled(each, False)
        try:
            yield
        finally:
            for each in around:
                torch.set_autocast_enabled(each, True)
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
