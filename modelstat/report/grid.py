"""A table before it is drawn: columns, rows of raw values and a caption. Every renderer of rows takes one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from modelstat import units

Kind = Literal["text", "shapes", "integer", "count", "bytes", "ratio", "ms", "share", "rate", "bandwidth", "speed", "flag", "figure"]


class Column(msgspec.Struct, frozen=True):
    """One column. ``name`` is what ``--columns`` takes, ``field`` the JSON key and the head of a CSV, ``header`` what a reader sees."""

    name: str
    field: str
    header: str
    kind: Kind
    timed: bool = False
    """There is no value without a GPU."""


class Cell(msgspec.Struct, frozen=True):
    """A value that is not shown as its column shows values: a difference with its sign, a multiple of another row's value."""

    value: Any
    """What a program gets."""
    text: str
    """What a reader sees."""


class Row(msgspec.Struct, frozen=True):
    """One row: raw values in the order of the columns (SI units, times in ms), or Cells.

    ``path`` and ``indent`` place it in the tree of modules; ``strong`` are the indices of the columns whose value is the best one.
    """

    values: tuple[Any, ...]
    path: str = ""
    indent: int = 0
    bound: str | None = None
    total: bool = False
    strong: tuple[int, ...] = ()


class Grid(msgspec.Struct, frozen=True):
    """Columns, rows and the caption without which the numbers cannot be reproduced."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    caption: str
    tree: bool = False
    """Rows are in the order of the module tree, so that indentation shows it."""
    drop: tuple[str, ...] = ()
    """Columns that a reader misses least, where not all fit: the first goes first."""

    def without(self, name: str) -> Grid:
        """The grid without one column."""
        keep = [index for index, column in enumerate(self.columns) if column.name != name]
        rows = tuple(
            msgspec.structs.replace(
                row,
                values=tuple(row.values[index] for index in keep),
                strong=tuple(place for place, index in enumerate(keep) if index in row.strong),
            )
            for row in self.rows
        )
        return msgspec.structs.replace(self, columns=tuple(self.columns[index] for index in keep), rows=rows)


def shape_text(shapes: Sequence[Sequence[int]]) -> str:
    """The first shape, and how many there are besides.

    >>> shape_text([(1, 64, 56, 56)]), shape_text([(2, 3), (4,)]), shape_text([()]), shape_text([])
    ('1x64x56x56', '2x3 +1', 'scalar', '')
    """
    if not shapes:
        return ""
    first = "x".join(str(size) for size in shapes[0]) or "scalar"
    return first if len(shapes) == 1 else f"{first} +{len(shapes) - 1}"


def _milliseconds(value: float) -> str:
    return units.seconds(value / 1e3)


def printable(text: object) -> str:
    r"""Text whose control characters are spelled out: a module's name must not steer the terminal.

    >>> printable("a\x1b[31m")
    'a\\x1b[31m'
    """
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in str(text))


FORMATS: dict[Kind, Callable[[Any], str]] = {
    "text": printable,
    "shapes": shape_text,
    "integer": str,
    "count": units.count,
    "bytes": units.bytes_,
    "ratio": units.ratio,
    "ms": _milliseconds,
    "share": units.percent,
    "rate": units.flops_rate,
    "bandwidth": units.bandwidth,
    "speed": units.per_second,
    "flag": lambda value: "yes" if value else "no",
    "figure": printable,
}


def formatted(column: Column, value: Any) -> str:
    """A value for a reader; ``-`` for one that is unknown or not applicable."""
    if isinstance(value, Cell):
        return value.text
    return "-" if value is None else FORMATS[column.kind](value)


def signed(column: Column, difference: float | None) -> Cell | None:
    """A difference with its sign, None kept.

    >>> signed(Column("macs", "macs", "MACs", "count"), -1500).text
    '-1.50 k'
    """
    if difference is None:
        return None
    text = FORMATS[column.kind](abs(difference))
    return Cell(difference, f"{'+' if difference > 0 else '-'}{text}" if difference else "0")


def multiple(column: Column, value: float | None, base: float | None, *, first: bool) -> Cell | None:
    """A value as a multiple of ``base``, None where that is unknown; the ``first`` row shows the base itself.

    >>> multiple(Column("macs", "macs", "MACs", "count"), 1500, 1000, first=False)
    Cell(value=1.5, text='1.50x')
    """
    if value is None or base is None or (not base and value):
        return None
    ratio = value / base if base else 1.0
    return Cell(ratio, formatted(column, value) if first else f"{units.ratio(ratio)}x")


def compact(text: str) -> str:
    """A formatted quantity in as few characters as keep four digits, for narrow tables.

    >>> compact("118.01 M"), compact("25.56 kB"), compact("12.3 %"), compact("0 s"), compact("+102.3 %")
    ('118.0M', '25.56kB', '12.3%', '0s', '+102%')
    """
    number, space, unit = text.partition(" ")
    if not space:
        return text
    return f"{number[:-1].rstrip('.') if len(number) > 5 and '.' in number else number}{unit}"


def raw(column: Column, value: Any) -> str | int | float | None:
    """A value for a program: numbers unrounded, shapes as text, None kept."""
    if isinstance(value, Cell):
        value = value.value
    if value is None:
        return None
    if column.kind == "shapes":
        return ";".join("x".join(str(size) for size in shape) for shape in value)
    if column.kind == "flag":
        return "yes" if value else "no"
    number: str | int | float = value
    return number
