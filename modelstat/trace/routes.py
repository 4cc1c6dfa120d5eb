"""Routes past the dispatcher's own for ops that a walk keeps whole.

A function for each such op lies at a dispatch key that no tensor carries and that torch switches on in its own tests alone, so it is
never called but where a walk includes the key, in its own thread and for its own time: another thread, a scripted function or the
user's own calls before and after take torch's route. The key comes before autograd, autocast, functorch and inference mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

from modelstat.trace.arguments import tensors_of

KEY = "TESTING_ONLY_GenericMode"
AUTOCAST = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}

Route = Callable[[str], Callable[..., Any] | None]

_route: Route | None = None


@contextmanager
def routed(names: tuple[str, ...], route: Route) -> Iterator[None]:
    """Sends calls of the ops named (``lstm.input``), from Python or C++, to the function that ``route`` has for each, in this thread.

    Where it has none, torch's own runs. Autocast has cast what the functions get. Inside functorch's transforms, which follow derivatives
    and batches through the parts of an op, an op falls apart as ever.
    """
    global _route
    before, key = _route, _laid(names)
    included = torch._C._dispatch_tls_is_dispatch_key_included(key)
    _route = route
    torch._C._dispatch_tls_set_dispatch_key_included(key, True)
    try:
        yield
    finally:
        torch._C._dispatch_tls_set_dispatch_key_included(key, included)
        _route = before


def beneath(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls an op on torch's own route."""
    with torch._C._ExcludeDispatchKeyGuard(_key_set()):
        return op(*args, **kwargs)


@cache
def _laid(names: tuple[str, ...]) -> Any:
    """The key, with a function for each op."""
    for name in names:
        _lay(name)
    return _key()


@cache
def _key() -> Any:
    """The key, at which every other op falls through to what comes next."""
    library = torch.library.Library("_", "IMPL")
    library.fallback(torch.library.fallthrough_kernel, KEY)
    _libraries.append(library)
    key = torch._C._dispatch_key_parse(KEY)
    # Ops of higher order (flex attention, cond) have a dispatcher of their own, in Python.
    torch._ops._HIGHER_ORDER_OP_DEFAULT_FALLTHROUGH_DISPATCH_KEYS.append(key)
    for op in torch._ops._higher_order_ops.values():
        op.fallthrough(key)
    return key


@cache
def _key_set() -> Any:
    return torch._C.DispatchKeySet(_key())


def _casts(op: Any, key: str, device: str, arguments: Any) -> bool:
    """Whether autocast of a device has a list that an op is on, and the op works on that device."""
    listed = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key)
    return listed and any(tensor.device.type == device for tensor in tensors_of(arguments))


_libraries: list[torch.library.Library] = []
"""What is laid lasts as long as these."""


@cache
def _lay(name: str) -> None:
    packet, _, overload = name.partition(".")
    op: Any = getattr(getattr(torch.ops.aten, packet), overload or "default")

    def call(*args: Any, **kwargs: Any) -> Any:
        function = _route(name) if _route is not None else None
        if function is None or torch._C._functorch.peek_interpreter_stack() is not None:
            return beneath(op, args, kwargs)
        for device, key in AUTOCAST.items():  # (off, once it has cast and calls again)
            if torch.is_autocast_enabled(device) and _casts(op, key, device, (args, tuple(kwargs.values()))):
                return op.redispatch(torch._C.DispatchKeySet(torch._C._dispatch_key_parse(key)), *args, **kwargs)
        return function(*args, **kwargs)

    library = torch.library.Library("aten", "IMPL")
    library.m.impl(name, KEY, call)  # type: ignore[union-attr]  # without the checks of library.impl, which take milliseconds
    _libraries.append(library)
