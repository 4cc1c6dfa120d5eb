"""How the operands of one op lie on the GPUs: the rules, one function a kind of op.

A rule sees which axis of each operand is split already, if any, and says how the op runs: which axis of each operand a GPU works on, and
which axis of each result it has. An operand that is whole everywhere may be worked on in parts for nothing; one that is split otherwise
than the rule wants, or that it wants whole, is gathered first. None: every GPU does all of it.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from modelstat.deploy.cut import Cut
from modelstat.records import Op, TensorSpec

Cuts = tuple[Cut | None, ...]


class Operands(msgspec.Struct, frozen=True):
    """What a rule knows of an op: the cut of each input, and which inputs are weights (parameters and casts of them).

    ``wanted``: how the first result had better be split; ``whole``: that it had better be whole.
    """

    op: Op
    cuts: Cuts
    weights: tuple[bool, ...]
    wanted: Cut | None
    whole: bool
    gpus: int

    def named(self, *names: str) -> int | None:
        """Index of the first input that has one of these names."""
        return next((index for index, name in enumerate(self.op.names) if name in names), None)

    def largest(self, *, data: bool = False) -> int | None:
        """Index of the largest input that is split, among all or among those that are no weights."""
        split = [index for index, cut in enumerate(self.cuts) if cut is not None and not (data and self.weights[index])]
        return max(split, key=lambda index: self.op.inputs[index].bytes, default=None)


class Placement(msgspec.Struct, frozen=True):
    """The cut of each input that a GPU works on, and of each result. ``partial``: a GPU has a part of each sum, in so many ways.

    ``arguments`` replace those of the op; ``asks`` are inputs that must be split so first (1 way: whole).
    """

    inputs: Cuts
    outputs: Cuts
    partial: int = 0
    arguments: dict[str, int] = {}
    asks: tuple[tuple[int, Cut], ...] = ()


Rule = Callable[[Operands], Placement | None]


def nothing(known: Operands, *asks: tuple[int, Cut]) -> Placement | None:
    """Whole on every GPU."""
    return Placement((None,) * len(known.op.inputs), (None,) * len(known.op.outputs), asks=asks) if asks else None


def data_alone(known: Operands, cut: Cut) -> Placement | None:
    """The first input and all results that have its axis share a cut; the other inputs are whole. None where the first result lacks it."""
    shape = known.op.inputs[0].shape
    outputs = tuple(cut if _has(spec, cut.axis, shape[cut.axis]) else None for spec in known.op.outputs)
    if outputs[0] is None:
        return None
    return Placement((cut, *(None,) * (len(known.op.inputs) - 1)), outputs)


def _has(spec: TensorSpec, axis: int, size: int) -> bool:
    return 0 <= axis < len(spec.shape) and spec.shape[axis] == size


def axis_of(op: Op, name: str = "dim", default: int | None = None) -> int | None:
    """An axis among the arguments, counted from the front of the first input."""
    given = op.argument(name, default)
    rank = len(op.inputs[0].shape)
    return given % rank if type(given) is int and rank else None
