"""What to show of a document, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from modelstat.errors import UsageError
from modelstat.report.document import Level
from modelstat.report.grid import Column

T = TypeVar("T")


class Options(msgspec.Struct, frozen=True):
    """What to show. ``columns`` by name, () for the default; ``filter`` is a glob on the path; ``wide`` shows more columns.

    ``depth`` None chooses the deepest tree of at most 50 rows; with ``filter`` all depths, with ``sort`` or ``top`` the modules that
    have no children (a parent would hide what is inside it). ``top`` without ``sort`` keeps those of most predicted time, or of most FLOPs
    without a GPU; ops stay in the order in which they ran. ``relative`` shows the values of each
    model as multiples of the first one's. Raises UsageError for a negative depth and for a top below 1.
    """

    columns: tuple[str, ...] = ()
    depth: int | None = None
    level: Level = "module"
    sort: str | None = None
    top: int | None = None
    filter: str | None = None
    wide: bool = False
    relative: bool = False

    def __post_init__(self) -> None:
        if self.depth is not None and self.depth < 0:
            raise UsageError(f"--depth {self.depth} is negative: give 0 (the total only) or more")
        if self.top is not None and self.top < 1:
            raise UsageError(f"--top {self.top} shows nothing: give at least 1")


DEFAULT = Options()


def ordered(items: Sequence[T], value: Callable[[T], Any], column: Column) -> list[T]:
    """Items by the value of a column: largest first for numbers, alphabetical for text, what has no value last."""
    known = [item for item in items if value(item) is not None]
    unknown = [item for item in items if value(item) is None]
    return sorted(known, key=value, reverse=column.kind not in ("text", "shapes")) + unknown
