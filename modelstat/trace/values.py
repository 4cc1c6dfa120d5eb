"""Storages as values, with their births and deaths."""

from __future__ import annotations

import weakref
from functools import cache
from typing import Any, Literal, NamedTuple

import torch

from modelstat.errors import TraceError
from modelstat.records import TensorSpec, Value, natural_strides

Kind = Literal["input", "parameter", "buffer", "constant", "activation"]

PARTS = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}  # fmt: skip
"""What a sparse tensor is made of, by its layout."""


class Window(NamedTuple):
    """All of a :class:`~modelstat.records.TensorSpec` but its value."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    offset: int

    def spec(self, value: int) -> TensorSpec:
        """The window on a value."""
        return TensorSpec(self.shape, self.dtype, self.strides, value, self.offset)


class ValueTable:
    """Gives every storage that the run touches an id and watches it with a weak reference, which tells when Python let it go.

    (The last use would say less: Python keeps tensors alive past it.) A storage that is let go between two ops was alive during the
    first of them and not during the second.
    """

    def __init__(self) -> None:
        self.clock = 0
        """Number of ops recorded so far."""
        self._ids: dict[int, int] = {}
        self._rows: list[dict[str, Any]] = []
        self._watches: list[weakref.ref[Any] | None] = []

    def spec(self, tensor: torch.Tensor, kind: Kind = "activation") -> TensorSpec:
        """The tensor as a window on its value; a storage that was not seen before is born now.

        (One of another kind than ``activation`` was there before the first op, unless it is a constant that is let go while the
        model runs: such a one was made there, out of the recorder's sight.)
        """
        shape = shape_of(tensor)
        if tensor.layout in PARTS:
            return self._apart(tensor, shape, kind)
        try:
            strides = natural_strides(shape) if tensor.is_nested else tuple(tensor.stride())
            return self.window(tensor, Window(shape, dtype_name(tensor.dtype), strides, int(tensor.storage_offset())), kind)
        except (RuntimeError, NotImplementedError):
            return self._apart(tensor, shape, kind)

    def _apart(self, tensor: torch.Tensor, shape: tuple[int, ...], kind: Kind) -> TensorSpec:
        """A sparse or opaque tensor, which has no storage of its own."""
        index = self._index(tensor, id(tensor), _parts_bytes(tensor), kind)
        return TensorSpec(shape, dtype_name(tensor.dtype), natural_strides(shape), index)

    def window(self, tensor: torch.Tensor, seen: Window, kind: Kind = "activation") -> TensorSpec:
        """:meth:`spec` of a tensor of which all but its value is known already."""
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        index = self._ids.get(key)
        if index is None or size > self._rows[index]["bytes"]:
            index = self._index(storage, key, size, kind)
        return seen.spec(index)

    def _index(self, handle: Any, key: int, size: int, kind: Kind) -> int:
        index = self._ids.get(key)
        if index is None:
            index = self._ids[key] = len(self._rows)
            self._rows.append({"bytes": int(size), "kind": kind, "birth": self.clock, "death": None, "output": False})
            self._watches.append(self._watch(handle, key, index))
        elif size > self._rows[index]["bytes"]:
            self._rows[index]["bytes"] = int(size)  # resized in place
        return index

    def _watch(self, handle: Any, key: int, index: int) -> weakref.ref[Any] | None:
        def died(_: object) -> None:
            # The address may be given to the next storage, which is another value.
            if self._ids.get(key) == index:
                del self._ids[key]
            self._rows[index]["death"] = max(self.clock - 1, self._rows[index]["birth"])

        return weakref.ref(handle, died)

    def past(self, size: int, death: int) -> int:
        """The id of a value that is born now and that nothing is to watch: when it is let go is known."""
        self._rows.append({"bytes": size, "kind": "activation", "birth": self.clock, "death": death, "output": False})
        self._watches.append(None)
        return len(self._rows) - 1

    def size_and_death(self, index: int) -> tuple[int, int | None]:
        """Bytes of a value, and the last op that it was alive in, None if it still is."""
        row = self._rows[index]
        return row["bytes"], row["death"]

    def index(self, tensor: torch.Tensor) -> int | None:
        """The id of a tensor's value, if it has one."""
        return self._ids.get(memory_of(tensor))

    def mark_output(self, tensor: torch.Tensor) -> None:
        """The model returns this tensor."""
        index = self.index(tensor)
        if index is not None:
            self._rows[index]["output"] = True

    def is_output(self, index: int) -> bool:
        """Whether the model returns this value."""
        return bool(self._rows[index]["output"])

    def records(self) -> tuple[Value, ...]:
        """The finished table: what was not let go lives to the end."""
        self._watches.clear()
        for row in self._rows:
            made_inside = row["kind"] == "activation" or (row["kind"] == "constant" and row["death"] is not None)
            if not made_inside:
                row["birth"] = -1
            if not made_inside or row["death"] is None:
                row["death"] = self.clock
        return tuple(Value(**row) for row in self._rows)


def memory_of(tensor: torch.Tensor) -> int:
    """What tells the memory of one tensor from that of another, as long as both live; a sparse or opaque one stands for itself."""
    if tensor.layout in PARTS:  # (asking one costs as much as recording an op)
        return id(tensor)
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):
        return id(tensor)


def window_of(tensor: torch.Tensor) -> Window:
    """What a dense tensor covers of its value."""
    return Window(tuple(tensor.shape), dtype_name(tensor.dtype), tensor.stride(), int(tensor.storage_offset()))


def shape_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """The sizes of a tensor. Of a nested one, those of its sequences laid end to end, ``(total, channels)``."""
    if not tensor.is_nested:
        return tuple(tensor.shape)
    rows = tensor._nested_tensor_size().tolist()
    if len({tuple(row[1:]) for row in rows}) == 1:
        return (sum(row[0] for row in rows), *rows[0][1:])
    raise TraceError("a nested tensor with several uneven axes: make it with layout=torch.jagged, whose work can be counted")


@cache
def dtype_name(dtype: torch.dtype) -> str:
    """``float32`` for torch.float32."""
    return str(dtype).removeprefix("torch.")


def _parts_bytes(tensor: torch.Tensor) -> int:
    """Bytes of a sparse tensor: its values and its indices."""
    parts = [getattr(tensor, name)() for name in PARTS.get(tensor.layout, ())]
    return sum(part.numel() * part.element_size() for part in parts)
