"""Runs torch for real and writes its ops down, so that formulas meet the names and arguments that torch really uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from modelstat.records import Op, TensorSpec


class Recording(TorchDispatchMode):
    """Collects an Op for every call below autograd."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.ops: list[Op] = []
        self._storages: dict[int, int] = {}
        self._alive: list[Any] = []  # a freed storage would lend its address to another

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        schema = func._schema
        given = dict(zip((argument.name for argument in schema.arguments), args, strict=False)) | (kwargs or {})
        inputs = [(name, self._spec(tensor)) for name, value in given.items() for tensor in tensors(value)]
        result = func(*args, **(kwargs or {}))
        outputs = tuple(self._spec(tensor) for tensor in tensors(result))
        written = tuple(a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write and a.name in given)
        read = {spec.value for _, spec in inputs}
        self.ops.append(
            Op(
                schema.name,
                schema.overload_name,
                tuple(spec for _, spec in inputs),
                tuple(name for name, _ in inputs),
                outputs,
                {name: value for name, value in given.items() if not any(True for _ in tensors(value))},
                view=bool(outputs) and not written and all(spec.value in read for spec in outputs),
                mutates=written,
            )
        )
        return result

    def _spec(self, tensor: torch.Tensor) -> TensorSpec:
        storage = tensor.untyped_storage()
        self._alive.append(storage)
        value = self._storages.setdefault(storage._cdata, len(self._storages))
        return TensorSpec(
            tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), tensor.stride(), value, int(tensor.storage_offset())
        )


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in an argument."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)


def record(call: Callable[..., Any], *arguments: Any) -> tuple[Op, ...]:
    """The ops of one call, without gradients."""
    with torch.no_grad(), Recording() as recording:
        call(*arguments)
    return tuple(op for op in recording.ops if not op.view)
