"""The user's model comes back as it was, also when its forward raises."""

from __future__ import annotations

import logging
import random
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

CONTAINERS = (list, dict, set, OrderedDict)


@contextmanager
def preserved(model: nn.Module) -> Iterator[None]:
    """Puts back every attribute, parameter, buffer, hook, flag and class of every submodule, the RNGs and torch's global defaults.

    Attributes that are plain containers get their items back as well, so that a list in which forward keeps its
    activations does not keep ours. Tensors are not copied: whoever runs the model must give it others to write to.
    """
    modules = [(module, type(module), dict(module.__dict__), _contents(module)) for module in model.modules()]
    with preserved_globals():
        try:
            yield
        finally:
            for module, kind, attributes, contents in modules:
                if type(module) is not kind:
                    module.__class__ = kind
                module.__dict__.clear()
                module.__dict__.update(attributes)
                for container, items in contents:
                    _refill(container, items)


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps torch from logging a traceback of its own where a fake run fails: the error says all of it."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


@contextmanager
def preserved_globals() -> Iterator[None]:
    """Puts back torch's default dtype and device, its RNG, Python's and numpy's, and the transformer fast path's switch."""
    dtype, rng, python_rng = torch.get_default_dtype(), torch.get_rng_state(), random.getstate()
    numpy = sys.modules.get("numpy")
    numpy_rng = numpy.random.get_state() if numpy is not None else None
    deterministic, warn_only = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    fastpath = torch.backends.mha.get_fastpath_enabled()
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_rng_state(rng)
        random.setstate(python_rng)
        if numpy is not None:
            numpy.random.set_state(numpy_rng)
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
        torch.backends.mha.set_fastpath_enabled(fastpath)


def swap_tensors(model: nn.Module, replace: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Replaces every parameter, buffer and plain tensor attribute (also in plain lists and dicts) of every submodule.

    To be called inside :func:`preserved`, which puts the originals back.
    """
    for module in model.modules():
        for table in (module._parameters, module._buffers):
            for name, tensor in table.items():
                if tensor is not None:
                    table[name] = replace(tensor)  # type: ignore[assignment]
        for name, value in module.__dict__.items():
            if name not in ("_parameters", "_buffers", "_modules"):
                module.__dict__[name] = _swapped(value, replace)


def _swapped(value: Any, replace: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return replace(value)
    if type(value) is list:
        holds = any(isinstance(item, (torch.Tensor, list, tuple)) for item in value)
        return [_swapped(item, replace) for item in value] if holds else value
    if type(value) is tuple:
        return tuple(_swapped(item, replace) for item in value)
    if type(value) is dict and any(isinstance(item, torch.Tensor) for item in value.values()):
        return {key: _swapped(item, replace) for key, item in value.items()}
    return value


def _contents(module: nn.Module) -> list[tuple[Any, Any]]:
    return [(value, value.copy()) for value in module.__dict__.values() if type(value) in CONTAINERS]


def _refill(container: Any, items: Any) -> None:
    if isinstance(container, list):
        container[:] = items
    else:
        container.clear()
        container.update(items)
