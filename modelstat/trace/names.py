"""The names that forward gives its inputs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from modelstat.trace.nested import tensors_in


def input_names(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[str, Tensor]]:
    """Every input tensor with the name of forward's argument, and a path below it where the argument is nested."""
    try:
        names = [
            parameter.name
            for parameter in inspect.signature(model.forward).parameters.values()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        names = []
    found: list[tuple[str, Tensor]] = []
    for index, value in enumerate(args):
        found.extend(tensors_in(value, names[index] if index < len(names) else f"input{index}"))
    for name, value in kwargs.items():
        found.extend(tensors_in(value, name))
    return found
