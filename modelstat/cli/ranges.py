"""A range of batches, or of a length by name: few walks, and the table of where bounds turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from modelstat.errors import MissingPeakError, UsageError

if TYPE_CHECKING:
    from modelstat.cli.output import Output
    from modelstat.deploy.crossings import Crossings
    from modelstat.deploy.series import Series
    from modelstat.deploy.sweep import Sweep
    from modelstat.hardware.gpu import Gpu
    from modelstat.predict.execution import Execution
    from modelstat.records import Trace
    from modelstat.report.turns import CrossingsEntry

FEW = 3
"""Up to so many batches are walked one by one."""

Walk = Callable[[int], "Trace"]


def parse(text: str | None, model: str, inputs: str | None, batches: Sequence[int | None], clashes: dict[str, bool]) -> Sweep | None:
    """The sweep that ``--sweep`` asks for. Raises UsageError for one that cannot be read or that does not go with another option."""
    from modelstat.deploy.sweep import parse_sweep

    if text is None:
        return None
    given = next((name for name, here in clashes.items() if here), None)
    if given or len(batches) > 1:
        raise UsageError(f"--sweep and {given or 'several batches'} do not go together: leave one of them out")
    return parse_sweep(text, model, inputs)


def series(sizes: Sequence[int], swept: Sweep | None, walk: Walk) -> Series:
    """The traces of several batches or lengths. Raises what walking the model raises."""
    from modelstat.deploy.series import BatchSeries, Series, SizeSeries

    if swept is not None:
        return SizeSeries(walk, sizes)
    return BatchSeries(walk) if len(sizes) > FEW else Series(walk)


Walks = Sequence[tuple[str | None, "Series"]]
"""The series of each precision."""


def write(
    found: Walks, sizes: Sequence[int], gpus: Sequence[Gpu], execution: Execution, name: str, depth: int | None,
    change: Callable[[Trace], Trace], out: Output,
) -> None:  # fmt: skip
    """One table a precision and GPU; a GPU without a peak for it is a line."""
    from rich.console import Console
    from rich.text import Text

    from modelstat.report.crossings import text
    from modelstat.report.table import page_width

    console = Console(file=out.stream, highlight=False, width=page_width(out.stream))
    for precision, each in found:
        for _, turns in _found(each, sizes, gpus, execution, depth, change):
            console.print()
            if len(found) > 1:
                console.print(Text(f"precision {precision}"))
            console.print(Text(turns) if isinstance(turns, str) else text(turns, name))


def entries(
    found: Walks, sizes: Sequence[int], gpus: Sequence[Gpu], execution: Execution, name: str, depth: int | None,
    change: Callable[[Trace], Trace],
) -> list[tuple[CrossingsEntry, ...]]:  # fmt: skip
    """For the JSON of every precision and size, in that order: the same entries for all sizes of a precision."""
    from modelstat.report.turns import crossings_entry, no_crossings

    made: list[tuple[CrossingsEntry, ...]] = []
    for _, each in found:
        mine = tuple(
            no_crossings(gpu, name, max(sizes), turns) if isinstance(turns, str) else crossings_entry(turns, name)
            for gpu, turns in _found(each, sizes, gpus, execution, depth, change)
        )
        made.extend([mine] * len(sizes))
    return made


def _found(
    series: Series, sizes: Sequence[int], gpus: Sequence[Gpu], execution: Execution, depth: int | None, change: Callable[[Trace], Trace]
) -> Iterator[tuple[Gpu, Crossings | str]]:
    """The crossings on each GPU, or why there are none."""
    from modelstat.deploy.crossings import crossings

    for gpu in gpus:
        try:
            yield gpu, crossings(series, sizes, gpu, execution, depth=depth, change=change)
        except MissingPeakError as error:
            yield gpu, str(error)
