"""What runs right before and right after a module, by the data that flows and not by names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from modelstat.cost.table import ACTIVATIONS
from modelstat.records import Op, Trace

FUNCTIONS = (*ACTIVATIONS, "gelu")
"""Names of ops that are activations, without namespace."""


class Next(NamedTuple):
    """Who reads the output of a module first.

    ``op`` is what reads it, in the module at ``path`` (which may have called a function). ``alone`` is true where nothing else reads
    the output, so that the reader may be moved into the module before it.
    """

    op: str
    path: str
    alone: bool


class Flow(ABC):
    """The order in which a model's modules run."""

    @abstractmethod
    def after(self, path: str) -> Next | None:
        """Who reads the output of the module at ``path`` first; None where nobody does or where it differs from call to call."""

    @abstractmethod
    def before(self, path: str) -> str | None:
        """The module whose output the one at ``path`` reads; None where that is an input, or differs from call to call."""

    @abstractmethod
    def calls(self, path: str) -> int:
        """How often the module is called, at all of its paths together; 0 for one whose weights are used without calling it."""

    @abstractmethod
    def order(self) -> Sequence[str]:
        """Paths of the modules in the order of their first call."""

    @abstractmethod
    def functions(self) -> Sequence[tuple[str, str]]:
        """Name and path of each activation that ran as a function in the forward of a module that holds others."""

    def axes(self, path: str) -> int | None:
        """Axes of what the module at ``path`` is given first, None where that is not known."""
        return None

    def returns_more(self, path: str) -> bool:
        """Whether anyone reads a second output of the module; False where that cannot be known."""
        return False


class TraceFlow(Flow):
    """The flow of a trace: it has seen functions, views and what is written in place."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._rows: dict[str, list[int]] = {}
        instances: dict[int, list[int]] = {}
        for index, module in enumerate(trace.modules):
            instances.setdefault(module.instance, []).append(index)
        for module in trace.modules:
            self._rows[module.path] = instances[module.instance]
        self._below: list[list[int]] = [[] for _ in trace.modules]
        for index, op in enumerate(trace.ops):
            row = op.module
            while row >= 0:
                self._below[row].append(index)
                row = trace.modules[row].parent
        self._readers: dict[int, list[int]] = {}
        self._writers: dict[int, list[int]] = {}
        for index, op in enumerate(trace.ops):
            for value in {spec.value for spec in op.inputs}:
                self._readers.setdefault(value, []).append(index)
            for value in {spec.value for spec in op.outputs}:
                self._writers.setdefault(value, []).append(index)

    def after(self, path: str) -> Next | None:
        """See :meth:`Flow.after`."""
        found = [self._next(run) for run in self._runs(path)]
        if not found or any(each is None or (each.op, each.path) != (found[0].op, found[0].path) for each in found if found[0]):
            return None
        return None if found[0] is None else found[0]._replace(alone=all(each.alone for each in found if each))

    def before(self, path: str) -> str | None:
        """See :meth:`Flow.before`."""
        writers = {self._origin(run) for run in self._runs(path)}
        found = writers.pop() if len(writers) == 1 else None
        return None if found is None else self._trace.modules[found].path

    def calls(self, path: str) -> int:
        """See :meth:`Flow.calls`."""
        rows = [self._trace.modules[row] for row in self._rows.get(path, ())]
        return sum(row.calls for row in rows if row.output_shapes or row.input_shapes)

    def order(self) -> Sequence[str]:
        """See :meth:`Flow.order`."""
        return tuple(dict.fromkeys(self._trace.modules[op.module].path for op in self._trace.ops))

    def functions(self) -> Sequence[tuple[str, str]]:
        """See :meth:`Flow.functions`."""
        modules = self._trace.modules
        return [
            (activation_name(op.name), modules[op.module].path)
            for op in self._trace.ops
            if not modules[op.module].leaf and activation_name(op.name) in FUNCTIONS
        ]

    def axes(self, path: str) -> int | None:
        """As :meth:`Flow.axes`: the trace knows the shapes of each module's inputs."""
        shapes = (shape for row in self._rows.get(path, ()) for shape in self._trace.modules[row].input_shapes)
        return next((len(shape) for shape in shapes), None)

    def returns_more(self, path: str) -> bool:
        """See :meth:`Flow.returns_more`."""
        inside = {index for row in self._rows.get(path, ()) for index in self._below[row]}
        made = {spec.value for index in inside for spec in self._trace.ops[index].outputs}
        read = {value for value in made if self._trace.values[value].output or any(i not in inside for i in self._readers.get(value, ()))}
        return len(read) > 1

    def _runs(self, path: str) -> list[list[int]]:
        """The ops of each call of the module, in order: empty for one that ran nothing."""
        runs: dict[tuple[int, int], list[int]] = {}
        for row in self._rows.get(path, ()):
            for index in self._below[row]:
                runs.setdefault((row, self._trace.ops[index].call), []).append(index)
        return sorted(runs.values())

    def _next(self, run: Sequence[int]) -> Next | None:
        """Who reads what the last op of a call wrote."""
        last = self._trace.ops[run[-1]]
        if not last.outputs:
            return None
        value = last.outputs[0].value
        readers = [index for index in self._readers.get(value, ()) if index > run[-1]]
        if not readers:
            return None
        first = self._trace.ops[readers[0]]
        # Who reads after it was overwritten in place reads what the first reader made of it.
        alone = value in _written(first) or (len(readers) == 1 and not self._trace.values[value].output)
        return None if first.view else Next(first.name, self._trace.modules[first.module].path, alone)

    def _origin(self, run: Sequence[int]) -> int | None:
        """The module that wrote what the ops of a call read first, of what an op wrote before the call."""
        for value in (spec.value for index in run for spec in self._trace.ops[index].inputs):
            writer = next((index for index in reversed(self._writers.get(value, ())) if index < run[0]), None)
            if writer is not None:
                return self._trace.ops[writer].module
        return None


def activation_name(op: str) -> str:
    """An op without its namespace, and without the mark of one that writes in place.

    >>> activation_name("aten::relu_")
    'relu'
    """
    return op.removeprefix("aten::").rstrip("_")


def _written(op: Op) -> set[int]:
    """Values that an op overwrites in place."""
    return {spec.value for name, spec in zip(op.names, op.inputs, strict=True) if name in op.mutates}
