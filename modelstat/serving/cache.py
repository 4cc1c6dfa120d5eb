"""The cache of keys and values in a trace: what was there before the pass and stays after it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

import msgspec

from modelstat.errors import UsageError
from modelstat.records import Op, TensorSpec, Trace

MADE, CACHE = "aten::empty_permuted", "modelstat::cache"
"""The op that makes a layer's room while the model is walked, and what it is called in the trace."""

Format = Literal["fp8", "int8"]

STORED = {"fp8": "uint8", "int8": "int8"}
"""Dtype of a cache that holds less than its model computes in. (fp8 as mere bytes: the arithmetic is in the other operand's dtype.)"""


def given(trace: Trace) -> Trace:
    """The trace with its cache as an input: in memory from the first op to the last, and made by no op.

    Raises UsageError for a model that did not ask for its cache.
    """
    held = {op.outputs[0].value for op in trace.ops if op.name == MADE}
    if not held:
        raise UsageError(f"{trace.model}: no layer of {trace.modules[0].type} keeps keys and values, which --phase needs")
    ops = tuple(msgspec.structs.replace(op, name=CACHE, view=True) if op.name == MADE else op for op in trace.ops)
    values = tuple(
        msgspec.structs.replace(value, kind="input", birth=-1, death=len(ops)) if index in held else value
        for index, value in enumerate(trace.values)
    )
    return msgspec.structs.replace(trace, ops=ops, values=values)


def stored(trace: Trace, form: Format) -> Trace:
    """The trace with its cache in another format, one scale for each tensor: its bytes shrink, the arithmetic stays as it is."""
    held = {spec.value: spec for spec in tensors(trace)}
    dtype = STORED[form]
    smaller = {value: round(trace.values[value].bytes / spec.item_bytes) for value, spec in held.items()}
    values = tuple(
        msgspec.structs.replace(value, bytes=smaller[index]) if index in smaller else value for index, value in enumerate(trace.values)
    )
    ops = tuple(_recast(op, dtype, smaller) for op in trace.ops)
    note = f"keys and values are kept in {form}, with one scale for each tensor; they are computed with in {trace.precision}"
    return msgspec.structs.replace(trace, ops=ops, values=values, notes=(*trace.notes, note))


def _recast(op: Op, dtype: str, held: Iterable[int]) -> Op:
    if not any(spec.value in held for spec in (*op.inputs, *op.outputs)):
        return op

    def recast(specs: tuple[TensorSpec, ...]) -> tuple[TensorSpec, ...]:
        return tuple(msgspec.structs.replace(spec, dtype=dtype) if spec.value in held else spec for spec in specs)

    return msgspec.structs.replace(op, inputs=recast(op.inputs), outputs=recast(op.outputs))


def tensors(trace: Trace) -> tuple[TensorSpec, ...]:
    """Keys and values of every layer, (B, H, positions, D) each."""
    return tuple(op.outputs[0] for op in trace.ops if op.name == CACHE)


def token_bytes(trace: Trace) -> int:
    """What one token of one sequence adds to the cache (B), over all layers; a layer with a full window drops as much."""
    return round(sum(spec.shape[1] * spec.shape[3] * spec.item_bytes for spec in tensors(trace)))


def cache_bytes(trace: Trace) -> int:
    """The whole cache after the pass (B); of one of several GPUs, what it has of it."""
    return sum(trace.values[value].bytes for value in {spec.value for spec in tensors(trace)})


def checked_format(text: str) -> Format:
    """A format of the cache. Raises UsageError for an unknown one.

    >>> checked_format("FP8")
    'fp8'
    """
    wanted = text.lower()
    found: Format | None = next((each for each in get_args(Format) if each == wanted), None)
    if found is None:
        raise UsageError(f"--kv-cache {text!r}: choose from {', '.join(get_args(Format))}, or leave it out for the model's own precision")
    return found
