"""Which rows of a comparison stand for the same circumstances, which of them is best, and by how much it differs from the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from modelstat.report.document import Document
from modelstat.report.grid import Column, multiple
from modelstat.report.timing import GpuEntry

Pair = tuple[Document, GpuEntry | None]
"""What one row is drawn from."""
Values = Mapping[int, tuple[Any, ...]]
"""Values in the order of the columns, by the ``id`` of a row's pair."""

LESS_IS_BETTER = frozenset(
    ("params", "macs", "flops", "rw", "held", "whole", "ideal", "upper", "predicted", "low", "high", "sample", "idle", "kernels")
)
MORE_IS_BETTER = frozenset(("throughput",))
MULTIPLES = LESS_IS_BETTER | MORE_IS_BETTER | {"intensity"}
"""Columns that can be told as a multiple of another row's value."""


def circumstances(pair: Pair) -> tuple[int | None, str, str | None]:
    """Batch, precision and GPU."""
    document, gpu = pair
    return document.batch, document.precision, None if gpu is None else gpu.key


def grouped(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Pairs of different models under the same circumstances, in the order in which they first appear.

    A batch, precision or GPU of which every model has just one does not tell groups apart: then it is what is compared, as with two
    saved reports of one model at two precisions.
    """
    by_model: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_model.setdefault(pair[0].model.spec, []).append(pair)
    telling = [place for place in range(3) if any(len({circumstances(pair)[place] for pair in mine}) > 1 for mine in by_model.values())]
    groups: dict[tuple[Any, ...], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(tuple(circumstances(pair)[place] for place in telling), []).append(pair)
    return list(groups.values())


def strongest(groups: Sequence[Sequence[Pair]], columns: Sequence[Column], values: Values) -> dict[int, tuple[int, ...]]:
    """By the ``id`` of a pair, the indices of the columns in which it is the best of its group; none where all are equal."""
    found: dict[int, list[int]] = {id(pair): [] for group in groups for pair in group}
    for index, column in enumerate(columns):
        if column.name not in LESS_IS_BETTER | MORE_IS_BETTER:
            continue
        for group in groups:
            known = [values[id(pair)][index] for pair in group if values[id(pair)][index] is not None]
            if len(set(known)) < 2:
                continue
            best = min(known) if column.name in LESS_IS_BETTER else max(known)
            for pair in group:
                if values[id(pair)][index] == best:
                    found[id(pair)].append(index)
    return {pair: tuple(indices) for pair, indices in found.items()}


def relative(
    groups: Sequence[Sequence[Pair]], columns: Sequence[Column], values: Values
) -> tuple[tuple[Column, ...], dict[int, tuple[Any, ...]]]:
    """Columns and values with each quantity as a multiple of the first model's in the same group, whose own row shows the quantity.

    The fields of such columns end in ``_relative``. A group without the first model has no multiples.
    """
    first = groups[0][0][0].model.spec if groups else ""
    renamed = tuple(
        msgspec.structs.replace(column, field=f"{column.field}_relative") if column.name in MULTIPLES else column for column in columns
    )
    found: dict[int, tuple[Any, ...]] = {}
    for group in groups:
        base = next((values[id(pair)] for pair in group if pair[0].model.spec == first), (None,) * len(columns))
        for pair in group:
            mine = values[id(pair)]
            found[id(pair)] = tuple(
                multiple(column, value, reference, first=mine is base) if column.name in MULTIPLES else value
                for column, value, reference in zip(columns, mine, base, strict=True)
            )
    return renamed, found
