"""From which size on each layer is overhead-, memory- or compute-bound, and at which the memory is full."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec

from modelstat.cost.registry import costs as costs_of
from modelstat.deploy.series import Series
from modelstat.errors import MissingPeakError
from modelstat.hardware.gpu import Gpu
from modelstat.memory.peak import peak_memory
from modelstat.predict.execution import Execution
from modelstat.predict.prediction import predict
from modelstat.predict.roofline import FITS_SHARE, layer_times, roofline
from modelstat.records import Trace
from modelstat.report.prediction import layer_predictions, op_predictions

LAYER_SHARE = 0.05
"""A layer's crossing is narrowed down to this share of the size; the whole model's to a single step."""
ROWS = 24
"""Modules that are looked at without being asked for a depth."""
LARGEST = 2**24
"""No size above this is tried for where the memory is full."""


Turns = tuple[tuple[int, str], ...]
Bounds = tuple[tuple[str | None, str | None], ...]
"""The predicted bound and the roofline's, of each module."""


class Crossing(msgspec.Struct, frozen=True):
    """One module: ``turns`` are the sizes from which on a bound holds, ascending; the first is the smallest size looked at.

    ``ideal_turns`` are those of the roofline, which knows no overhead and no kernel that wastes arithmetic on small sizes.
    """

    path: str
    type: str
    turns: Turns
    ideal_turns: Turns


def ranges(turns: Turns, bound: str, last: int) -> str:
    """The sizes at which a bound holds, up to the largest size looked at; ``-`` where none.

    >>> ranges(((1, "overhead"), (16, "memory"), (100, "compute")), "memory", 512)
    '16-99'
    """
    ends = [size - 1 for size, _ in turns[1:]] + [last]
    found = [f"{size}-{end}" if end > size else str(size) for (size, kind), end in zip(turns, ends, strict=True) if kind == bound]
    return ", ".join(found) or "-"


class Crossings(msgspec.Struct, frozen=True):
    """The whole model first, then its modules, down to the depth asked for.

    ``full`` is the largest size whose peak memory is at most 95 % of the GPU's, None where that is not known; 0 where none fits.
    """

    gpu: Gpu
    last: int
    step: int | None
    rows: tuple[Crossing, ...]
    full: int | None


def crossings(
    series: Series, sizes: Sequence[int], gpu: Gpu, execution: Execution | None = None, *, depth: int | None = None,
    change: Callable[[Trace], Trace] = lambda trace: trace,
) -> Crossings:  # fmt: skip
    """Where the predicted bound of a model and of its modules turns over ``sizes`` (ascending).

    Between two sizes whose bounds differ the turn is narrowed down, if the series has sizes there. ``change`` is done to every trace (a
    precision plan). Modules are those down to ``depth``, by default the deepest that shows at most ROWS. Raises MissingPeakError where the
    GPU has no peak for the model.
    """
    found: dict[int, Bounds] = {}

    def bounds(size: int) -> Bounds:
        if size not in found:
            found[size] = _bounds(change(series.at(size)), gpu, execution)
        return found[size]

    grid = sorted(set(sizes))
    for size in grid:
        bounds(size)
    modules = change(series.at(grid[0])).modules
    running = [index for index in range(len(modules)) if index == 0 or any(found[size][index] != (None, None) for size in grid)]
    if depth is None:
        deepest = max(modules[index].depth for index in running)
        depth = next((level for level in range(deepest, 1, -1) if sum(modules[index].depth <= level for index in running) <= ROWS), 1)
    rows = tuple(
        Crossing(modules[index].path, modules[index].type, *(_turns(grid, index, side, bounds, series.step) for side in (0, 1)))
        for index in running
        if modules[index].depth <= depth
    )
    return Crossings(gpu, grid[-1], series.step, rows, _full(series, grid, gpu, change))


def _bounds(trace: Trace, gpu: Gpu, execution: Execution | None) -> Bounds:
    costs = costs_of(trace)
    roof, prediction = roofline(trace, costs, gpu), predict(trace, costs, gpu, execution)
    if prediction.missing is not None:
        raise MissingPeakError(prediction.missing)
    rows = layer_predictions(trace, roof, prediction, op_predictions(trace, costs, roof, prediction))
    ideal = layer_times(trace, roof)
    return ((prediction.bound, roof.bound), *((row.bound, time.bound) for row, time in zip(rows[1:], ideal[1:], strict=True)))


def _turns(grid: Sequence[int], index: int, side: int, bounds: Callable[[int], Bounds], step: int | None) -> Turns:
    """Bisection between two sizes of the grid: the whole model's to one step, a module's to a share of the size."""
    share = LAYER_SHARE if index else 0.0

    def bound(size: int) -> str:
        return bounds(size)[index][side] or "none"

    turns = [(grid[0], bound(grid[0]))]
    for low, high in pairwise(grid):
        before = bound(low)
        if before == bound(high):
            continue
        while step and high - low > max(step, share * low):
            middle = low + max((high - low) // 2 // step, 1) * step
            low, high = (middle, high) if bound(middle) == before else (low, middle)
        turns.append((high, bound(high)))
    return tuple(turns)


def _full(series: Series, grid: Sequence[int], gpu: Gpu, change: Callable[[Trace], Trace]) -> int | None:
    if gpu.memory_bytes is None:
        return None
    room = FITS_SHARE * gpu.memory_bytes

    def fits(size: int) -> bool:
        return peak_memory(change(series.at(size))).peak_bytes <= room

    step = series.step
    if not fits(grid[0]):
        return 0
    if step is None:
        return max(size for size in grid if fits(size)) if not fits(grid[-1]) else None
    low = max((size for size in grid if fits(size)), default=grid[0])
    low, high = (low, low + step)
    while high <= LARGEST and fits(high):
        low, high = high, high + (high - grid[0]) // step * step
    while high - low > step:
        middle = low + (high - low) // 2 // step * step
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low if high <= LARGEST else None
