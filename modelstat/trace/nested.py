"""Tensors inside the containers that forward methods take and return."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch


def tensors_in(value: Any, name: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """All tensors in nested tuples, lists, dicts and dataclasses, with a path such as ``ids`` or ``cache.0.1``."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from tensors_in(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple, set, frozenset)):
        for index, item in enumerate(value):
            yield from tensors_in(item, f"{name}.{index}" if name else str(index))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from tensors_in(getattr(value, field.name, None), f"{name}.{field.name}" if name else field.name)


def map_tensors(value: Any, function: Callable[[torch.Tensor], Any]) -> Any:
    """The same nesting with every tensor replaced. Containers are copied, never changed; unknown objects stay as they are."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, tuple):
        items = [map_tensors(item, function) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if type(value) in (list, set):
        return type(value)(map_tensors(item, function) for item in value)
    if type(value) is dict:
        return {key: map_tensors(item, function) for key, item in value.items()}
    if isinstance(value, Mapping) and hasattr(value, "items"):
        try:
            return type(value)({key: map_tensors(item, function) for key, item in value.items()})  # type: ignore[call-arg]
        except TypeError:
            return value
    return value
