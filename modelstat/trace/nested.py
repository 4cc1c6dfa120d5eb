"""Tensors inside the containers and objects that forward methods take, keep and return."""

from __future__ import annotations

import copy
import dataclasses
import enum
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.nested._internal.nested_tensor import NestedTensor
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

DEPTH = 4
"""How far into objects: a cache that holds a list of layers, each with its tensors, has a depth of 2."""

ATOMS = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size, types.FunctionType, types.MethodType)
PLAIN = frozenset({torch.Tensor, torch.nn.Parameter, FakeTensor})
"""Kinds of tensor that are not made of others."""
OPAQUE = ("torch", "numpy", "builtins", "functools", "collections", "typing", "threading", "logging")
"""Packages whose objects are left alone."""


def attributes_of(value: Any) -> dict[str, Any] | None:
    """The attributes of an object that may hold tensors (a cache, a batch, a configuration), else None."""
    kind = type(value)
    if kind.__module__.partition(".")[0] in OPAQUE or isinstance(value, (torch.Tensor, torch.nn.Module, type, enum.Enum, types.ModuleType)):
        return None
    attributes = getattr(value, "__dict__", None)
    return attributes if type(attributes) is dict else None


def tensors_in(value: Any, name: str = "", depth: int = DEPTH, *, unwrap: bool = True) -> Iterator[tuple[str, torch.Tensor]]:
    """All tensors in nested tuples, lists, dicts, dataclasses and other objects, with a path such as ``ids`` or ``cache.0.1``.

    ``unwrap``: of a tensor that is made of others (a nested one: its values and offsets), those.
    """
    if type(value) in PLAIN:
        yield name, value
    elif isinstance(value, torch.Tensor):
        if unwrap and is_traceable_wrapper_subclass(value):
            yield from _parts(value, name)
        else:
            yield name, value
    elif isinstance(value, ATOMS):
        return
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from tensors_in(item, f"{name}.{key}" if name else str(key), depth, unwrap=unwrap)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for index, item in enumerate(value):
            yield from tensors_in(item, f"{name}.{index}" if name else str(index), depth, unwrap=unwrap)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from tensors_in(getattr(value, field.name, None), f"{name}.{field.name}" if name else field.name, depth, unwrap=unwrap)
    elif depth and (attributes := attributes_of(value)):
        for key, item in attributes.items():
            yield from tensors_in(item, f"{name}.{key}" if name else key, depth - 1, unwrap=unwrap)


def _parts(tensor: Any, name: str) -> Iterator[tuple[str, torch.Tensor]]:
    for attribute in tensor.__tensor_flatten__()[0]:
        part = getattr(tensor, attribute)
        if part.numel() or not isinstance(tensor, NestedTensor):  # lengths that are kept as the shape of an empty tensor
            yield from tensors_in(part, f"{name}.{attribute.strip('_')}" if name else attribute.strip("_"))


def map_tensors(value: Any, function: Callable[[torch.Tensor], Any], depth: int = DEPTH) -> Any:
    """The same nesting with every tensor replaced. Containers and objects are copied, never changed; what cannot be copied stays."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, ATOMS):
        return value
    if isinstance(value, tuple):
        items = [map_tensors(item, function, depth) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if type(value) in (list, set):
        return type(value)(map_tensors(item, function, depth) for item in value)
    if type(value) is dict:
        return {key: map_tensors(item, function, depth) for key, item in value.items()}
    if isinstance(value, Mapping) and hasattr(value, "items"):
        try:
            return type(value)({key: map_tensors(item, function, depth) for key, item in value.items()})  # type: ignore[call-arg]
        except TypeError:
            return value
    attributes = attributes_of(value) if depth else None
    return value if attributes is None else copied(value, {key: map_tensors(item, function, depth - 1) for key, item in attributes.items()})


def copied(value: Any, attributes: dict[str, Any]) -> Any:
    """A copy of an object with other attributes, or the object itself where it cannot be copied."""
    try:
        clone = copy.copy(value)
        clone.__dict__.update(attributes)
    except Exception:
        return value
    return clone
