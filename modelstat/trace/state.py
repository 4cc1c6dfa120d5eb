"""The user's model comes back as it was, also when its forward raises."""

from __future__ import annotations

import logging
import threading
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import nn
from torch._C import _len_torch_dispatch_stack
from torch._ops import _len_torch_dispatch_stack_pre_dispatch
from torch.utils._python_dispatch import _disable_current_modes

from modelstat.trace.nested import DEPTH, attributes_of, copied
from modelstat.trace.randomness import numpy_kept, python_kept

PLAIN_CONTAINERS = frozenset({list, tuple, dict, OrderedDict})
CONTAINERS = frozenset({list, dict, set, OrderedDict, defaultdict, deque})
SIMPLE = frozenset({bool, int, float, str, type(None), torch.dtype, torch.device, types.FunctionType, types.MethodType})
"""What most attributes are: nothing inside is looked for."""


@contextmanager
def preserved(model: nn.Module) -> Iterator[None]:
    """Puts back every attribute, parameter, buffer, hook, flag and class of every submodule, the RNGs and torch's global switches.

    Attributes that are containers get their items back as well, and objects their attributes, so that a list or a cache in which
    forward keeps its activations does not keep ours. Tensors are not copied: whoever runs the model must give it others to write to.
    """
    seen: set[int] = set()
    modules = [(module, type(module), dict(module.__dict__), _contents(module, seen)) for module in model.modules()]
    scripted = [_Scripted(module) for module, *_ in modules if isinstance(module, torch.jit.ScriptModule)]
    with preserved_globals():
        try:
            yield
        finally:
            for module, kind, attributes, contents in modules:
                if type(module) is not kind:
                    module.__class__ = kind
                module.__dict__.clear()
                module.__dict__.update(attributes)
                for container, items in contents:
                    _refill(container, items)
            for module_in_cpp in scripted:
                module_in_cpp.restore()


class _Scripted:
    """The tensors and the mode of a TorchScript module, which live in C++ behind Python's back."""

    def __init__(self, module: Any) -> None:
        self.module, self.training = module, getattr(module, "training", None)
        self.tables = [(table, dict(table.items())) for table in (module._parameters, module._buffers) if type(table) is not dict]

    def restore(self) -> None:
        for table, tensors in self.tables:
            for name, tensor in tensors.items():
                if table[name] is not tensor:
                    table[name] = tensor
        if getattr(self.module, "training", None) is not self.training:
            self.module.training = self.training


_walking = threading.RLock()


@contextmanager
def alone() -> Iterator[None]:
    """One walk at a time, since hooks and torch's switches are the whole process's.

    A walk that is started inside another one is hidden from it.
    """
    with _walking:
        if _len_torch_dispatch_stack() or _len_torch_dispatch_stack_pre_dispatch():
            with _disable_current_modes():
                yield
        else:
            yield


@contextmanager
def uncompiled() -> Iterator[None]:
    """Runs what torch.compile wraps as it was written: ``torch.compiler.set_stance("force_eager")``, in less time than an op takes."""
    from torch._dynamo import eval_frame

    before = eval_frame._stance
    eval_frame._stance = _eager()
    try:
        yield
    finally:
        eval_frame._stance = before


@cache
def _eager() -> Any:
    from torch._dynamo.eval_frame import DynamoStance

    return DynamoStance("force_eager")


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps torch from logging a traceback of its own where a fake run fails: the error says all of it."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


@contextmanager
def preserved_globals() -> Iterator[None]:
    """Puts back torch's switches (:data:`SWITCHES`) and default device, its RNG, Python's, numpy's and those of GPUs in use."""
    rng, python, numpy = torch.get_rng_state(), python_kept(), numpy_kept()
    gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    deterministic = _deterministic()
    switches = [(read(), read, write) for read, write in SWITCHES]
    device = _default_device()
    try:
        yield
    finally:
        torch.set_rng_state(rng)
        if gpus is not None:
            torch.cuda.set_rng_state_all(gpus)
        python()
        numpy()
        if _deterministic() != deterministic:
            torch.use_deterministic_algorithms(deterministic[0], warn_only=deterministic[1])
        for value, read, write in switches:
            if read() != value:
                write(value)
        if _default_device() != device:
            torch.set_default_device(device)


