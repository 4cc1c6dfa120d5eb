"""CUDA's autocast on the CPU.

A backward can only be walked on the CPU where there is no GPU, and autocast has lists of its own for the CPU: it leaves softmax and the
norms in half precision, for instance, which CUDA's casts up. For the time of one trace the CPU's autocast is told to follow CUDA's
lists. Which ops are on either list, the dispatcher knows; which way CUDA casts, the two tables below.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

DOWN = frozenset({
    "addmv", "addr", "mv", "prelu", "chain_matmul", "linalg_multi_dot", "einsum", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell",
    "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell", "_convolution", "convolution",
})  # fmt: skip
"""Ops that CUDA runs in half precision and the CPU's autocast does not know."""
WIDEST = frozenset({
    "addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sampler", "index_put", "tensordot", "scatter_add",
})  # fmt: skip
"""Ops that CUDA runs in the widest dtype of their inputs. What is in neither table, CUDA runs in float32."""
SAME = ("conv1d.padding", "conv2d.padding", "conv3d.padding", "_native_multi_head_attention", "mkldnn_rnn_layer")
"""Ops on the CPU's list alone that lead to ones that are on both."""
HALF = (torch.float16, torch.bfloat16)


@contextmanager
def cuda_lists(device: str, dtype: torch.dtype | None) -> Iterator[None]:
    """Makes the CPU's autocast to ``dtype`` follow CUDA's lists; nothing to do on another device or without autocast."""
    if dtype is None or device != "cpu":
        yield
        return
    library = torch.library.Library("aten", "IMPL")
    try:
        with warnings.catch_warnings():
            # What is overridden comes back with the library's end.
            warnings.simplefilter("ignore")
            for name in torch._C._dispatch_get_all_op_names():
                rule = _rule(name, dtype)
                if rule is not None:
                    base, _, overload = name.removeprefix("aten::").partition(".")
                    op = getattr(getattr(torch.ops.aten, base), overload or "default")
                    library.impl(op, _casting(op, rule), "AutocastCPU", allow_override=True)
        yield
    finally:
        library._destroy()


Rule = Callable[[list[torch.dtype]], "torch.dtype | None"]
"""The dtype to cast to, from those of the floating-point inputs; None: as they are."""


def _rule(name: str, dtype: torch.dtype) -> Rule | None:
    """How CUDA casts the inputs of an op; None where the CPU does the same, or neither casts."""
    short = name.removeprefix("aten::")
    if not name.startswith("aten::") or short in SAME:
        return None
    on_cpu, on_cuda = (torch._C._dispatch_has_kernel_for_dispatch_key(name, f"Autocast{device}") for device in ("CPU", "CUDA"))
    base = short.partition(".")[0]
    if base in WIDEST and on_cuda:
        return _widest
    if on_cpu and not on_cuda:
        return lambda _: None
    if on_cuda and not on_cpu:
        return (lambda _: dtype) if base in DOWN else (lambda _: torch.float32)
    return None


def _widest(dtypes: list[torch.dtype]) -> torch.dtype | None:
    return torch.float32 if torch.float32 in dtypes else None


def _casting(op: Any, rule: Rule) -> Callable[..., Any]:
    key = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)

    def run(*args: Any, **kwargs: Any) -> Any:
        found: list[torch.dtype] = []
        tree_map(lambda item: found.append(item.dtype) if isinstance(item, Tensor) else None, (args, kwargs))
        wanted = rule(found)

        def cast(item: Any) -> Any:
            takes = isinstance(item, Tensor) and wanted is not None and item.dtype in (*HALF, torch.float32)
            return item.to(wanted) if takes else item

        with torch._C._ExcludeDispatchKeyGuard(key):
            return op(*tree_map(cast, args), **tree_map(cast, kwargs))

    return run
