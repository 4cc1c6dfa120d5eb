"""One model over a range of sizes, walked as seldom as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from typing import Any

import msgspec

from modelstat.errors import ModelstatError
from modelstat.records import Trace
from modelstat.trace.batches import HIGH, LOW, BatchPair, NotAffineError

Fetch = Callable[[int], Trace]
"""Walks the model at one size, or reads that from the cache."""

KNOTS = 3
"""Walks that tell a quantity which is at most quadratic in the size, as the bytes of an attention matrix are."""


class Series:
    """The trace of a model at any size. ``step`` is the distance of sizes that need no walk of their own, None where every one does.

    This one walks each size by itself, once.
    """

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._walked: dict[int, Trace] = {}
        self.step: int | None = None

    @property
    def walks(self) -> int:
        """How many sizes were walked."""
        return len(self._walked)

    def at(self, size: int) -> Trace:
        """The trace at a size. Raises what walking it raises."""
        if size not in self._walked:
            self._walked[size] = self._fetch(size)
        return self._walked[size]

    def alike(self, size: int) -> tuple[int, ...] | None:
        """For each op of the trace at a size the first one with the same cost, None where that is not known."""
        return None


class BatchSeries(Series):
    """Batches: 1 is walked, all above follow from the walks at 2 and 3 as long as sizes are affine in the batch."""

    def __init__(self, fetch: Fetch) -> None:
        super().__init__(fetch)
        self._pair: BatchPair | None = None
        try:
            self._pair = BatchPair(super().at(LOW), super().at(HIGH))
            self.step = 1
        except (NotAffineError, ModelstatError):
            pass  # the model does not take these batches, or does something else at each: every batch is walked by itself

    def at(self, size: int) -> Trace:
        """The trace at a batch."""
        if self._pair is not None and size > 1:
            try:
                return self._pair.at(size)
            except NotAffineError:
                self._pair, self.step = None, None
        return super().at(size)

    def alike(self, size: int) -> tuple[int, ...] | None:
        """As known from the two walks."""
        return self._pair.alike if self._pair is not None and size > 1 else None


class SizeSeries(Series):
    """A length that inputs share, such as a sequence's: every integer of a trace is a polynomial of degree two in it.

    Three walks at the smallest sizes tell the polynomials, and a walk at the largest one proves them. Where that one differs (a window that
    is padded, a side that is halved and rounded, another kernel for long inputs), every size is walked by itself.
    """

    def __init__(self, fetch: Fetch, sizes: Sequence[int]) -> None:
        super().__init__(fetch)
        wide = sorted({size for size in sizes if size > 1}) or [2]
        self._low, self._high = wide[0], wide[-1]
        step = gcd(*(size - self._low for size in wide[1:])) if len(wide) > 1 else 0
        self._step = gcd(step, self._low) if step else 0
        self._knots: list[Any] = []
        if len(wide) > KNOTS:
            self._learn()

    def at(self, size: int) -> Trace:
        """The trace at a size."""
        if self._knots and size >= self._low and (size - self._low) % self._step == 0:
            return self._between(size)
        return super().at(size)

    def _learn(self) -> None:
        try:
            walked = [super(SizeSeries, self).at(self._low + self._step * index) for index in range(KNOTS)]
            self._knots = [msgspec.to_builtins(_bare(trace)) for trace in walked]
            self._notes = walked[0].notes
            if _bare(self._between(self._high)) != _bare(super().at(self._high)):
                self._knots = []
        except (NotAffineError, ModelstatError):
            self._knots = []
        self.step = self._step if self._knots else None

    def _between(self, size: int) -> Trace:
        found = _polynomial(self._knots, (size - self._low) // self._step)
        return msgspec.structs.replace(msgspec.convert(found, Trace), notes=self._notes)


def _bare(trace: Trace) -> Trace:
    """Without what a user is told: texts name sizes."""
    return msgspec.structs.replace(trace, notes=())


def _polynomial(knots: Sequence[Any], steps: int) -> Any:
    """Newton's forward differences through three equally spaced integers, on nested lists and dicts; the rest must be the same."""
    first, second, third = knots
    if first == second == third:
        return first
    if isinstance(first, dict) and isinstance(second, dict) and isinstance(third, dict) and first.keys() == second.keys() == third.keys():
        return {key: _polynomial((first[key], second[key], third[key]), steps) for key in first}
    if isinstance(first, (list, tuple)) and len(first) == len(second) == len(third):
        return [_polynomial(each, steps) for each in zip(first, second, third, strict=True)]
    if type(first) is int and type(second) is int and type(third) is int:
        return first + steps * (second - first) + steps * (steps - 1) // 2 * (first - 2 * second + third)
    raise NotAffineError(f"{first!r}, {second!r} and {third!r} are no sizes")
