"""How formulas name the tensors of an op, and the few sums that many of them need."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from modelstat.records import Op, TensorSpec


def operand(op: Op, *names: str) -> TensorSpec:
    """The tensor given under the first of these argument names that is there. Raises LookupError if none is."""
    for name in names:
        spec = op.tensor(name)
        if spec is not None:
            return spec
    raise LookupError(f"no tensor named {' or '.join(names)}, only {', '.join(op.names) or 'none'}")


def elements(specs: Iterable[TensorSpec]) -> int:
    """Elements of several tensors together."""
    return sum(spec.elements for spec in specs)


def window(spec: TensorSpec) -> tuple[object, ...]:
    """What a tensor covers of its value, in whatever order: a matrix and its transpose have the same window.

    Axes are sorted by stride, and those that follow each other without a gap are one; expanded axes and axes of one element are none.
    """
    merged: list[tuple[int, int]] = []
    for stride, size in sorted((stride, size) for size, stride in zip(spec.shape, spec.strides, strict=False) if size != 1 and stride != 0):
        if merged and merged[-1][0] * merged[-1][1] == stride:
            merged[-1] = (merged[-1][0], merged[-1][1] * size)
        else:
            merged.append((stride, size))
    return spec.value, spec.offset, spec.dtype, tuple(merged)


def total_bytes(specs: Iterable[TensorSpec]) -> int:
    """Bytes of several tensors together, each window on a value once."""
    tensors: Collection[TensorSpec] = specs if isinstance(specs, tuple) else list(specs)
    if len(tensors) > 1 and len({spec.value for spec in tensors}) < len(tensors):
        tensors = {window(spec): spec for spec in tensors}.values()
    return sum([spec.bytes for spec in tensors])


def produced(op: Op) -> int:
    """Elements that the op yields: of its first output, or of all for ops over lists; in place, of what it changes."""
    if op.name.startswith("aten::_foreach_"):
        return elements(op.outputs or op.tensors("self"))
    return op.outputs[0].elements if op.outputs else elements(op.inputs[:1])


GROUPED = ("aten::_grouped_mm", "aten::_scaled_grouped_mm", "aten::_scaled_grouped_mm_v2", "transformers::grouped_mm_fallback")
"""Products of groups of rows with a matrix each: routed experts."""


def touched(groups: int, choices: float, tokens: float) -> float:
    """Expected number of groups that ``tokens`` meet, each of them ``choices`` different ones, where none is favoured: G (1 - (1 - k/G)^t).

    >>> touched(8, 2, 1), round(touched(8, 2, 8), 2)
    (2.0, 7.2)
    """
    missed: float = (1.0 - choices / groups) ** tokens
    return groups * (1.0 - missed)


def groups_met(op: Op) -> float:
    """How many of the matrices (G, K, N) of a grouped product its rows (T, K) meet.

    T of them at most, and where the trace says how many ``choices`` each token has, those that T / choices tokens meet.
    """
    rows, matrices = operand(op, "self", "input").shape[0], operand(op, "mat2", "weight").shape[0]
    choices = op.argument("choices")
    return touched(matrices, choices, rows / choices) if choices else float(min(rows, matrices))


def per_axis(value: Any, axes: int) -> tuple[int, ...]:
    """A size argument as one number per axis: torch lets ``3`` and ``[3]`` stand for ``[3, 3]``.

    >>> per_axis([3], 2)
    (3, 3)
    """
    sizes = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    return tuple(int(size) for size in (sizes * axes if len(sizes) == 1 else sizes))
