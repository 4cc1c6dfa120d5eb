"""Makes ops from shapes, so that a test is a line of a table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from modelstat.records import Op, TensorSpec

_values = count()

Shape = tuple[int, ...]


def tensor(shape: Sequence[int], dtype: str = "float32", strides: Sequence[int] | None = None, value: int | None = None) -> TensorSpec:
    """A tensor of its own storage, contiguous unless strides are given."""
    if strides is None:
        strides, step = [], 1
        for size in reversed(shape):
            strides.insert(0, step)
            step *= max(size, 1)
    return TensorSpec(tuple(shape), dtype, tuple(strides), next(_values) if value is None else value)


def op(
    name: str,
    inputs: dict[str, Any],
    *outputs: Any,
    dtype: str = "float32",
    mutates: tuple[str, ...] = (),
    unused: tuple[int, ...] = (),
    view: bool = False,
    cost: dict[str, int] | None = None,
    **arguments: Any,
) -> Op:
    """An op. A tensor is a shape of ``dtype``, or a TensorSpec; an input may be a list of them. None is a tensor that is not there."""

    def spec(item: Any) -> TensorSpec:
        return item if isinstance(item, TensorSpec) else tensor(item, dtype)

    names: list[str] = []
    specs: list[TensorSpec] = []
    for argument, given in inputs.items():
        for item in given if isinstance(given, list) else [given]:
            if item is not None:
                names.append(argument)
                specs.append(spec(item))
    return Op(
        name,
        "default",
        tuple(specs),
        tuple(names),
        tuple(spec(item) for item in outputs),
        arguments,
        mutates=mutates,
        unused_outputs=unused,
        view=view,
        cost=cost,
    )


def unary(name: str, shape: Shape, dtype: str = "float32", **arguments: Any) -> Op:
    """An op from one tensor to another of its shape."""
    return op(name, {"self": shape}, shape, dtype=dtype, **arguments)
