"""Which ops of a trace lie inside which, by time."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from operator import le
from typing import TYPE_CHECKING

from modelstat.measure.imports.record import OpCall

if TYPE_CHECKING:
    from modelstat.measure.imports.nesting import Events

ROUNDING = 0.002
"""What rounding makes of large timestamps (us): it must not turn a child into a sibling."""


class Tree:
    """The parent of each op, the ops right inside it, and the steps. ``order`` is that of their starts, an outer op before those in it."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self.names = list(events.keys)
        self.order = by_start(events.start, events.duration)
        self.parent = array("l", [-1]) * len(events.start)
        self.inside = array("d", [0.0]) * len(events.start)
        """Time (us) of the ops right inside an op."""
        stacks: dict[int, list[int]] = {}
        for index in self.order:
            stack = stacks.setdefault(events.thread[index], [])
            while stack and not self._holds(stack[-1], index):
                stack.pop()
            if stack:
                self.parent[index] = stack[-1]
                above = stack[-1]
                while above >= 0 and events.is_range[above]:
                    above = self.parent[above]
                if above >= 0 and not events.is_range[index]:
                    self.inside[above] += events.duration[index]
            stack.append(index)
        self.steps = sorted(events.steps)
        self.step_starts = [start for start, _, _ in self.steps]
        self._calls: dict[int, OpCall] = {}

    def _holds(self, outer: int, inner: int) -> bool:
        start, duration = self.events.start, self.events.duration
        return start[inner] + duration[inner] <= start[outer] + duration[outer] + ROUNDING

    def around(self, index: int) -> tuple[tuple[OpCall, ...], str]:
        """The ops from the outermost to ``index`` itself, and the ranges around them as a path."""
        calls: list[OpCall] = []
        places: list[str] = []
        while index >= 0:
            name, shapes = self.names[self.events.key[index]]
            if self.events.is_range[index]:
                places.append(name)
            else:
                if index not in self._calls:
                    self._calls[index] = OpCall(name, index, shapes)
                calls.append(self._calls[index])
            index = self.parent[index]
        return tuple(reversed(calls)), "/".join(reversed(places))

    def step(self, time: float) -> int | None:
        """The step that a moment (us) lies in."""
        found = self._step_at(time)
        return None if found is None else found[2]

    def whole_until(self, time: float) -> float:
        """The moment (us) up to which all steps are whole, where a profile was cut off at ``time``."""
        found = self._step_at(time)
        return time if found is None else found[0]

    def _step_at(self, time: float) -> tuple[float, float, int] | None:
        found = bisect_right(self.step_starts, time) - 1
        return self.steps[found] if found >= 0 and time <= self.steps[found][1] else None


def by_start(start: Sequence[float], duration: Sequence[float]) -> Sequence[int]:
    """Indices by rising start, of equal starts the longest first.

    >>> list(by_start([2.0, 1.0, 1.0], [9.0, 1.0, 5.0]))
    [2, 1, 0]
    """
    count = len(start)
    sorted_already = all(map(le, start, islice(start, 1, None)))
    order = array("l", range(count) if sorted_already else sorted(range(count), key=start.__getitem__))
    first = 0
    for last in range(1, count + 1):
        if last == count or start[order[last]] != start[order[first]]:
            if last - first > 1:
                order[first:last] = array("l", sorted(order[first:last], key=lambda each: -duration[each]))
            first = last
    return order
