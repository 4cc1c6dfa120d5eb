"""Ops that fall apart, remembered with all the ops that they fall into.

Above autograd, a linear layer, a product of matrices or an einsum is one op; below it, it is up to a dozen, each of which asks Python
for its result. They are the same each time that the tensors are alike. So they are listened to once, and written from memory after
that: only the result is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch._C import _len_torch_dispatch_stack
from torch._subclasses.fake_tensor import FakeTensor

from modelstat.records import TensorSpec
from modelstat.trace.again import Again, Told
from modelstat.trace.facts import Facts, facts_of
from modelstat.trace.memo import BELOW, LIMIT, Fresh, Remembered, key_of
from modelstat.trace.routes import AUTOCAST, beneath

if TYPE_CHECKING:
    from modelstat.trace.recorder import Recorder

FALLING = ("linear", "matmul", "einsum")
"""The ops of aten that are remembered so."""
ATTEMPTS = 5
"""How often a call is listened to, until all of its ops were seen before."""
MODES = BELOW + 1
"""Dispatch modes while a model is walked: the recorder, and that of its tensors. With another one, the ops are not only ours."""


class Born(NamedTuple):
    """A storage that a step makes: its bytes, and how many ops after the start of the sequence it is let go."""

    bytes: int
    death: int


class Step(NamedTuple):
    """One op of a sequence. An input is an operand, by its number, or a tensor that was made before, by ``~`` of its number."""

    facts: Facts
    told: Told
    inputs: tuple[int, ...]
    born: tuple[Born | Fresh, ...]
    """For each output with a storage of its own; how to make it if the result lies there."""
    held: tuple[int, ...]
    """Operands whose parameters it reads."""


class Remains(NamedTuple):
    """What an op falls into, and its result, which lies on the storage that is made."""

    steps: tuple[Step, ...]
    window: tuple[tuple[int, ...], tuple[int, ...], int, torch.device] | None
    """Its shape, strides, offset and device, None for the very tensor that is made."""
    held: tuple[int, ...]
    """Operands whose parameters it stands for."""


_remains: dict[Any, Remains] = {}
"""What calls fall into."""
_attempts: dict[Any, int] = {}
"""How often a call was listened to in vain."""


class Sequences:
    """Calls of such ops under one recorder."""

    def __init__(self, recorder: Recorder, again: Again) -> None:
        self.recorder, self.again = recorder, again

    def of(self, name: str) -> Callable[..., Tensor]:
        """What runs in the place of an op."""
        op = getattr(torch.ops.aten, name).default
        facts = facts_of(op)

        def call(*args: Any, **kwargs: Any) -> Tensor:
            operands: list[FakeTensor] = []
            key = key_of(facts, args, kwargs, operands) if self._alone() else None
            # Of one tensor given twice it could not be told which of the two an op reads.
            if key is None or len(set(map(id, operands))) < len(operands) or self.again.known.knows_any(operands):
                plain: Tensor = beneath(op, args, kwargs)
                return plain
            # Which factors of a broadcast product are folded hangs on who has gradients, also where they are off. And in inference mode
            # the parts fall apart themselves at another place.
            key = (key, torch.is_inference_mode_enabled(), *[(tensor.requires_grad, tensor.is_inference()) for tensor in operands])
            known = _remains.get(key)
            return self._written(known, operands) if known is not None else self._heard(key, operands, op, args, kwargs)

        return call

    def _heard(self, key: Any, operands: Sequence[Tensor], op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        """Calls an op and listens, unless that was in vain too often."""
        attempts = _attempts.get(key, 0)
        listener = Listener(self.recorder, operands)
        self.again.listener = listener if attempts < ATTEMPTS else None
        try:
            result: Tensor = beneath(op, args, kwargs)
        finally:
            self.again.listener = None
        if len(_remains) + len(_attempts) >= LIMIT:
            _remains.clear()
            _attempts.clear()
        remains = listener.remains(result)
        if remains is None:
            _attempts[key] = attempts + 1
        else:
            _remains[key] = remains
        return result

    def _alone(self) -> bool:
        recorder = self.recorder
        apart = recorder.is_suspended or torch.is_grad_enabled() or any(map(torch.is_autocast_enabled, AUTOCAST))
        return not apart and self.again.listener is None and _len_torch_dispatch_stack() == MODES

    def _written(self, remains: Remains, operands: Sequence[Tensor]) -> Tensor:
        """Writes down all ops of a call, and returns its result."""
        recorder, memo = self.recorder, self.again.memo
        values = recorder.values
        start, behind = values.clock, [recorder.parameters_behind((operand,)) for operand in operands]
        made: list[int] = []  # the value of each tensor that is made
        base: Tensor | None = None
        for facts, told, sources, born, held in remains.steps:
            inputs = tuple([
                values.window(operands[number], window, "constant") if number >= 0 else window.spec(made[~number])
                for number, window in zip(sources, told.inputs, strict=True)
            ])  # fmt: skip
            if told.first:
                outputs = tuple([window.spec(inputs[0].value) for window in told.outputs])
            else:
                found: list[TensorSpec] = []
                for storage, window in zip(born, told.outputs, strict=True):
                    if isinstance(storage, Fresh):
                        base = memo.outputs(storage, ())
                        found.append(values.window(base, window))
                    else:
                        found.append(window.spec(values.past(storage.bytes, start + storage.death)))
                outputs = tuple(found)
            made += [spec.value for spec in outputs]
            read = [tensor for number in held for tensor in behind[number]]
            recorder.write(facts.name, facts.overload, told.names, dict(told.arguments), told.written, told.view, inputs, outputs, read, ())
        assert base is not None
        result = base if remains.window is None else memo.window(base, *remains.window)
        recorder.stands_for(result, [tensor for number in remains.held for tensor in behind[number]])
        return result


class Listener:
    """Hears the ops of one call."""

    def __init__(self, recorder: Recorder, operands: Sequence[Tensor]) -> None:
        self.recorder, self.operands = recorder, operands
        self.start = len(recorder.ops)
        self.steps: list[Step] = []
        self.clear = True
        """Whether all that was heard was understood."""
        self._numbers = {id(operand): number for number, operand in enumerate(operands)}
        self._on: list[int] = []
        """The operand that each tensor that was made lies on, or ``~`` of the made one that has their storage."""
        self._held: list[tuple[int, ...]] = []

    def __call__(self, facts: Facts, remembered: Remembered, read: Sequence[Tensor], made: Sequence[Tensor]) -> None:
        """Hears of an op. No tensor is kept: it would live longer than without a listener."""
        told, parts = remembered.told, remembered.parts
        numbers = [self._numbers.get(id(tensor)) for tensor in read]
        sources = tuple(number for number in numbers if number is not None)
        self.clear &= len(sources) == len(read) and not told.written and (told.first or all(type(part) is Fresh for part in parts))
        if not self.clear:
            return
        held = tuple(operand for number in sources for operand in ((number,) if number >= 0 else self._held[~number]))
        for tensor in made:
            number = len(self._on)
            self._numbers[id(tensor)] = ~number
            self._on.append(~number if not told.first else sources[0] if sources[0] >= 0 else self._on[~sources[0]])
            self._held.append(held if self.recorder.passes_on(facts.name, told.view) else ())
        self.steps.append(Step(facts, told, sources, () if told.first else tuple(parts), held))

    def remains(self, result: Tensor) -> Remains | None:
        """All that was heard, with the result of the call; None where something was not understood.

        A result that lies on an operand is left out: autograd follows such a view, also where gradients are off.
        """
        number = self._numbers.get(id(result), 0)  # (an operand's, or unknown: ids are given again, but then an op was not heard)
        heard = self.clear and len(self.recorder.ops) - self.start == len(self.steps)
        if not heard or number >= 0 or result.is_conj() or result.is_neg():
            return None
        on = self._on[~number]
        if on >= 0:
            return None
        steps: list[Step] = []
        count = 0
        for step, op in zip(self.steps, self.recorder.ops[self.start :], strict=True):
            born: list[Born | Fresh] = []
            for index, recipe in enumerate(step.born):
                size, death = self.recorder.values.size_and_death(op.outputs[index].value)
                if ~(count + index) == on:
                    born.append(recipe)
                elif death is None:
                    return None
                else:
                    born.append(Born(size, death - self.start))
            count += len(step.told.outputs)
            steps.append(step._replace(born=tuple(born)))
        window = (tuple(result.shape), result.stride(), int(result.storage_offset()), result.device)
        return Remains(tuple(steps), None if on == number else window, self._held[~number])
