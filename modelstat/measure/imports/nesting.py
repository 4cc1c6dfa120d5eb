"""Events of a trace in columns, and which of them lie inside which."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from modelstat.measure.imports.record import MeasuredKernel, OpCall, Shapes

LARGEST = 500_000
"""Kernels (on a CPU: ops) of one profile that become records."""

Key = tuple[str, Shapes | None]


class Events:
    """Ops, ranges and kernels while a trace is read: a few numbers each; names and shapes are kept once."""

    def __init__(self) -> None:
        self.start, self.duration = array("d"), array("d")
        self.external, self.thread, self.key = array("q"), array("l"), array("l")
        self.is_range = bytearray()
        self.kernel_start, self.kernel_duration = array("d"), array("d")
        self.kernel_external, self.kernel_key = array("q"), array("l")
        self.steps: list[tuple[float, float, int]] = []
        self.keys: dict[Key, int] = {}
        self.threads: dict[str, int] = {}

    def add_op(
        self, name: str, start: float, duration: float, external: int, thread: str, shapes: Shapes | None, *, is_range: bool
    ) -> None:
        """An op of the host, or a range that a user marked (times in us)."""
        self.start.append(start)
        self.duration.append(duration)
        self.external.append(external)
        self.thread.append(self.threads.setdefault(thread, len(self.threads)))
        self.key.append(self.keys.setdefault((name, shapes), len(self.keys)))
        self.is_range.append(is_range)

    def add_kernel(self, name: str, start: float, duration: float, external: int) -> None:
        """A kernel (times in us) and the id of the op that launched it, -1 where it names none."""
        self.kernel_start.append(start)
        self.kernel_duration.append(duration)
        self.kernel_external.append(external)
        self.kernel_key.append(self.keys.setdefault((name, None), len(self.keys)))


class _Tree:
    """The parent of each op by time, and the calls around an op."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self.names = list(events.keys)
        count = len(events.start)
        self.parent = array("l", [-1]) * count
        self.inside = array("d", [0.0]) * count
        """Time (us) of the ops right inside an op."""
        # Rounding of large timestamps must not turn a child into a sibling.
        self.order = sorted(range(count), key=lambda each: (events.thread[each], events.start[each], -events.duration[each]))
        stack: list[int] = []
        for index in self.order:
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
        end = start[outer] + duration[outer] + 0.002
        return self.events.thread[outer] == self.events.thread[inner] and start[inner] + duration[inner] <= end

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
        found = bisect_right(self.step_starts, time) - 1
        return self.steps[found][2] if found >= 0 and time <= self.steps[found][1] else None


def kernels(events: Events) -> tuple[tuple[MeasuredKernel, ...], bool]:
    """The records of all kernels in the order in which they ran, at most LARGEST; without any those of the host's ops.

    A host's op stands for its own time, without the ops inside it. The second value says that they are single launches.
    """
    tree = _Tree(events)
    found: list[MeasuredKernel] = []
    if len(events.kernel_start):
        by_external = {external: index for index, external in enumerate(events.external) if external >= 0}
        for each in sorted(range(len(events.kernel_start)), key=events.kernel_start.__getitem__)[:LARGEST]:
            op = by_external.get(events.kernel_external[each], -1)
            calls, path = tree.around(op)
            step = tree.step(events.start[op] if op >= 0 else events.kernel_start[each])
            name = tree.names[events.kernel_key[each]][0]
            found.append(MeasuredKernel(name=name, seconds=events.kernel_duration[each] / 1e6, calls=calls, path=path, step=step))
        return tuple(found), True
    for index in [each for each in tree.order if not events.is_range[each]][:LARGEST]:
        calls, path = tree.around(index)
        own = max(0.0, events.duration[index] - tree.inside[index]) / 1e6
        found.append(MeasuredKernel(name=calls[-1].name, seconds=own, calls=calls, path=path, step=tree.step(events.start[index])))
    return tuple(found), True
