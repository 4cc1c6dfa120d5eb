"""One model at any batch, from traces of two batches.

Every size in a trace is an affine function of the batch: an axis has the length ``a + b x batch``, whether the batch is an axis of
its own or was folded into another. Two traces tell ``a`` and ``b``, and a third batch needs no third walk. A batch of 1 is not
used for that, since torch treats axes of length 1 apart (they are contiguous in every order, so a copy may become a view).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec

from modelstat.records import Op, TensorSpec, Trace

LOW, HIGH = 2, 3
"""The two batches to trace. The smallest ones that are not 1: a trace costs no memory, but its torch shapes are checked faster."""


class NotAffineError(ValueError):
    """The two traces differ in more than sizes (control flow depends on the batch): each batch must be traced by itself."""


class BatchPair:
    """The traces of one model at two batches above 1.

    Raises NotAffineError if they differ in more than sizes, or if a tensor has two axes that grow with the batch (its bytes are then
    not affine in it).
    """

    def __init__(self, low: Trace, high: Trace) -> None:
        if low.batch is None or high.batch is None or not 1 < low.batch < high.batch:
            raise NotAffineError(f"traces of two batches above 1 are needed, not of {low.batch} and {high.batch}")
        self.low, self.high = low, high
        self._check()

    def at(self, batch: int) -> Trace:
        """The trace at a batch of 2 or more, equal to what a walk at that batch records."""
        low, high = self.low, self.high
        if batch < 2:
            raise NotAffineError(f"batch {batch} must be traced by itself")
        if batch == low.batch:
            return low
        assert low.batch is not None
        assert high.batch is not None
        scale = _Scale(batch - low.batch, high.batch - low.batch)
        return msgspec.structs.replace(
            low,
            batch=batch,
            inputs=tuple(
                msgspec.structs.replace(one, shape=scale.sizes(one.shape, other.shape))
                for one, other in zip(low.inputs, high.inputs, strict=True)
            ),
            outputs=scale.shapes(low.outputs, high.outputs),
            modules=tuple(
                msgspec.structs.replace(
                    one,
                    **{
                        name: scale.shapes(getattr(one, name), getattr(other, name))
                        for name in ("input_shapes", "output_shapes", "last_input_shapes", "last_output_shapes")
                    },
                )
                for one, other in zip(low.modules, high.modules, strict=True)
            ),
            values=tuple(
                one if one.bytes == other.bytes else msgspec.structs.replace(one, bytes=scale.size(one.bytes, other.bytes))
                for one, other in zip(low.values, high.values, strict=True)
            ),
            ops=self._ops(scale),
        )

    @cached_property
    def alike(self) -> tuple[int, ...]:
        """For each op the first one that is the same at every batch but for its module and its values: layers repeat."""
        first: dict[Any, int] = {}
        pairs = zip(self.low.ops, self.high.ops, strict=True)
        return tuple(first.setdefault((_form(low), _form(high)), index) for index, (low, high) in enumerate(pairs))

    def _ops(self, scale: _Scale) -> tuple[Op, ...]:
        ops: list[Op] = []
        for index, first in enumerate(self.alike):
            low = self.low.ops[index]
            if first == index:
                ops.append(self._op(low, self.high.ops[index], scale))
            elif ops[first] is self.low.ops[first]:
                ops.append(low)
            else:
                ops.append(_elsewhere(ops[first], low))
        return tuple(ops)

    def _op(self, low: Op, high: Op, scale: _Scale) -> Op:
        if low == high:
            return low
        return msgspec.structs.replace(
            low,
            inputs=scale.specs(low.inputs, high.inputs),
            outputs=scale.specs(low.outputs, high.outputs),
            arguments=scale.plain(low.arguments, high.arguments),
            cost=None if low.cost is None else scale.plain(low.cost, high.cost),
        )

    def _check(self) -> None:
        low, high = self.low, self.high
        if (low.parameters, low.precision, low.run, low.layout) != (high.parameters, high.precision, high.run, high.layout):
            raise NotAffineError("the parameters, the precision or the kind of run depends on the batch")
        if low.run == "real":
            raise NotAffineError("the model ran for real: its control flow may depend on the values")
        counts = [(len(t.ops), len(t.values), len(t.modules), len(t.inputs), len(t.outputs)) for t in (low, high)]
        if counts[0] != counts[1]:
            raise NotAffineError("the number of ops depends on the batch")
        for one, other in zip(low.ops, high.ops, strict=True):
            if _identity(one) != _identity(other):
                raise NotAffineError(f"an op depends on the batch: {one.name} or {other.name}")
            for a, b in zip(one.inputs + one.outputs, other.inputs + other.outputs, strict=True):
                if len(a.shape) != len(b.shape) or sum(x != y for x, y in zip(a.shape, b.shape, strict=True)) > 1:
                    raise NotAffineError(f"{one.name} has a tensor of {a.shape} and {b.shape}")
        for value, twin in zip(low.values, high.values, strict=True):
            if (value.kind, value.birth, value.death) != (twin.kind, twin.birth, twin.death):
                raise NotAffineError("the life of a value depends on the batch")


class _Scale:
    """``low + (high - low) x numerator / denominator``, exactly."""

    def __init__(self, numerator: int, denominator: int) -> None:
        self.numerator, self.denominator = numerator, denominator

    def size(self, low: int, high: int) -> int:
        if low == high:
            return low
        step, rest = divmod((high - low) * self.numerator, self.denominator)
        if rest:
            raise NotAffineError(f"a size of {low} and {high} is no whole number in between")
        return low + step

    def sizes(self, low: tuple[int, ...], high: tuple[int, ...]) -> tuple[int, ...]:
        return low if low == high else tuple(self.size(a, b) for a, b in zip(low, high, strict=True))

    def shapes(self, low: tuple[tuple[int, ...], ...], high: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
        return low if low == high else tuple(self.sizes(a, b) for a, b in zip(low, high, strict=True))

    def specs(self, low: tuple[TensorSpec, ...], high: tuple[TensorSpec, ...]) -> tuple[TensorSpec, ...]:
        return tuple(
            a
            if a == b
            else TensorSpec(self.sizes(a.shape, b.shape), a.dtype, self.sizes(a.strides, b.strides), a.value, self.size(a.offset, b.offset))
            for a, b in zip(low, high, strict=True)
        )

    def plain(self, low: Any, high: Any) -> Any:
        """Arguments: nested lists and dicts, whose integers are sizes where they differ."""
        if low == high:
            return low
        if isinstance(low, dict) and isinstance(high, dict) and low.keys() == high.keys():
            return {key: self.plain(low[key], high[key]) for key in low}
        if isinstance(low, list) and isinstance(high, list) and len(low) == len(high):
            return [self.plain(a, b) for a, b in zip(low, high, strict=True)]
        if type(low) is int and type(high) is int:
            return self.size(low, high)
        raise NotAffineError(f"an argument depends on the batch: {low!r} and {high!r}")


def _form(op: Op) -> tuple[Any, ...]:
    """All of an op but where it runs and on which values."""
    order: dict[int, int] = {}
    tensors = tuple(
        (spec.shape, spec.dtype, spec.strides, spec.offset, order.setdefault(spec.value, len(order))) for spec in op.inputs + op.outputs
    )
    return (op.name, op.overload, op.names, op.view, op.mutates, op.unused_outputs, repr(op.arguments), repr(op.cost), tensors)


def _elsewhere(op: Op, low: Op) -> Op:
    """The op with the module and the values of another of its form."""

    def on(specs: tuple[TensorSpec, ...], others: tuple[TensorSpec, ...]) -> tuple[TensorSpec, ...]:
        return tuple(
            TensorSpec(spec.shape, spec.dtype, spec.strides, other.value, spec.offset)
            for spec, other in zip(specs, others, strict=True)
        )

    return Op(
        op.name, op.overload, on(op.inputs, low.inputs), op.names, on(op.outputs, low.outputs), op.arguments, low.module, low.call,
        op.view, op.mutates, op.unused_outputs, op.cost,
    )  # fmt: skip


def _identity(op: Op) -> tuple[Any, ...]:
    """What must be the same at every batch."""
    tensors = op.inputs + op.outputs
    kinds = tuple((spec.dtype, spec.value) for spec in tensors)
    return (op.name, op.overload, op.names, op.module, op.call, op.view, op.mutates, op.unused_outputs, op.arguments.keys(), kinds)
