"""The columns of a results file, taken from the structs that are its rows."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

if TYPE_CHECKING:
    import pyarrow as pa


def columns(kind: type[msgspec.Struct]) -> dict[str, type]:
    """Name and Python type (str, int, float or bool) of each column; every one may hold null.

    >>> from modelstat.sweeping.row import Row
    >>> columns(Row)["status"], columns(Row)["macs"]
    (<class 'str'>, <class 'int'>)
    """
    return {name: _plain(hint) for name, hint in get_type_hints(kind).items()}


def _plain(hint: Any) -> type:
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (option for option in get_args(hint) if option is not NoneType)
    if get_origin(hint) is Literal:
        return str
    assert isinstance(hint, type)
    return hint


def arrow_schema(kind: type[msgspec.Struct]) -> pa.Schema:
    """The same columns for Arrow: string, int64, double or bool."""
    import pyarrow as pa

    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    return pa.schema([(name, types[plain]) for name, plain in columns(kind).items()])


def table(rows: Sequence[msgspec.Struct], kind: type[msgspec.Struct]) -> pa.Table:
    """Rows as an Arrow table."""
    import pyarrow as pa

    return pa.table({name: [getattr(row, name) for row in rows] for name in columns(kind)}, schema=arrow_schema(kind))
