"""The same trace with something changed, so that a question about it needs no second walk: more samples, or another precision."""

from __future__ import annotations

import msgspec

from modelstat.records import ITEM_BYTES, Op, TensorSpec, Trace, Value

ORIGINS = ("parameter", "buffer", "constant")
"""Kinds of values that do not grow with the batch, nor does what is computed from them alone (a weight's cast, a position's bias)."""


def grown(trace: Trace, factor: int) -> Trace:
    """The trace at ``factor`` times its batch: every tensor that depends on an input gets that many times its elements.

    The axis that grows is the first whose length is a multiple of the batch. Where that is another one than the real one, elements and
    bytes are right all the same, only the sides of a matrix or the number of rows may differ. Sizes inside of arguments stay as they are.
    """
    growing = _growing(trace)
    batch = trace.batch or 1

    def spec(one: TensorSpec) -> TensorSpec:
        return _larger(one, factor, batch) if growing[one.value] and one.shape else one

    def op(one: Op) -> Op:
        inputs, outputs = tuple(map(spec, one.inputs)), tuple(map(spec, one.outputs))
        if inputs == one.inputs and outputs == one.outputs:
            return one
        cost = None if one.cost is None else {name: count * factor if type(count) is int else count for name, count in one.cost.items()}
        return msgspec.structs.replace(one, inputs=inputs, outputs=outputs, cost=cost)

    values = tuple(
        msgspec.structs.replace(value, bytes=value.bytes * factor) if grows else value
        for value, grows in zip(trace.values, growing, strict=True)
    )
    larger = None if trace.batch is None else batch * factor
    return msgspec.structs.replace(trace, batch=larger, ops=tuple(map(op, trace.ops)), values=values)


def _growing(trace: Trace) -> list[bool]:
    """Which values depend on an input, by following the ops."""
    growing = [value.kind == "input" for value in trace.values]
    for op in trace.ops:
        if any(growing[spec.value] for spec in op.inputs):
            for spec in op.outputs:
                growing[spec.value] = growing[spec.value] or trace.values[spec.value].kind not in ORIGINS
    return growing


def _larger(spec: TensorSpec, factor: int, batch: int) -> TensorSpec:
    axis = next((index for index, size in enumerate(spec.shape) if size and size % batch == 0), 0)
    step = spec.strides[axis]
    # What lies outside of the axis moves apart by as much as the axis grows.
    outside = step * max(spec.shape[axis], 1)
    shape = (*spec.shape[:axis], spec.shape[axis] * factor, *spec.shape[axis + 1 :])
    strides = tuple(
        stride * factor if index != axis and step and stride >= outside else stride for index, stride in enumerate(spec.strides)
    )
    return TensorSpec(shape, spec.dtype, strides, spec.value, spec.offset)


def in_precision(trace: Trace, precision: str) -> Trace:
    """An fp32 trace in tf32, fp16 or bf16: all of it is cast, weights and inputs too, as ``model.half()`` does."""
    dtype = {"fp16": "float16", "bf16": "bfloat16"}.get(precision)
    if dtype is None:
        return msgspec.structs.replace(trace, precision=precision)
    cast = {"float32": dtype}

    def spec(one: TensorSpec) -> TensorSpec:
        return TensorSpec(one.shape, cast[one.dtype], one.strides, one.value, one.offset) if one.dtype in cast else one

    floating = {one.value for op in trace.ops for one in (*op.inputs, *op.outputs) if one.dtype in cast}
    share = ITEM_BYTES[dtype] / ITEM_BYTES["float32"]

    def value(index: int, one: Value) -> Value:
        return msgspec.structs.replace(one, bytes=round(one.bytes * share)) if index in floating else one

    parameters = tuple(
        msgspec.structs.replace(one, dtype=cast[one.dtype], bytes=round(one.bytes * share)) if one.dtype in cast else one
        for one in trace.parameters
    )
    ops = tuple(msgspec.structs.replace(op, inputs=tuple(map(spec, op.inputs)), outputs=tuple(map(spec, op.outputs))) for op in trace.ops)
    values = tuple(value(index, one) for index, one in enumerate(trace.values))
    return msgspec.structs.replace(trace, precision=precision, parameters=parameters, ops=ops, values=values)


def samples(trace: Trace) -> int | None:
    """Samples in one pass: the batch, or the first axis of the first input; None where there is no such axis."""
    if trace.batch is not None:
        return trace.batch
    return next((given.shape[0] for given in trace.inputs if given.shape and all(given.shape)), None)
