"""Higher-order ops: their arguments are functions, and they have no schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch._ops import HigherOrderOperator
from torch.utils._python_dispatch import _disable_current_modes

if TYPE_CHECKING:
    from modelstat.trace.recorder import Recorder


def is_higher_order(func: Any) -> bool:
    """Whether an op takes functions as arguments."""
    return isinstance(func, HigherOrderOperator)


def run_higher_order(recorder: Recorder, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Runs a higher-order op and records it as one.

    Flex attention is kept whole, like every other attention. ``cond`` on a known predicate is the branch that it takes. Any other one is
    recorded by its name, and has no formula.
    """
    name = func.name()
    if name == "cond" and len(args) >= 4 and (branch := _branch(recorder, args)) is not None:
        with recorder:
            return branch(*args[3])
    with recorder.suspended():
        outputs = func(*args, **kwargs)
    tensors = [item for item in (outputs if isinstance(outputs, (list, tuple)) else (outputs,)) if isinstance(item, Tensor)]
    if name == "flex_attention":
        query, key, value, _, _, scale = args[:6]
        arguments = {"scale": scale, "enable_gqa": query.shape[-3] != key.shape[-3]}
        recorder.record("modelstat::flex_attention", {"query": query, "key": key, "value": value}, tensors, arguments)
    else:
        given = {f"operand{index}": item for index, item in enumerate(args)}
        recorder.record(f"higher_order::{name}", {**given, **kwargs}, tensors, {})
    return outputs


def _branch(recorder: Recorder, args: tuple[Any, ...]) -> Any:
    """The function that ``cond(predicate, true, false, operands)`` calls, if the predicate is known."""
    predicate: Any = args[0]
    if isinstance(predicate, Tensor):
        predicate = recorder.known.value(predicate) if recorder.known is not None else predicate
        if predicate is None:
            return None
    with _disable_current_modes():
        return args[1] if bool(predicate) else args[2]
