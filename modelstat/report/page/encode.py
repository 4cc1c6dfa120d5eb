"""The views as JSON for the page: columns instead of records, each text and each column once, numbers to five digits.

What the page can divide itself (rates, shares, intensity) is left out: a thousand points must stay small.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from modelstat import __version__
from modelstat.report.chart.change import Change
from modelstat.report.chart.measured import measured_window
from modelstat.report.chart.palette import BOUND_COLOURS, BOUND_SYMBOLS, SERIES
from modelstat.report.chart.view import View, whole_point
from modelstat.report.chart.window import window

DIGITS = 5


DIVIDED = frozenset({"intensity", "rate", "bandwidth", "bandwidth_share", "share", "transfer"})
"""Fields of a point that follow from the others, and from the view: see ``rows`` in state.js."""

T = TypeVar("T", bound=Hashable)


class Pool(Generic[T]):
    """Values that are written once each and named by their place: texts, and columns that several views share."""

    def __init__(self) -> None:
        self._places: dict[T, int] = {}

    def place(self, value: T) -> int:
        """The place of a value, which is added where it is new."""
        return self._places.setdefault(value, len(self._places))

    @property
    def values(self) -> tuple[T, ...]:
        """All values in their places."""
        return tuple(self._places)


class Tables(msgspec.Struct):
    """What is written once for all views."""

    texts: Pool[str]
    columns: Pool[tuple[Any, ...]]


def encode(views: Sequence[View], changes: Sequence[Change] = ()) -> str:
    """Everything that the page shows, as JSON text that may stand inside of a script element."""
    tables = Tables(Pool(), Pool())
    document = {
        "version": __version__,
        "views": [_view(view, tables) for view in views],
        "changes": [_rounded(msgspec.structs.asdict(each)) for each in changes],
        "colours": BOUND_COLOURS,
        "symbols": BOUND_SYMBOLS,
        "series": SERIES,
        "columns": tables.columns.values,
        "strings": tables.texts.values,
    }
    return script_safe(msgspec.json.encode(document).decode())


def script_safe(text: str) -> str:
    r"""JSON whose texts cannot end the element that they stand in.

    >>> print(script_safe('["</script><!--"]'))
    ["\u003c/script\u003e\u003c!--"]
    """
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _columns(records: Sequence[msgspec.Struct], tables: Tables) -> dict[str, int]:
    """The place of a column for each field of the records: texts by their place, shapes as texts, floats rounded."""
    if not records:
        return {}
    names = [name for name in records[0].__struct_fields__ if name not in DIVIDED]
    return {name: tables.columns.place(tuple(_cell(getattr(record, name), tables.texts) for record in records)) for name in names}


def _cell(value: Any, texts: Pool[str]) -> Any:
    if isinstance(value, tuple):
        return texts.place(", ".join("x".join(map(str, shape)) or "scalar" for shape in value))
    return texts.place(value) if isinstance(value, str) else _rounded(value)


def _view(view: View, tables: Tables) -> dict[str, Any]:
    fields = {name: getattr(view, name) for name in view.__struct_fields__}
    rows = {name: _columns(fields.pop(name), tables) for name in ("ops", "layers", "transfers", "nodes")}
    memory = fields.pop("memory")
    steps = {"weight_bytes": memory.weight_bytes, "peak": memory.peak, "steps": _columns(memory.steps, tables)}
    points = [*view.ops, *view.layers, whole_point(view)]
    frames = {
        "window": _rounded(window([view.device], points)),
        "window_with_transfers": _rounded(window([view.device], [*points, *view.transfers])),
    }
    measured = fields.pop("measured")
    found = None if measured is None else {**_rounded(measured), "frame": _rounded(measured_window(view.device, measured))}
    return {**{name: _rounded(value) for name, value in fields.items()}, **rows, **frames, "memory": steps, "measured": found}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, msgspec.Struct):
        return {name: _rounded(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [_rounded(each) for each in value]
    return value
