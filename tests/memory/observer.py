"""A real run on the CPU, watched by weak references on the storages themselves: an oracle that shares nothing with a trace."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

SILENT = ("prim::", "aten::sym_", "aten::is_")


class Observer(TorchDispatchMode):
    """Counts the bytes of all storages alive after every op.

    An op in ``opaque`` is watched from outside. Without ``statistics``, only the result of a fused attention is watched: what its kernel
    returns beside it is let go at once where there is no backward.
    """

    def __init__(self, opaque: tuple[str, ...] = (), *, statistics: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.live = 0
        self.timeline: list[tuple[str, int]] = []
        self._known: dict[int, Any] = {}
        self._opaque = opaque
        self._statistics = statistics
        self._paused = False

    @property
    def peak(self) -> int:
        return max(size for _, size in self.timeline)

    def watch(self, *values: Any) -> None:
        for value in tree_leaves(values):
            if isinstance(value, Tensor):
                storage = value.untyped_storage()
                key, size = storage._cdata, storage.nbytes()
                if key not in self._known:
                    self.live += size
                    self._known[key] = weakref.finalize(storage, self._let_go, key, size)

    def _let_go(self, key: int, size: int) -> None:
        self.live -= size
        del self._known[key]

    def note(self, name: str, *values: Any) -> None:
        self.watch(*values)
        self.timeline.append((name, self.live))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        outputs = func(*args, **(kwargs or {}))
        name = func.name()
        if not self._paused and not name.startswith(SILENT):
            fused = name.startswith("aten::_scaled_dot_product") and isinstance(outputs, tuple)
            self.note(name, args, kwargs, outputs[0] if fused and not self._statistics else outputs)
        return outputs

    @contextmanager
    def from_outside(self) -> Iterator[None]:
        """Runs the opaque ops without a look inside."""
        library = torch.library.Library("aten", "IMPL")
        try:
            for name in self._opaque:
                library.impl(name, self._whole(name), "AutogradCPU")
            yield
        finally:
            library._destroy()

    def _whole(self, name: str) -> Callable[..., Any]:
        packet, _, overload = name.partition(".")
        op = getattr(getattr(torch.ops.aten, packet), overload)

        def run(*args: Any, **kwargs: Any) -> Any:
            self._paused = True
            try:
                outputs = op.decompose(*args, **kwargs)
            finally:
                self._paused = False
            self.note(f"aten::{name}", args, outputs)
            return outputs

        return run


def observed(model: nn.Module, *inputs: Tensor, opaque: tuple[str, ...] = ()) -> Observer:
    """The model run forward."""
    observer = Observer(opaque, statistics=False)
    observer.watch(list(model.parameters()), list(model.buffers()), inputs)
    with torch.no_grad(), observer.from_outside(), observer:
        outputs = model(*inputs)
    del outputs
    return observer


class Loss(torch.autograd.Function):
    """A loss that computes nothing, and gives every output a gradient of ones."""

    @staticmethod
    def forward(ctx: Any, *outputs: Tensor) -> Tensor:
        ctx.like = [(output.shape, output.dtype) for output in outputs]
        return torch.zeros(())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        return tuple(torch.ones(shape, dtype=dtype) for shape, dtype in ctx.like)


def observed_training(model: nn.Module, *inputs: Tensor) -> Observer:
    """The model run forward and back."""
    observer = Observer(statistics=True)
    observer.watch(list(model.parameters()), list(model.buffers()), inputs)
    one = torch.ones(())
    with observer:
        returned = model(*inputs)
        loss = Loss.apply(*(tensor for tensor in tree_leaves(returned) if tensor.requires_grad))
        torch.autograd.backward(loss, one)
    return observer
