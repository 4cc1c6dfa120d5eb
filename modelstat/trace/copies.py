"""A model to run for real, so that the user's own is not written to."""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedBuffer

from modelstat.trace.nested import tensors_in

TABLES = (dict, OrderedDict)


def own_copy(model: nn.Module) -> nn.Module:
    """A deep copy of a model. What cannot be copied (a lock, a file) is shared with it."""
    try:
        return copy.deepcopy(model, _first_copies(model))
    except Exception:
        return _by_parts(model, _first_copies(model))


def _by_parts(module: nn.Module, copies: dict[int, Any]) -> nn.Module:
    clone: nn.Module = copies.setdefault(id(module), object.__new__(type(module)))
    for name, value in module.__dict__.items():
        if name == "_modules":
            children = {
                name: child if child is None else copies.get(id(child)) or _by_parts(child, copies) for name, child in value.items()
            }
            clone.__dict__[name] = children
            continue
        try:
            clone.__dict__[name] = copy.deepcopy(value, copies)
        except Exception:
            clone.__dict__[name] = value
    return clone


def _first_copies(model: nn.Module) -> dict[int, Any]:
    """Copies of what deepcopy refuses: buffers without a shape, and tensors that carry a graph, such as a weight made from parameters.

    And of the empty tables of hooks that every module has, over which it takes longer than over all the rest.
    """
    copies: dict[int, Any] = {}
    new_buffer: Any = UninitializedBuffer
    for module in model.modules():
        copies.update((id(value), type(value)()) for value in module.__dict__.values() if type(value) in TABLES and not value)
        for _, tensor in tensors_in({name: value for name, value in module.__dict__.items() if name != "_modules"}):
            if isinstance(tensor, UninitializedBuffer):
                copies[id(tensor)] = new_buffer(tensor.requires_grad, tensor.device, tensor.dtype)
            elif tensor.grad_fn is not None:
                copies[id(tensor)] = _clone(tensor)
    return copies


def _clone(tensor: Tensor) -> Tensor:
    with torch.no_grad():
        clone = tensor.detach().clone()
    return nn.Parameter(clone, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else clone
