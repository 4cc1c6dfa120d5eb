"""What is always the same about an op, whatever its arguments."""

from __future__ import annotations

from itertools import count
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
IMPURE = frozenset({torch.Tag.inplace_view, torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape})
"""Tags of ops that change what their arguments are, or whose outputs depend on values."""
IMPURE_NAMES = ("aten::set_", "aten::resize", "aten::_resize", "aten::lift", "aten::_local_scalar")


class Facts(NamedTuple):
    """What is always the same about an op: ``written`` are the arguments that it may write in place."""

    number: int
    """Its own among all ops that were met."""
    name: str
    overload: str
    arguments: tuple[str, ...]
    written: tuple[str, ...]
    silent: bool
    composite: bool
    apart: bool
    """Whether it has a way of its own each time: it falls apart, is not written down, or depends on values."""
    pure: bool
    """Whether shapes, dtypes and arguments decide what it returns, and that is new or lies in its first argument."""


_facts: dict[Any, Facts] = {}
_numbers = count()


def facts_of(func: Any) -> Facts:
    """The facts of an overload of an op, read from its schema and the dispatcher once."""
    facts = _facts.get(func)
    if facts is None:
        facts = _facts[func] = _read(func)
    return facts


def _read(func: Any) -> Facts:
    whole_name, arguments = func.name(), func._schema.arguments
    name, _, overload = whole_name.partition(".")
    written = tuple(argument.name for argument in arguments if argument.alias_info is not None and argument.alias_info.is_write)
    silent = name.startswith(SILENT)
    whole = silent or name in KERNELS or not torch._C._dispatch_has_kernel_for_dispatch_key(whole_name, "CompositeImplicitAutograd")
    apart = silent or not whole or name in PACKED or func in FILLS or func in CHOICES
    names = tuple(argument.name for argument in arguments)
    return Facts(next(_numbers), name, overload, names, written, silent, not whole, apart, _is_pure(func, whole_name))


def _is_pure(func: Any, name: str) -> bool:
    if func.namespace != "aten" or IMPURE & set(func.tags) or name.startswith(IMPURE_NAMES):
        return False
    arguments, returned = func._schema.arguments, [result.alias_info for result in func._schema.returns]
    written = arguments[0].alias_info is not None and arguments[0].alias_info.is_write if arguments else False
    return written or not any(alias is not None and alias.is_write for alias in returned)
