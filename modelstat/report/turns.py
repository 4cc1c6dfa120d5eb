"""The ``crossings`` of the JSON contract: from which batch or length on a bound holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from modelstat.deploy.crossings import Crossings, Turns
    from modelstat.hardware.gpu import Gpu


class Turn(msgspec.Struct, frozen=True):
    """From this size on, up to the next turn, a bound holds; null: nothing runs."""

    size: int
    bound: str | None


class TurnRow(msgspec.Struct, frozen=True):
    """One module: the turns of its predicted bound and of the roofline's, ascending; the first is at the smallest size of the range."""

    path: str
    type: str
    predicted: tuple[Turn, ...]
    ideal: tuple[Turn, ...]


class CrossingsEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The turns on one GPU over the range of ``name`` (``batch``, or a length) that this run belongs to.

    ``step`` is the distance to which the whole model's turns are known; null: every size was walked by itself, and turns are at those.
    ``full`` is the largest size whose peak memory is at most 95 % of the GPU's; 0: none fits; null: not full at ``last``, or unknown.
    """

    key: str
    name: str
    last: int
    step: int | None
    full: int | None
    missing: str | None
    rows: tuple[TurnRow, ...]


def crossings_entry(found: Crossings, name: str) -> CrossingsEntry:
    """The entry of one GPU."""
    return CrossingsEntry(
        key=found.gpu.key,
        name=name,
        last=found.last,
        step=found.step,
        full=found.full,
        missing=None,
        rows=tuple(TurnRow(row.path, row.type, _turns(row.turns), _turns(row.ideal_turns)) for row in found.rows),
    )


def no_crossings(gpu: Gpu, name: str, last: int, missing: str) -> CrossingsEntry:
    """The entry of a GPU without a peak for the model."""
    return CrossingsEntry(key=gpu.key, name=name, last=last, step=None, full=None, missing=missing, rows=())


def _turns(turns: Turns) -> tuple[Turn, ...]:
    return tuple(Turn(size, None if bound == "none" else bound) for size, bound in turns)
