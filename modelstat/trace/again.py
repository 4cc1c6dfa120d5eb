"""Ops on tensors like those that they were seen on before: what they return and what is written of them is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from modelstat.trace.arguments import named_tensors, plain_arguments
from modelstat.trace.facts import Facts
from modelstat.trace.known import KnownValues
from modelstat.trace.memo import Memo, Remembered
from modelstat.trace.values import Window, window_of

if TYPE_CHECKING:
    from modelstat.trace.recorder import Recorder


class Told(NamedTuple):
    """What is written of an op on tensors like those before: ``inputs`` and ``outputs`` are all of a window but its value."""

    names: tuple[str, ...]
    arguments: dict[str, Any]
    written: tuple[str, ...]
    inputs: tuple[Window, ...]
    outputs: tuple[Window, ...]
    first: bool
    """Whether the outputs lie in the first input's memory."""

    @property
    def view(self) -> bool:
        """Whether nothing is computed."""
        return self.first and not self.written


Listener = Callable[[Facts, Remembered, Sequence[Tensor], Sequence[Tensor]], None]


class Again:
    """Runs and records such ops for one recorder."""

    def __init__(self, recorder: Recorder, memo: Memo, known: KnownValues) -> None:
        self.recorder, self.memo, self.known = recorder, memo, known
        self.listener: Listener | None = None
        """Is told of each op with the tensors that it reads and makes."""

    def op(self, facts: Facts, args: Any, kwargs: Any) -> Any:
        """What an op returns, after it is recorded; None, and nothing done, where it was not seen on such tensors, or values matter."""
        if facts.apart or (kwargs and "device" in kwargs):
            return None
        read: list[FakeTensor] = []
        remembered = self.memo.recall(facts, args, kwargs, read)
        if remembered is None or not read or self.known.knows_any(read):
            return None
        outputs = self.memo.outputs(remembered.recipe, args)
        made = (outputs,) if isinstance(outputs, Tensor) else [part for part in outputs if part is not None]
        told = remembered.told
        if told is None:
            told = remembered.told = _told(facts, args, kwargs, read, made, remembered.first)
        recorder = self.recorder
        values = recorder.values
        inputs = tuple([values.window(tensor, window, "constant") for tensor, window in zip(read, told.inputs, strict=True)])
        if told.first:
            specs = tuple([window.spec(inputs[0].value) for window in told.outputs])
        else:
            specs = tuple([values.window(tensor, window) for tensor, window in zip(made, told.outputs, strict=True)])
        held = recorder.parameters_behind(read)
        recorder.write(facts.name, facts.overload, told.names, dict(told.arguments), told.written, told.view, inputs, specs, held, made)
        if self.listener is not None:
            self.listener(facts, remembered, read, made)
        return outputs


def _told(facts: Facts, args: Any, kwargs: Any, read: Sequence[Tensor], made: Sequence[Tensor], first: bool) -> Told:
    given = dict(zip(facts.arguments, args, strict=False))
    given.update(kwargs)
    return Told(
        tuple(name for name, _ in named_tensors(given)), plain_arguments(given),
        tuple(name for name in facts.written if given.get(name) is not None),
        tuple(map(window_of, read)), tuple(map(window_of, made)), first,
    )  # fmt: skip
