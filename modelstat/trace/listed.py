"""What Python code reads of tensors without values, below the dispatcher: lists of them, and texts with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor


@contextmanager
def readable_tensors() -> Iterator[None]:
    """Lets ``torch.tensor`` and ``torch.as_tensor`` take lists of fake tensors, and an f-string show the number in one.

    Torch reads the elements of a list where a fake tensor has no memory. They are asked for their values before that, which fails in
    the usual way where these are not known.
    """
    tensor, as_tensor = torch.tensor, torch.as_tensor
    own_format = FakeTensor.__dict__.get("__format__")

    def from_list(data: Any, *args: Any, **kwargs: Any) -> Any:
        return tensor(_read(data), *args, **kwargs)

    def as_from_list(data: Any, *args: Any, **kwargs: Any) -> Any:
        return as_tensor(_read(data), *args, **kwargs)

    torch.tensor, torch.as_tensor = from_list, as_from_list
    FakeTensor.__format__ = _formatted  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        torch.tensor, torch.as_tensor = tensor, as_tensor
        if own_format is None:
            del FakeTensor.__format__
        else:
            FakeTensor.__format__ = own_format  # type: ignore[method-assign]


def _read(data: Any) -> Any:
    if type(data) in (list, tuple):
        return [item.tolist() if isinstance(item, FakeTensor) else _read(item) for item in data]
    return data


def _formatted(self: FakeTensor, spec: str) -> str:
    if self.dim() == 0:
        try:
            return format(self.item(), spec)
        except Exception:  # a value that is not known: the text may only be that of an error
            return object.__format__(self, spec)
    return object.__format__(self, spec)
