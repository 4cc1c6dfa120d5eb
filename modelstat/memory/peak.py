"""Peak memory at inference: the weights, and the largest set of other storages that are alive at once."""

from __future__ import annotations

from itertools import accumulate

import msgspec

from modelstat.records import Trace, Value

WEIGHTS = ("parameter", "buffer")
"""Kinds of values that are weights: their bytes are those of :attr:`Trace.parameters`, which also know the packed ones."""


class PeakMemory(msgspec.Struct, frozen=True):
    """The most that a model holds at once (B)."""

    weight_bytes: int
    """Parameters, buffers and packed weights, each storage once, at the precision."""
    activation_bytes: int
    """The largest set of inputs, outputs, constants and intermediate results alive at once; views share their base's storage."""
    op: int | None
    """Index of the first op at which that set is alive; None for a model that runs no op."""

    @property
    def peak_bytes(self) -> int:
        """Weights and activations together (B)."""
        return self.weight_bytes + self.activation_bytes


def weight_bytes(trace: Trace) -> int:
    """Bytes of parameters, buffers and packed weights, each storage once (B)."""
    return sum(parameter.bytes for parameter in trace.parameters)


def is_activation(value: Value) -> bool:
    """Whether a value is no weight: an input, a constant that forward brings along, or the result of an op."""
    return value.kind not in WEIGHTS


def live_bytes(values: list[Value], ops: int) -> list[int]:
    """Bytes of ``values`` alive while each of ``ops`` ops runs, its inputs and outputs included (B).

    A value is alive from its birth to its death, both included.
    """
    change = [0] * (ops + 1)
    for value in values:
        change[min(max(value.birth, 0), ops)] += value.bytes
        if value.death < ops:
            change[max(value.death, -1) + 1] -= value.bytes
    return list(accumulate(change[:ops]))


def timeline(trace: Trace) -> list[tuple[int, int]]:
    """(op index, live bytes) for each op of the trace, the weights included (B)."""
    weights = weight_bytes(trace)
    live = live_bytes([value for value in trace.values if is_activation(value)], len(trace.ops))
    return [(index, weights + size) for index, size in enumerate(live)]


def peak_memory(trace: Trace) -> PeakMemory:
    """The peak of :func:`timeline`; a model that runs no op holds its weights and inputs."""
    values = [value for value in trace.values if is_activation(value)]
    live = live_bytes(values, len(trace.ops))
    if not live:
        return PeakMemory(weight_bytes(trace), sum(value.bytes for value in values), None)
    largest = max(live)
    return PeakMemory(weight_bytes(trace), largest, live.index(largest))
