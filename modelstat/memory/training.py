"""Memory of one step of training, from a trace that was walked forward and back.

The gradients of the last step are gone when a step starts (``zero_grad()`` drops them), and grow while the backward runs. The optimizer's
state is there all along. What the optimizer's step itself needs besides is not counted, nor are the loss and its inputs.
"""

from __future__ import annotations

import msgspec

from modelstat.errors import UsageError
from modelstat.memory.optimizer import optimizer_bytes
from modelstat.memory.peak import is_activation, live_bytes, weight_bytes
from modelstat.records import Trace, Value

LOSS = "modelstat::loss"
"""The op that stands between the forward and the backward."""


class TrainingMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What a step of training holds (B). The four parts are each at their own largest: they are not all there at once."""

    weight_bytes: int
    """Parameters, buffers and packed weights, at the precision (AMP keeps fp32)."""
    gradient_bytes: int
    """Gradients of all parameters, when the backward is done."""
    optimizer_bytes: int
    """The optimizer's state."""
    activation_bytes: int
    """The largest set of everything else alive at once: inputs, outputs, what autograd keeps, and gradients on their way."""
    peak_bytes: int
    """The most that is held at once: at most the sum of the four."""
    op: int
    """Index of the op at which that is."""
    backward: int
    """Index of the loss: what comes after it is the backward."""


def backward_start(trace: Trace) -> int:
    """Index of the op that stands for the loss. Raises UsageError for a trace that was walked forward only."""
    for index, op in enumerate(trace.ops):
        if op.name == LOSS:
            return index
    raise UsageError(f"{trace.model}: its trace has no backward, walk it with training=True")


def training_memory(trace: Trace, optimizer: str) -> TrainingMemory:
    """The memory of a step with an optimizer (sgd, momentum or adam). Raises UsageError for another one, and without a backward."""
    state, start, count = optimizer_bytes(trace, optimizer), backward_start(trace), len(trace.ops)
    values = [value for value in trace.values if is_activation(value)]
    gradients = [value for value in values if _is_gradient(value, start)]
    live, held = live_bytes(values, count), live_bytes(gradients, count)
    largest = max(live)
    return TrainingMemory(
        weight_bytes=weight_bytes(trace),
        gradient_bytes=sum(value.bytes for value in gradients),
        optimizer_bytes=state,
        activation_bytes=max(size - kept for size, kept in zip(live, held, strict=True)),
        peak_bytes=weight_bytes(trace) + state + largest,
        op=live.index(largest),
        backward=start,
    )


def _is_gradient(value: Value, start: int) -> bool:
    """Whether a value is what a parameter's ``.grad`` holds: it is marked like the model's outputs, but born in the backward."""
    return value.output and value.birth > start
