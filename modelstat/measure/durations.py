"""How long each leaf module's forward takes on this machine, in one run, as torchstat measures it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from modelstat.errors import InputError, TraceError
from modelstat.trace.fakes import materialize
from modelstat.trace.modules import ModuleTree, unwrapped
from modelstat.trace.nested import map_tensors
from modelstat.trace.state import preserved, swap_tensors


def leaf_durations(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> dict[int, float]:
    """Seconds of each leaf module's last call, by the index of its row in the trace's modules.

    The model runs once on the CPU with its own weights, in the mode it is in, without gradients; meta inputs become random ones.
    Raises InputError for a model whose weights are not allocated, TraceError if it raises.
    """
    model = unwrapped(model)
    if any(tensor.is_meta for tensor in (*model.parameters(), *model.buffers())):
        raise InputError(f"{type(model).__name__}: a timed run needs weights, and this model is on the meta device")
    tree = ModuleTree(model)
    rows = {id(row.module): index for index, row in reversed(list(enumerate(tree.rows)))}
    started: list[float] = []
    seconds: dict[int, float] = {}

    def enter(module: nn.Module, _: Any) -> None:
        started.append(time.perf_counter())

    def leave(module: nn.Module, _args: Any, _output: Any) -> None:
        elapsed = time.perf_counter() - started.pop()
        row = rows.get(id(module))
        if row is not None and not module._modules:
            seconds[row] = elapsed

    with preserved(model), torch.no_grad():
        torch.default_generator.manual_seed(0)
        buffers = {id(tensor) for tensor in model.buffers()}
        swap_tensors(model, lambda tensor: tensor.clone() if id(tensor) in buffers else tensor)
        given, named = map_tensors((tuple(args), dict(kwargs or {})), lambda tensor: materialize(tensor, None))
        before = nn.modules.module.register_module_forward_pre_hook(enter)
        after = nn.modules.module.register_module_forward_hook(leave)
        try:
            model(*given, **named)
        except Exception as error:
            text = " ".join(str(error).split())
            raise TraceError(f"{type(model).__name__} raised in the timed run: {type(error).__name__}: {text}") from error
        finally:
            before.remove()
            after.remove()
    return seconds
