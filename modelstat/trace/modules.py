"""The module tree and the stack of modules that are running."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

import torch
from torch import nn

from modelstat.records import Module
from modelstat.trace.nested import PLAIN, tensors_in
from modelstat.trace.values import shape_of

Shapes = tuple[tuple[int, ...], ...]

SCRIPTED = " (TorchScript)"
"""What follows the type of a module whose calls cannot be seen."""


class _Row:
    """What is learned about one module under one parent path while the model runs."""

    __slots__ = ("calls", "depth", "direct", "first", "instance", "last", "module", "parent", "path")

    def __init__(self, path: str, module: nn.Module, depth: int, parent: int, instance: int) -> None:
        self.path, self.module, self.depth, self.parent, self.instance = path, module, depth, parent, instance
        self.calls = 0
        self.direct = 0
        """Uses of its weights while nothing that holds them was running."""
        self.first: tuple[Shapes, Shapes] | None = None
        self.last: tuple[Shapes, Shapes] | None = None


class ModuleTree:
    """Rows for every module under every parent path, and the row whose forward runs now.

    Torch's global hooks are used, so nothing is written on the model. A module that is called without hooks
    (``self.fc.forward(x)``) is found by the parameter that an op reads: see :meth:`owner_row`.
    """

    def __init__(self, model: nn.Module) -> None:
        self.rows: list[_Row] = []
        self._by_module: dict[int, list[int]] = {}
        self._by_parameter: dict[int, list[int]] = {}
        self._stack: list[tuple[int, int]] = []
        self._read_directly: dict[int, int] = {}
        self._thread = 0
        self.failed_in = ""
        """Path of the module whose forward raised, if one did."""
        self._add("", model, 0, -1, ())

    def _add(self, path: str, module: nn.Module, depth: int, parent: int, above: tuple[int, ...]) -> None:
        index = len(self.rows)
        known = self._by_module.setdefault(id(module), [])
        self.rows.append(_Row(path, module, depth, parent, self.rows[known[0]].instance if known else index))
        known.append(index)
        for name, child in module._modules.items():
            if child is not None and id(child) not in above:
                self._add(f"{path}.{name}" if path else name, unwrapped(child), depth + 1, index, (*above, id(module)))

    def index_parameters(self) -> None:
        """Learns which rows hold which parameter and buffer, by the tensors that are in place now."""
        self._by_parameter.clear()
        for index, row in enumerate(self.rows):
            for tensor in (*row.module._parameters.values(), *row.module._buffers.values()):
                if tensor is not None:
                    self._by_parameter.setdefault(id(tensor), []).append(index)

    def in_torchscript(self) -> list[str]:
        """Paths of the outermost TorchScript modules, which call their submodules out of sight of any hook."""
        scripted = [isinstance(row.module, torch.jit.ScriptModule) for row in self.rows]
        return [row.path for row, here in zip(self.rows, scripted, strict=True) if here and (row.parent < 0 or not scripted[row.parent])]

    def holds(self, tensor: torch.Tensor) -> bool:
        """Whether some module registered this very tensor as parameter or buffer."""
        return id(tensor) in self._by_parameter

    @property
    def current(self) -> tuple[int, int]:
        """Row and call index of the module whose forward runs now; the root outside of any."""
        return self._stack[-1] if self._stack else (0, 0)

    @property
    def is_running(self) -> bool:
        """Whether some module's forward runs now."""
        return bool(self._stack)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Follows the calls of all modules, with hooks that are taken away again."""
        self._thread = get_ident()
        before = nn.modules.module.register_module_forward_pre_hook(self._enter)
        after = nn.modules.module.register_module_forward_hook(self._leave, with_kwargs=True, always_call=True)
        try:
            yield
        finally:
            before.remove()
            after.remove()
            # (The handle forgets this one, and torch takes it for a hook of every module from then on.)
            nn.modules.module._global_forward_hooks_with_kwargs.pop(after.id, None)
            self._stack.clear()

    def _enter(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if get_ident() != self._thread:  # another thread's call of a model: the hooks are the whole process's
            return
        row = self._row_of(module)
        if row is None:
            self._stack.append(self.current)
            return
        self._stack.append((row, self.rows[row].calls))
        self.rows[row].calls += 1

    def _leave(self, module: nn.Module, args: tuple[Any, ...], *rest: Any) -> None:
        # Torch passes (kwargs, output), but the output alone when the forward raised.
        kwargs, output = rest if len(rest) == 2 else ({}, None)
        if not self._stack or get_ident() != self._thread:
            return
        row = self.rows[self._stack.pop()[0]]
        if sys.exc_info()[0] is not None and not self.failed_in:
            self.failed_in = row.path
        if row.module is not module:
            return
        shapes = (*_shapes(args), *_shapes(kwargs)) if kwargs else _shapes(args), _shapes(output)
        if row.first is None:
            row.first = shapes
        row.last = shapes

    def _row_of(self, module: nn.Module) -> int | None:
        """The row of a module that is called now: of its paths, the one that lies deepest below the running module."""
        rows = self._by_module.get(id(module))
        if rows is None or len(rows) == 1:
            return rows[0] if rows else None
        for above, _ in reversed(self._stack):
            prefix = self.rows[above].path
            for row in rows:
                if not prefix or self.rows[row].path.startswith(prefix + "."):
                    return row
        return rows[0]

    def owner_row(self, tensors: list[torch.Tensor], computes: bool) -> tuple[int, int]:
        """Row and call index for an op that reads these parameters.

        It is the running module, unless the op reads a parameter that no module on the stack holds. Then the op belongs to the
        holder. If that is never called, it counts as called each time that one of its parameters (the one seen first) is computed with.
        """
        for tensor in tensors:
            holders = self._by_parameter.get(id(tensor))
            if not holders or (self._stack and self._stack[-1][0] in holders):
                continue
            on_stack = {row for row, _ in self._stack}
            if any(row in on_stack for row in holders):
                continue
            row = self._nearest(holders)
            if computes and self._read_directly.setdefault(row, id(tensor)) == id(tensor):
                self.rows[row].direct += 1
            return row, max((self.rows[row].calls or self.rows[row].direct) - 1, 0)
        return self.current

    def _nearest(self, rows: list[int]) -> int:
        prefix = self.rows[self.current[0]].path
        return next((row for row in rows if not prefix or self.rows[row].path.startswith(prefix + ".")), rows[0])

    def records(self) -> tuple[Module, ...]:
        """The finished rows."""
        return tuple(_record(row, self._has_children(index)) for index, row in enumerate(self.rows))

    def _has_children(self, index: int) -> bool:
        return index + 1 < len(self.rows) and self.rows[index + 1].parent == index


def unwrapped(module: nn.Module) -> nn.Module:
    """The module inside torch.compile's wrapper, DataParallel or DistributedDataParallel."""
    while True:
        inner = module._modules.get("_orig_mod") if type(module).__name__ == "OptimizedModule" else None
        if inner is None and isinstance(module, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
            inner = module._modules.get("module")
        if inner is None:
            return module
        module = inner


def _record(row: _Row, has_children: bool) -> Module:
    first, last = row.first or ((), ()), row.last or ((), ())
    repeated = last if last != first else ((), ())
    return Module(
        path=row.path,
        type=_type_name(row.module),
        depth=row.depth,
        parent=row.parent,
        leaf=not has_children,
        instance=row.instance,
        calls=row.calls or row.direct,
        training=bool(getattr(row.module, "training", False)),
        input_shapes=first[0],
        output_shapes=first[1],
        last_input_shapes=repeated[0],
        last_output_shapes=repeated[1],
        attributes={} if has_children else _attributes(row.module),
    )


def _type_name(module: nn.Module) -> str:
    if isinstance(module, torch.jit.ScriptModule):
        return f"{module.original_name}{SCRIPTED}"
    return type(module).__name__


def _shapes(value: Any) -> Shapes:
    if type(value) in PLAIN:
        return (shape_of(value),)
    if type(value) is tuple and len(value) == 1 and type(value[0]) in PLAIN:
        return (shape_of(value[0]),)
    return tuple(shape_of(tensor) for _, tensor in tensors_in(value))


def _attributes(module: nn.Module) -> dict[str, Any]:
    """Configuration of torch.nn's own layers that is plain data."""
    if not type(module).__module__.startswith("torch.nn."):
        return {}
    plain: dict[str, Any] = {}
    for name, value in module.__dict__.items():
        if name.startswith("_") or name == "training":
            continue
        if isinstance(value, (bool, int, str)) or value is None:
            plain[name] = value
        elif isinstance(value, float):
            plain[name] = value if value == value and abs(value) != float("inf") else str(value)
        elif isinstance(value, tuple) and all(isinstance(item, int) for item in value):
            plain[name] = list(value)
    if "bias" in module._parameters:
        plain["bias"] = module._parameters["bias"] is not None
    return plain