SWITCHES: tuple[tuple[Callable[[], Any], Callable[[Any], Any]], ...] = (
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.is_grad_enabled, torch._C._set_grad_enabled),
    (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    (torch.backends.mha.get_fastpath_enabled, torch.backends.mha.set_fastpath_enabled),
    (torch._C._get_mkldnn_enabled, torch._C._set_mkldnn_enabled),
    (torch._C._get_cudnn_enabled, torch._C._set_cudnn_enabled),
    (torch._C._get_cudnn_benchmark, torch._C._set_cudnn_benchmark),
    (torch._C._get_cudnn_deterministic, torch._C._set_cudnn_deterministic),
    (torch._C._get_float32_matmul_precision, torch._C._set_float32_matmul_precision),
    (torch.backends.cuda.flash_sdp_enabled, torch.backends.cuda.enable_flash_sdp),
    (torch.backends.cuda.mem_efficient_sdp_enabled, torch.backends.cuda.enable_mem_efficient_sdp),
    (torch.backends.cuda.math_sdp_enabled, torch.backends.cuda.enable_math_sdp),
    (torch.backends.cuda.cudnn_sdp_enabled, torch.backends.cuda.enable_cudnn_sdp),
)  # fmt: skip
"""How to read and how to set each of torch's global switches that a forward may turn."""


def _deterministic() -> tuple[bool, bool]:
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


def _default_device() -> torch.device | None:
    """What ``torch.set_default_device`` was given last, None where it was never called."""
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return context.device if context is not None else None


def swap_tensors(model: nn.Module, replace: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Replaces every parameter, buffer and plain tensor attribute (also in plain lists and dicts) of every submodule.

    To be called inside :func:`preserved`, which puts the originals back.
    """
    swapped: dict[int, tuple[Any, Any]] = {}
    for module in model.modules():
        for table in (module._parameters, module._buffers):
            for name, tensor in table.items():
                if tensor is not None:
                    table[name] = replace(tensor)  # type: ignore[assignment]
        for name, value in module.__dict__.items():
            kind = type(value)
            if kind in SIMPLE or (kind in PLAIN_CONTAINERS and not value) or name in ("_parameters", "_buffers", "_modules"):
                continue
            module.__dict__[name] = _swapped(value, replace, swapped, DEPTH)


def _swapped(value: Any, replace: Callable[[torch.Tensor], torch.Tensor], known: dict[int, tuple[Any, Any]], depth: int) -> Any:
    """The value with the tensors inside replaced, in copies of the containers and objects that hold some; otherwise itself."""
    if isinstance(value, torch.Tensor):
        return replace(value)
    kind = type(value)
    attributes = None if kind in PLAIN_CONTAINERS or not depth else attributes_of(value)
    if not attributes and not (kind in PLAIN_CONTAINERS and value):
        return value
    if id(value) in known:
        return known[id(value)][1]
    known[id(value)] = value, value  # for one that holds itself
    made = value
    if attributes is not None:
        inside = {key: _swapped(item, replace, known, depth - 1) for key, item in attributes.items()}
        if any(inside[key] is not item for key, item in attributes.items()):
            made = copied(value, inside)
    elif kind in (list, tuple):
        items = [_swapped(item, replace, known, depth) for item in value]
        if any(one is not other for one, other in zip(items, value, strict=True)):
            made = kind(items)
    else:
        inside = {key: _swapped(item, replace, known, depth) for key, item in value.items()}
        if any(inside[key] is not item for key, item in value.items()):
            made = kind(inside)
    known[id(value)] = value, made
    return made


def _contents(module: nn.Module, seen: set[int]) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    for value in module.__dict__.values():
        kind = type(value)
        if kind in CONTAINERS and not value:
            found.append((value, None))
        elif kind not in SIMPLE:
            _remember(value, found, seen, DEPTH)
    return found


def _remember(value: Any, found: list[tuple[Any, Any]], seen: set[int], depth: int) -> None:
    """Writes down what the containers and objects inside a value hold."""
    if type(value) is tuple:  # which cannot be changed, but what is in it can
        for item in value if not SIMPLE.issuperset(map(type, value)) else ():
            _remember(item, found, seen, depth)
        return
    if type(value) in CONTAINERS:
        if not value:
            found.append((value, None))
            return
        inside = value
    else:
        inside = attributes_of(value) if depth else None
        depth -= 1
    if not inside or id(value) in seen:
        return
    seen.add(id(value))
    found.append((inside, inside.copy()))
    for item in inside.values() if isinstance(inside, dict) else inside:
        if type(item) not in SIMPLE:
            _remember(item, found, seen, depth)


def _refill(container: Any, items: Any) -> None:
    if not items:
        if container:
            container.clear()
    elif isinstance(container, list):
        container[:] = items
    else:
        container.clear()
        (container.extend if isinstance(container, deque) else container.update)(items)
