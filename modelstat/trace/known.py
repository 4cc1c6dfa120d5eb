"""Values that a fake run keeps.

A model's control flow mostly hangs on small tensors that come from no weight: token ids, image grids, lengths, positions, masks. A fake
run follows their values beside their shapes, so that ``.item()``, ``nonzero`` and an index by a mask have an answer, and only a model
that asks for the value of an activation has to run for real.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from modelstat.trace.arguments import mapped, tensors_of
from modelstat.trace.values import memory_of

LIMIT = 2**22
"""Elements of the largest tensor whose values are followed."""

aten = torch.ops.aten
SHAPED_BY_VALUES = frozenset({torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output})
SELECT = frozenset({aten.index.Tensor, aten._unsafe_index.Tensor})
"""Ops that take a mask among their indices."""
FILLS = frozenset({
    aten.zeros_like.default, aten.ones_like.default, aten.full_like.default, aten.new_zeros.default, aten.new_ones.default,
    aten.new_full.default,
})  # fmt: skip
"""Ops whose results depend on the shapes of their inputs, not on the values."""
CHOICES = frozenset({aten.topk.default, aten.argmax.default, aten.max.dim})
"""Ops by which a router chooses experts; their last output is an index."""
MOST_CHOICES = 4096
"""A choice among more than this is not one of experts."""
EMPTY = frozenset({aten.empty.memory_format, aten.empty_strided.default})


class KnownValues:
    """The real twin of each fake tensor whose values are known.

    Twins share memory where the tensors do, so a write through a view reaches all of them. Where known values are overwritten with
    unknown ones, everything that shares the memory is forgotten. ``call`` runs an op, given with its arguments, on fake tensors.
    """

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call
        self.assumes = False
        """Whether a choice by unknown scores is assumed to be spread evenly, so that a mixture of experts needs no values."""
        self.assumed = 0
        """Choices that were assumed."""
        self._twins: dict[int, tuple[weakref.ref[Tensor], Tensor, int]] = {}
        self._by_memory: dict[int, set[int]] = {}

    def learn(self, fake: Tensor, real: Tensor) -> None:
        """From here on ``fake`` has the values of ``real``, which nobody else may write to."""
        if real.numel() > LIMIT or real.shape != fake.shape:
            return
        key, memory = id(fake), memory_of(fake)
        self._twins[key] = (weakref.ref(fake, lambda _: self._forget(key)), real, memory)
        self._by_memory.setdefault(memory, set()).add(key)

    def value(self, tensor: Tensor) -> Tensor | None:
        """The values of a tensor, None if they are not known."""
        twin = self._twins.get(id(tensor))
        return twin[1] if twin is not None and twin[0]() is tensor else None

    def knows_any(self, tensors: Sequence[Tensor]) -> bool:
        """Whether the values of some of the tensors are known."""
        return bool(self._twins) and any(self.value(tensor) is not None for tensor in tensors)

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs an op on fake tensors, and beside it on the values, where all of its inputs have them."""
        tensors = list(tensors_of((*args, *kwargs.values())))
        known = sum(self.value(tensor) is not None for tensor in tensors)
        if known < len(tensors) and func not in FILLS:
            made = self._run_partly_known(func, args, kwargs) if known else self.call(func, args, kwargs)
            if self.assumes and func in CHOICES:
                place = 2 if func is aten.topk.default else 1  # topk(input, k, dim), argmax(input, dim)
                dim = args[place] if len(args) > place else kwargs.get("dim", -1)
                self._assume(made if isinstance(made, Tensor) else made[-1], args[0].shape, dim)
            return made
        if SHAPED_BY_VALUES & set(func.tags):
            real = self._run_real(func, args, kwargs)
            made = mapped(real[0], lambda twin: _like(twin, tensors[0].device)) if real else self.call(func, args, kwargs)
        else:
            made = self.call(func, args, kwargs)
            small = all(tensor.numel() <= LIMIT for tensor in tensors_of((made,)))
            real = self._run_real(func, args, kwargs) if small else ()
        if real:
            for fake, twin in zip(tensors_of((made,)), tensors_of(real), strict=False):
                self.learn(fake, twin)
        else:
            self._forget_written(func, args, kwargs)
        return made

    def _assume(self, index: Tensor, scores: torch.Size, dim: int) -> None:
        """That a choice, made for each row, takes its options in turn; the next one starts one further, as a second choice would."""
        if index.numel() > LIMIT or scores[-1] > MOST_CHOICES or dim not in (-1, len(scores) - 1):
            return
        with _disable_current_modes():
            taken = (torch.arange(index.numel()) + self.assumed) % scores[-1]
            self.learn(index, taken.to(index.dtype).reshape(index.shape))
        self.assumed += 1

    def _run_real(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The result on the values, in a tuple, which is empty where there is none: random numbers are not known."""
        if torch.Tag.nondeterministic_seeded in func.tags:
            return ()
        with contextlib.suppress(Exception), _disable_current_modes():
            given = {name: torch.device("cpu") if name == "device" and value is not None else value for name, value in kwargs.items()}
            result = func(*mapped(args, self._twin), **{name: mapped(value, self._twin) for name, value in given.items()})
            # What lies in fresh memory must not decide anything by chance.
            return (result.zero_() if func in EMPTY else result,)
        return ()

    def _twin(self, tensor: Tensor) -> Tensor:
        twin = self.value(tensor)
        return torch.empty(tensor.shape, dtype=tensor.dtype) if twin is None else twin

    def _run_partly_known(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An op on unknown values of which some input is known: a known mask says how many elements it selects."""
        self._forget_written(func, args, kwargs)
        if func in SELECT:
            return func(args[0], [position for index in args[1] for position in self._positions(index)])
        if func is aten.masked_select.default and (mask := self.value(args[1])) is not None:
            with _disable_current_modes():
                count = int(mask.broadcast_to(torch.broadcast_shapes(mask.shape, args[0].shape)).sum())
            return args[0].new_empty((count,))
        return self.call(func, args, kwargs)

    def _positions(self, index: Tensor | None) -> tuple[Tensor | None, ...]:
        """A known mask as one tensor of positions for each of its axes; any other index as it is."""
        mask = self.value(index) if index is not None and index.dtype in (torch.bool, torch.uint8) else None
        if index is None or mask is None:
            return (index,)
        with _disable_current_modes():
            found = mask.nonzero().unbind(1)
        return tuple(_like(positions, index.device) for positions in found)

    def _forget_written(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for index, argument in enumerate(func._schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            for tensor in tensors_of((args[index] if index < len(args) else kwargs.get(argument.name),)):
                memory = memory_of(tensor)
                for key in self._by_memory.pop(memory, ()):
                    # An address and an id are given again to others, once what they belonged to is gone.
                    if key in self._twins and self._twins[key][2] == memory:
                        self._forget(key)

    def _forget(self, key: int) -> None:
        self._twins.pop(key, None)


def _like(real: Any, device: torch.device) -> Any:
    """A fake tensor of the same layout; what is no tensor stays."""
    return torch.empty_strided(real.shape, real.stride(), dtype=real.dtype, device=device) if isinstance(real, Tensor) else real
