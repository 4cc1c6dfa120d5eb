"""What a sweep runs: the product of models, inputs, batches, precisions and GPUs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from modelstat.hardware.gpu import Gpu
from modelstat.predict.execution import Execution
from modelstat.sweeping.patterns import located

SAME_TRACE = ("fp32", "tf32")
"""Precisions that do not change the trace: they run the same float32 ops and differ in the peak that these are held against."""


class Job(msgspec.Struct, frozen=True):
    """One model at one input: the unit that is traced, fails and is written as a whole.

    ``precisions`` share one trace. ``batches`` and ``precisions`` hold None where nothing was asked for. ``target`` is the spec with
    an absolute path.
    """

    index: int
    spec: str
    target: str
    inputs: str | None
    batches: tuple[int | None, ...]
    precisions: tuple[str | None, ...]
    gpus: tuple[Gpu, ...] = ()
    layers: bool = False
    cache: bool = True
    execution: Execution = Execution()

    @property
    def points(self) -> int:
        """Rows that it gives, whether it fails or not."""
        return len(self.batches) * len(self.precisions) * max(1, len(self.gpus))


class Grid(msgspec.Struct, frozen=True):
    """The product of what is given. None in ``inputs``, ``batches`` or ``precisions`` is the model's own."""

    specs: tuple[str, ...]
    inputs: tuple[str | None, ...] = (None,)
    batches: tuple[int | None, ...] = (None,)
    precisions: tuple[str | None, ...] = (None,)
    gpus: tuple[Gpu, ...] = ()
    layers: bool = False
    execution: Execution = Execution()

    @property
    def _groups(self) -> tuple[tuple[str | None, ...], ...]:
        """Precisions by the trace that they share."""
        shared = tuple(each for each in self.precisions if each in SAME_TRACE)
        alone = tuple((each,) for each in self.precisions if each not in SAME_TRACE)
        return (shared, *alone) if shared else alone

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.specs) * len(self.inputs) * len(self._groups)

    @property
    def points(self) -> int:
        """Number of rows."""
        return len(self.specs) * len(self.inputs) * len(self.batches) * len(self.precisions) * max(1, len(self.gpus))

    def jobs(self, *, cache: bool = True) -> Iterator[Job]:
        """All jobs in order. The same grid gives the same job at the same index."""
        index = 0
        for spec in self.specs:
            target = located(spec, Path.cwd())
            for inputs in self.inputs:
                for precisions in self._groups:
                    yield Job(index, spec, target, inputs, self.batches, precisions, self.gpus, self.layers, cache, self.execution)
                    index += 1

    def describe(self) -> dict[str, Any]:
        """What tells this grid from another, as plain data: the long parts by number and digest."""
        return {
            "models": [len(self.specs), _digest(self.specs)],
            "--input": list(self.inputs),
            "--batch": list(self.batches),
            "--precision": list(self.precisions),
            "--gpu": [[gpu.key, _digest(gpu)] for gpu in self.gpus],
            "--layers": self.layers,
            "execution": self.execution.text,
        }


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value)).hexdigest()[:16]


def difference(mine: dict[str, Any], other: dict[str, Any]) -> str | None:
    """How a described grid differs from another one, in words; None if it does not.

    >>> difference({"--batch": [1]}, {"--batch": [1, 8]})
    '--batch 1,8 there, 1 here'
    """
    for name, here in mine.items():
        there = other.get(name)
        if here != there:
            return f"{name} {_words(there)} there, {_words(here)} here"
    return None


def _words(value: Any) -> str:
    if isinstance(value, list) and len(value) == 2 and isinstance(value[1], str) and type(value[0]) is int:
        return f"({value[0]}, digest {value[1]})"
    if isinstance(value, list):
        return ",".join(str(item[0] if isinstance(item, list) else "default" if item is None else item) for item in value) or "none"
    return str(value)
