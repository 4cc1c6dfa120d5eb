"""Memory over time: what is alive while each op runs."""

from __future__ import annotations

import msgspec

from modelstat.memory.peak import is_activation, live_bytes, weight_bytes
from modelstat.records import Trace

STEPS = 1000
"""The most steps of a curve: of a longer trace each step is the largest of several ops."""


class Step(msgspec.Struct, frozen=True):
    """The activations (B) that are alive while an op runs; ``op`` is its index in the trace, ``name`` and ``path`` what and where it is."""

    op: int
    name: str
    path: str
    activation_bytes: int


class Curve(msgspec.Struct, frozen=True):
    """Live bytes along a trace. The weights are there from the first op to the last; ``peak`` is the index of the largest step."""

    weight_bytes: int
    steps: tuple[Step, ...]
    peak: int | None


def curve(trace: Trace, steps: int = STEPS) -> Curve:
    """The curve of a trace, of at most ``steps`` steps; its peak is always one of them."""
    live = live_bytes([value for value in trace.values if is_activation(value)], len(trace.ops))
    stride = max(1, -(-len(live) // steps))
    kept = [max(range(start, min(start + stride, len(live))), key=live.__getitem__) for start in range(0, len(live), stride)]
    found = tuple(Step(index, trace.ops[index].name, trace.modules[trace.ops[index].module].path, live[index]) for index in kept)
    largest = max((step.activation_bytes for step in found), default=None)
    peak = None if largest is None else [step.activation_bytes for step in found].index(largest)
    return Curve(weight_bytes(trace), found, peak)
