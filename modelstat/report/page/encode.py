"""The views as JSON for the page: columns instead of records, each text once, numbers to five digits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from modelstat import __version__
from modelstat.report.chart.change import Change
from modelstat.report.chart.palette import BOUND_COLOURS, BOUND_SYMBOLS, SERIES
from modelstat.report.chart.view import View, whole_point
from modelstat.report.chart.window import window

DIGITS = 5


class Strings:
    """A table of texts: each is written once, and named by its place."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        """The place of a text, which is added where it is new."""
        return self._places.setdefault(text, len(self._places))

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts in their places."""
        return tuple(self._places)


def encode(views: Sequence[View], changes: Sequence[Change] = ()) -> str:
    """Everything that the page shows, as JSON text that may stand inside of a script element."""
    strings = Strings()
    document = {
        "version": __version__,
        "views": [_view(view, strings) for view in views],
        "changes": [_rounded(msgspec.structs.asdict(each)) for each in changes],
        "colours": BOUND_COLOURS,
        "symbols": BOUND_SYMBOLS,
        "series": SERIES,
        "strings": strings.texts,
    }
    return script_safe(msgspec.json.encode(document, enc_hook=_builtin).decode())


def script_safe(text: str) -> str:
    r"""JSON whose texts cannot end the element that they stand in.

    >>> print(script_safe('["</script><!--"]'))
    ["\u003c/script\u003e\u003c!--"]
    """
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def columns(records: Sequence[msgspec.Struct], strings: Strings) -> dict[str, list[Any]]:
    """A list for each field of the records: texts by their place, shapes as texts, floats rounded."""
    if not records:
        return {}
    return {name: [_cell(getattr(record, name), strings) for record in records] for name in records[0].__struct_fields__}


def _cell(value: Any, strings: Strings) -> Any:
    if isinstance(value, tuple):
        return strings.place(", ".join("x".join(map(str, shape)) or "scalar" for shape in value))
    return strings.place(value) if isinstance(value, str) else _rounded(value)


def _view(view: View, strings: Strings) -> dict[str, Any]:
    fields = {name: getattr(view, name) for name in view.__struct_fields__}
    tables = {name: columns(fields.pop(name), strings) for name in ("ops", "layers", "transfers", "nodes")}
    memory = fields.pop("memory")
    steps = {"weight_bytes": memory.weight_bytes, "peak": memory.peak, "steps": columns(memory.steps, strings)}
    points = [*view.ops, *view.layers, whole_point(view)]
    frames = {
        "window": _rounded(window([view.device], points)),
        "window_with_transfers": _rounded(window([view.device], [*points, *view.transfers])),
    }
    return {**{name: _rounded(value) for name, value in fields.items()}, **tables, **frames, "memory": steps}


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


def _builtin(value: Any) -> Any:
    return msgspec.to_builtins(value)
