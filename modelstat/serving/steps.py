"""The passes of requests at any batch, from walks at a few of them, ready to be timed on many GPUs."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from modelstat.cost.registry import costs
from modelstat.deploy.series import BatchSeries, Series
from modelstat.hardware.gpu import Gpu
from modelstat.predict.execution import Execution
from modelstat.predict.passes import Pass
from modelstat.records import Trace
from modelstat.serving.group import Group, SharedPass
from modelstat.serving.phase import Phase
from modelstat.serving.serving import Tracer, Traces, needed_bytes, phases, sequence_bytes, traces
from modelstat.serving.steady import Steady


class Step(NamedTuple):
    """A batch that writes a token each, ``needed_bytes`` the most that is held at once (B)."""

    batch: int
    needed_bytes: int
    passes: tuple[Pass | SharedPass, ...]
    """The first and the last after a prompt; one where they are the same."""

    def seconds(self, gpu: Gpu) -> float:
        """The mean of its passes (s). Raises MissingPeakError."""
        return sum(each.seconds(gpu) for each in self.passes) / len(self.passes)


class Steps:
    """A model's requests: ``generate`` tokens (at least 2) written after a prompt, both walked by ``tracer``.

    Of a :class:`~modelstat.serving.group.Group`, everything is one GPU's but the times, which are the group's.
    A token's pass is walked at batches of 1, 2 and 3, and follows for larger ones: every size is affine in the batch. So are the rows that
    go to routed experts; how many of those a batch meets is no size but told from the rows, at the batch itself.
    Raises InputError and UsageError as :func:`modelstat.serving.serving.traces`, and what the tracer raises.
    """

    def __init__(self, tracer: Tracer, prompt: int, generate: int, execution: Execution) -> None:
        self._tracer, self._written, self._execution = tracer, generate, execution
        self._group = tracer if isinstance(tracer, Group) else None
        self._phases = phases(prompt, generate)
        self._known: dict[Phase, Series] = {}
        self.alone = self.traces(1)
        """The passes of one request by itself."""
        self._prompt = self._pass(self.alone.prompt, self._phases.prompt, 1)

    @property
    def gpus(self) -> int:
        """GPUs that work together on one pass."""
        return 1 if self._group is None else self._group.gpus

    def walk(self, phase: Phase, batch: int) -> Trace:
        """The trace of a pass at a batch: a tracer that walks seldom."""
        return self._series(phase).at(batch)

    def traces(self, batch: int) -> Traces:
        """The passes with a batch that writes together."""
        return traces(self.walk, batch, self._phases.prompt.tokens, self._written)

    def step(self, batch: int) -> Step:
        """A batch that writes."""
        found = self.alone if batch == 1 else self.traces(batch)
        passes = {
            phase: self._pass(trace, phase, batch)
            for phase, trace in ((self._phases.first, found.first), (self._phases.last, found.last))
            if phase is not None and trace is not None
        }
        return Step(batch, needed_bytes(found, batch, sequence_bytes(found, batch)), tuple(passes.values()))

    def steady(self, step: Step, gpu: Gpu) -> Steady:
        """A GPU that serves with that batch. Raises MissingPeakError."""
        return Steady(step.batch, self._written, self._prompt.seconds(gpu), step.seconds(gpu))

    def _series(self, phase: Phase) -> Series:
        if phase not in self._known:
            # A prompt is read alone: no other batch of it is asked for.
            kind = Series if phase.kind == "prefill" else BatchSeries
            self._known[phase] = kind(partial(self._tracer, phase))
        return self._known[phase]

    def _pass(self, trace: Trace, phase: Phase, batch: int) -> Pass | SharedPass:
        found = Pass(trace, costs(trace, alike=self._series(phase).alike(batch)), self._execution)
        return found if self._group is None else SharedPass(found, self._group.exchanges(phase, batch))
