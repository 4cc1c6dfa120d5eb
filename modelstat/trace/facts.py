"""What is always the same about an op, whatever its arguments."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch

from modelstat.trace.known import CHOICES, FILLS
from modelstat.trace.uneven import PACKED

SILENT = (
    "prim::device", "prim::layout", "aten::sym_", "aten::is_", "aten::size", "aten::stride", "aten::storage_offset", "aten::numel",
    "aten::dim", "aten::_has_same_storage_numel",
)  # fmt: skip
"""Questions about a tensor that start no kernel."""
KERNELS = ("aten::silu_backward", "aten::mish_backward", "aten::native_channel_shuffle")
"""Composite ops that have kernels of their own as well, and do not fall apart."""


class Facts(NamedTuple):
    """What is always the same about an op: ``written`` are the arguments that it may write in place."""

    name: str
    overload: str
    arguments: tuple[str, ...]
    written: tuple[str, ...]
    silent: bool
    composite: bool
    apart: bool
    """Whether it has a way of its own each time: it falls apart, is not written down, or depends on values."""


@cache
def facts_of(func: Any) -> Facts:
    """The facts of an overload of an op, read from its schema and the dispatcher once."""
    whole_name, arguments = func.name(), func._schema.arguments
    name, _, overload = whole_name.partition(".")
    written = tuple(argument.name for argument in arguments if argument.alias_info is not None and argument.alias_info.is_write)
    silent = name.startswith(SILENT)
    whole = silent or name in KERNELS or not torch._C._dispatch_has_kernel_for_dispatch_key(whole_name, "CompositeImplicitAutograd")
    apart = silent or not whole or name in PACKED or func in FILLS or func in CHOICES
    return Facts(name, overload, tuple(argument.name for argument in arguments), written, silent, not whole, apart)
