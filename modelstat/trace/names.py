"""The names that forward gives its inputs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any

from torch import Tensor, nn

from modelstat.trace.nested import tensors_in


def input_names(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[str, Tensor]]:
    """Every input tensor with the name of forward's argument, and a path below it where the argument is nested."""
    names = _positional(model)
    found: list[tuple[str, Tensor]] = []
    for index, value in enumerate(args):
        found.extend(tensors_in(value, names[index] if index < len(names) else f"input{index}"))
    for name, value in kwargs.items():
        found.extend(tensors_in(value, name))
    return found


def _positional(model: nn.Module) -> list[str]:
    """Names of the arguments that forward takes by position."""
    try:
        forward = model.forward
        function = getattr(forward, "__func__", None)
        if isinstance(function, FunctionType) and not function.__dict__:  # a plain method: no decorator has changed its signature
            return list(function.__code__.co_varnames[1 : function.__code__.co_argcount])
        return [
            parameter.name
            for parameter in inspect.signature(forward).parameters.values()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
    except (AttributeError, TypeError, ValueError):
        return []
