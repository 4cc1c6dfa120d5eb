"""Events of a trace in columns of bounded length, and the measured kernels that they make."""

from __future__ import annotations

from array import array
from itertools import compress

from modelstat.measure.imports.record import MeasuredKernel, Shapes
from modelstat.measure.imports.tree import Tree

LARGEST = 100_000
"""Kernels (on a CPU: ops) of one profile that become records: the first ones."""
MOST_OPS = 300_000
"""Ops and ranges of the host that are remembered for them."""

Key = tuple[str, Shapes | None]


class Events:
    """Ops, ranges and kernels while a trace is read: a few numbers each; names and shapes are kept once.

    In whatever order they come, the first ones by time stay: at most twice ``most_ops`` ops, and twice ``most_kernels`` kernels. Nothing
    that starts after ``until`` (us) is there any more.
    """

    def __init__(self, most_ops: int = MOST_OPS, most_kernels: int = LARGEST) -> None:
        self.most_ops, self.most_kernels = most_ops, most_kernels
        self.start, self.duration = array("d"), array("d")
        self.external, self.thread, self.key = array("q"), array("l"), array("l")
        self.is_range = bytearray()
        self.kernel_start, self.kernel_duration = array("d"), array("d")
        self.kernel_external, self.kernel_key = array("q"), array("l")
        self.steps: list[tuple[float, float, int]] = []
        self.keys: dict[Key, int] = {}
        self.threads: dict[str, int] = {}
        self.until = float("inf")

    def add_op(
        self, name: str, start: float, duration: float, external: int, thread: str, shapes: Shapes | None, *, is_range: bool
    ) -> None:
        """An op of the host, or a range that a user marked (times in us)."""
        if start > self.until:
            return
        self.start.append(start)
        self.duration.append(duration)
        self.external.append(external)
        self.thread.append(self.threads.setdefault(thread, len(self.threads)))
        self.key.append(self.keys.setdefault((name, shapes), len(self.keys)))
        self.is_range.append(is_range)
        if len(self.start) >= 2 * self.most_ops:
            self._cut(sorted(self.start)[self.most_ops - 1])

    def add_kernel(self, name: str, start: float, duration: float, external: int) -> None:
        """A kernel (times in us) and the id of the op that launched it, -1 where it names none."""
        if start > self.until:
            return
        self.kernel_start.append(start)
        self.kernel_duration.append(duration)
        self.kernel_external.append(external)
        self.kernel_key.append(self.keys.setdefault((name, None), len(self.keys)))
        if len(self.kernel_start) >= 2 * self.most_kernels:
            self._cut(sorted(self.kernel_start)[self.most_kernels - 1])

    def add_step(self, start: float, duration: float, number: int) -> None:
        """One pass of the model (times in us)."""
        if start <= self.until and len(self.steps) < self.most_kernels:
            self.steps.append((start, start + duration, number))

    def _cut(self, until: float) -> None:
        """Drop what starts later: a kernel starts after its op, so no kernel is left without the op that launched it."""
        self.until = until
        kept = [start <= until for start in self.start]
        for name in ("start", "duration", "external", "thread", "key"):
            column = getattr(self, name)
            setattr(self, name, array(column.typecode, compress(column, kept)))
        self.is_range = bytearray(compress(self.is_range, kept))
        kept = [start <= until for start in self.kernel_start]
        for name in ("kernel_start", "kernel_duration", "kernel_external", "kernel_key"):
            column = getattr(self, name)
            setattr(self, name, array(column.typecode, compress(column, kept)))


def kernels(events: Events) -> tuple[tuple[MeasuredKernel, ...], bool]:
    """The records of all kernels in the order in which they ran, at most LARGEST; without any those of the host's ops.

    A host's op stands for its own time, without the ops inside it. Where events are left out, so is the step that lacks some of them, and
    ``events.until`` (us) is then the end of what is there. The second value says that they are single launches.
    """
    tree = Tree(events)
    return tuple(_of_device(events, tree) if len(events.kernel_start) else _of_host(events, tree)), True


def _of_device(events: Events, tree: Tree) -> list[MeasuredKernel]:
    wanted = set(events.kernel_external)
    by_external = {external: index for index, external in enumerate(events.external) if external >= 0 and external in wanted}
    order = sorted(range(len(events.kernel_start)), key=events.kernel_start.__getitem__)
    shown, rest = order[: events.most_kernels], order[events.most_kernels :]

    def launched(each: int) -> float:
        op = by_external.get(events.kernel_external[each], -1)
        return events.start[op] if op >= 0 else events.kernel_start[each]

    # A device runs behind its host: the first kernel that is not there may be of a step that the host left long before.
    behind = rest or (shown[-1:] if events.until < float("inf") else [])
    until = _horizon(events, tree, [events.kernel_start[each] for each in rest[:1]], [launched(each) for each in behind])
    found: list[MeasuredKernel] = []
    for each in shown:
        op, time = by_external.get(events.kernel_external[each], -1), launched(each)
        if time >= until:
            continue
        calls, path = tree.around(op)
        name, seconds = tree.names[events.kernel_key[each]][0], events.kernel_duration[each] / 1e6
        found.append(MeasuredKernel(name=name, seconds=seconds, calls=calls, path=path, step=tree.step(time)))
    return found


def _of_host(events: Events, tree: Tree) -> list[MeasuredKernel]:
    ops = [each for each in tree.order if not events.is_range[each]]
    until = _horizon(events, tree, [events.start[each] for each in ops[events.most_kernels :][:1]], [])
    found: list[MeasuredKernel] = []
    for index in ops[: events.most_kernels]:
        if events.start[index] >= until:
            break
        calls, path = tree.around(index)
        own = max(0.0, events.duration[index] - tree.inside[index]) / 1e6
        found.append(MeasuredKernel(name=calls[-1].name, seconds=own, calls=calls, path=path, step=tree.step(events.start[index])))
    return found


def _horizon(events: Events, tree: Tree, first_left_out: list[float], launched: list[float]) -> float:
    """The moment (us) from which on nothing becomes a record: the start of the step that is not there as a whole.

    ``launched`` are moments at which the host launched what is left out.
    """
    until = min([events.until, *first_left_out])
    # A trace without steps, or of a single one, is read as far as it goes.
    whole = tree.whole_until(min([until, *launched]))
    events.until = whole if tree.step_starts and whole > tree.step_starts[0] else until
    return events.until
