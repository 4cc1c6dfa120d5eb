"""Pipeline parallelism: the ops of a model in N parts, one after another, each on GPUs of its own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import msgspec

from modelstat.cost.record import Cost
from modelstat.deploy.collectives import Collective
from modelstat.deploy.links import Link
from modelstat.errors import UsageError
from modelstat.records import Trace

SLACK = 0.02
"""A cut that sends less is taken where it makes the slowest part slower by no more than this share."""


class Stage(msgspec.Struct, frozen=True):
    """Ops ``first`` to ``last`` (both included) on one GPU.

    ``sent_bytes`` (B) go to the next stage: what is alive behind ``last`` and no weight. ``seconds`` (s) are the ops' and the send.
    """

    first: int
    last: int
    flops: int
    bytes: int
    weight_bytes: int
    trainable_bytes: int
    sent_bytes: int
    seconds: float


def stages(trace: Trace, costs: Sequence[Cost], seconds: Sequence[float], count: int, link: Link) -> tuple[Stage, ...]:
    """The parts whose slowest is fastest: bisection over its time, each part taking as many ops as fit.

    ``seconds`` (s) are those of each op. Raises UsageError for more parts than there are ops that take time.
    """
    running = sum(one > 0.0 for one in seconds)
    if running < count:
        raise UsageError(f"--pipeline {count}: {trace.model} has only {running} ops that take time, choose at most as many stages")
    sends = [Collective("send", size, 2).seconds(link) for size in _alive(trace)]
    sends[-1:] = [0.0]
    low, high = max(sum(seconds) / count, *seconds), sum(seconds) + max(sends)
    cuts = _filled(seconds, sends, high)
    for _ in range(60):
        middle = (low + high) / 2
        found = _filled(seconds, sends, middle)
        if found is not None and len(found) <= count:
            high, cuts = middle, found
        else:
            low = middle
    assert cuts is not None
    cuts = _cheapest(cuts, seconds, sends, high * (1.0 + SLACK))
    return tuple(_stage(trace, costs, seconds, sends, *ends) for ends in _spread(cuts, seconds, count))


def _alive(trace: Trace) -> list[int]:
    """Bytes that the ops behind each op read of what was computed up to it (B). Python may keep more alive than that."""
    made: dict[int, int] = {}
    read: dict[int, int] = {}
    for index, op in enumerate(trace.ops):
        read.update((spec.value, index) for spec in op.inputs)
        for spec in op.outputs:
            made.setdefault(spec.value, index)
    change = [0] * (len(trace.ops) + 1)
    for number, first in made.items():
        value = trace.values[number]
        last = len(trace.ops) if value.output else read.get(number, first)
        if value.kind == "activation" and first < last:
            change[first] += value.bytes
            change[last] -= value.bytes
    total, found = 0, []
    for one in change[:-1]:
        total += one
        found.append(total)
    return found


def _filled(seconds: Sequence[float], sends: Sequence[float], limit: float) -> list[int] | None:
    """The last op of each part where none takes longer than ``limit`` (s), None where that cannot be."""
    cuts: list[int] = []
    start = 0
    while start < len(seconds):
        took, best = 0.0, -1
        for index in range(start, len(seconds)):
            took += seconds[index]
            if took > limit:
                break
            if took + sends[index] <= limit:
                best = index
        if best < 0:
            return None
        cuts.append(best)
        start = best + 1
    return cuts


def _cheapest(cuts: Sequence[int], seconds: Sequence[float], sends: Sequence[float], limit: float) -> list[int]:
    """The same number of parts, each cut moved to where least is sent as long as both of its parts stay within the limit (s)."""
    found = list(cuts)
    before = list(accumulate(seconds, initial=0.0))
    for number in range(len(found) - 1):
        first = found[number - 1] + 1 if number else 0
        end = found[number + 1]
        possible = [
            index
            for index in range(first, end)
            if before[index + 1] - before[first] + sends[index] <= limit and before[end + 1] - before[index + 1] + sends[end] <= limit
        ]
        found[number] = min(possible, key=sends.__getitem__, default=found[number])
    return found


def _spread(cuts: Sequence[int], seconds: Sequence[float], count: int) -> list[tuple[int, int]]:
    """First and last op of each part; where there are fewer parts than GPUs, the longest are cut in half by time."""
    parts = [(0 if index == 0 else cuts[index - 1] + 1, last) for index, last in enumerate(cuts)]
    while len(parts) < count:
        first, last = max((part for part in parts if part[1] > part[0]), key=lambda part: sum(seconds[part[0] : part[1] + 1]))
        half, took, middle = sum(seconds[first : last + 1]) / 2, 0.0, first
        for index in range(first, last):
            took += seconds[index]
            middle = index
            if took >= half:
                break
        where = parts.index((first, last))
        parts[where : where + 1] = [(first, middle), (middle + 1, last)]
    return parts


def _stage(trace: Trace, costs: Sequence[Cost], seconds: Sequence[float], sends: Sequence[float], first: int, last: int) -> Stage:
    mine = range(first, last + 1)
    used = {spec.value for index in mine for spec in trace.ops[index].inputs}
    end = last == len(trace.ops) - 1
    return Stage(
        first=first,
        last=last,
        flops=sum(costs[index].flops for index in mine),
        bytes=sum(costs[index].bytes for index in mine),
        weight_bytes=sum(one.bytes for one in trace.parameters if one.value in used),
        trainable_bytes=sum(one.bytes for one in trace.parameters if one.value in used and one.trainable and one.kind == "parameter"),
        sent_bytes=0 if end else _alive(trace)[last],
        seconds=sum(seconds[index] for index in mine) + (0.0 if end else sends[last]),
    )
