"""Where a tensor is split: which elements of a storage a GPU has, and which axis of a window on it that is.

A storage is split by the places of its elements, not by an axis of one of its windows: what lies between two bounds is shared out in
equal blocks, one after another, and that repeats with a period. A window (shape, strides and offset) carries the split if it comes down to
blocks of one of its axes. So a reshape, transpose, slice or chunk needs no rule of its own: [B, S, H x D] split into blocks of H x D / N
is the same storage as [B, S, H, D] split by heads, and the thirds of a fused projection are three sections of one period, each with its own
blocks. A window whose elements are shared out in any other way carries nothing, and has to be gathered.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import msgspec

from modelstat.records import TensorSpec

SECTIONS = 4096
"""More sections than this in one period are no layout of a weight."""
HEADS = 4
"""An axis of at least so many, but fewer than there are GPUs, is taken for heads that several GPUs share."""


class Cut(msgspec.Struct, frozen=True):
    """One axis of a window in blocks: in every ``period`` of its indices, what lies between two ``bounds`` is in ``ways`` equal blocks.

    GPU r of N has block r x ``ways`` // N of each: with fewer ways than GPUs, several have the same.
    """

    axis: int
    period: int
    bounds: tuple[int, ...]
    ways: int

    def on(self, axis: int, ways: int | None = None) -> Cut:
        """The same blocks of another axis, or in other ways."""
        return Cut(axis, self.period, self.bounds, ways or self.ways)

    def like(self, other: Cut) -> bool:
        """The same blocks, or blocks of these blocks, on whatever axis."""
        ways = sorted((self.ways, other.ways))
        return (self.period, self.bounds) == (other.period, other.bounds) and ways[1] % ways[0] == 0

    def sections(self, size: int) -> tuple[int, ...]:
        """The bounds over an axis of ``size`` indices, which are whole periods.

        >>> even(0, 4, 2).sections(8)
        (0, 4, 8)
        """
        starts = range(0, size, self.period)
        return (0, *(start + bound for start in starts for bound in self.bounds[1:]))


class Split(msgspec.Struct, frozen=True):
    """A storage in blocks: as :class:`Cut`, with places in bits from its start. ``firm``: no other layout will do.

    Equal sections may be written as such, so that one of them can still be divided, or as a period of one section.
    """

    period: int
    bounds: tuple[int, ...]
    ways: int
    firm: bool = False


def even(axis: int, size: int, ways: int) -> Cut:
    """An axis of ``size`` in ``ways`` equal blocks."""
    return Cut(axis, size, (0, size), ways)


def cut_of(axis: int, bounds: Iterable[int], ways: int) -> Cut | None:
    """The cut with these bounds, None where a section has no equal blocks. Equal sections are a period of one section.

    >>> cut_of(2, (0, 4, 8, 12), 2) == even(2, 4, 2)
    True
    """
    period, found = _normal(bounds)
    if any((high - low) % ways for low, high in pairwise(found)):
        return None
    return Cut(axis, period, found, ways)


def _normal(bounds: Iterable[int]) -> tuple[int, tuple[int, ...]]:
    found = tuple(sorted(set(bounds)))
    widths = {high - low for low, high in pairwise(found)}
    if len(widths) == 1:
        (width,) = widths
        return width, (0, width)
    return found[-1], found


def unit_of(spec: TensorSpec) -> int:
    """Bits of an element: weights of half a byte have places too."""
    return round(spec.item_bytes * 8)


def split_of(spec: TensorSpec, cut: Cut, *, firm: bool = False) -> Split:
    """What a cut of a window makes of its storage."""
    step = spec.strides[cut.axis] * unit_of(spec)
    return Split(cut.period * step, tuple(bound * step for bound in cut.bounds), cut.ways, firm)


def fitted(spec: TensorSpec, split: Split) -> Cut | None:
    """The axis of a window that carries a split, None where none does.

    Axes whose step is a multiple of the period stay in one place of it. Of the others the one with the longest step must carry the split,
    and the rest must stay within one of its steps.
    """
    period, bounds = _normal(split.bounds)
    carrier = _carrier(spec, period)
    if carrier is None:
        return None
    axis, step, first = carrier
    last = first + spec.shape[axis] * step
    if last > period:
        if first or last % period:
            return None
    elif first in bounds and last in bounds:
        bounds = tuple(bound - first for bound in bounds if first <= bound <= last)
    else:
        return None
    return None if any(bound % step for bound in bounds) else cut_of(axis, (bound // step for bound in bounds), split.ways)


def _carrier(spec: TensorSpec, period: int) -> tuple[int, int, int] | None:
    """Axis, its step (bits) and where in the period it starts; None where no axis moves along the split, or several at once."""
    unit = unit_of(spec)
    moving = sorted(
        (stride * unit, axis) for axis, (size, stride) in enumerate(zip(spec.shape, spec.strides, strict=True))
        if size > 1 and stride and stride * unit % period
    )  # fmt: skip
    if not moving:
        return None
    step, axis = moving[-1]
    inner = unit + sum((spec.shape[other] - 1) * stride for stride, other in moving[:-1])
    start = spec.offset * unit % period
    return (axis, step, start - start % step) if start % step + inner <= step else None


def refined(spec: TensorSpec, split: Split, gpus: int) -> Split | None:
    """A split of the same storage that a window does carry, with more sections or in fewer ways; None where there is none.

    What made the storage, a product with a weight, is free to share out its columns so.
    """
    carrier = _carrier(spec, split.period)
    if carrier is None:
        return None
    axis, step, first = carrier
    last = min(first + spec.shape[axis] * step, split.period)
    inside = (*split.bounds, first, last)
    tries = [(inside, gpus)]
    size = spec.shape[axis]
    if split.period % step == 0 and split.period // step <= SECTIONS:
        tries.append((tuple(range(0, split.period + 1, step)), gpus))
    if size < gpus and gpus % size == 0:
        # Two or three of a kind are parts of a fused projection, each of which is shared out; more are heads of keys and values.
        tries.insert(1 if size >= HEADS else 2, (inside, size))
    for bounds, ways in tries:
        found = Split(split.period, tuple(sorted(set(bounds))), ways)
        if fitted(spec, found) is not None:
            return found
    return None


def merged(one: Split, other: Split) -> Split:
    """The bounds of both, in the fewer ways; a firm one as it is."""
    if one.firm != other.firm:
        return one if one.firm else other
    period = max(one.period, other.period)
    bounds: set[int] = set()
    for each in (one, other):
        if period % each.period:
            return one
        bounds.update(start + bound for start in range(0, period, each.period) for bound in each.bounds)
    return Split(period, tuple(sorted(bounds)), min(one.ways, other.ways), one.firm)


def serves(had: Cut | None, cut: Cut | None) -> bool:
    """Whether what a GPU has is what it works on, or that and more."""
    return had is not None and cut is not None and had.axis == cut.axis and had.like(cut) and had.ways <= cut.ways


def part(spec: TensorSpec, cut: Cut | None) -> TensorSpec:
    """One GPU's part of a window."""
    if cut is None:
        return spec
    shape = (*spec.shape[: cut.axis], spec.shape[cut.axis] // cut.ways, *spec.shape[cut.axis + 1 :])
    return msgspec.structs.replace(spec, shape=shape)
