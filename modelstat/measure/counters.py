"""Other counters, run on a model: fvcore and torch's FlopCounterMode."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from modelstat.errors import MissingExtraError
from modelstat.trace.nested import map_tensors, tensors_in

Ops = dict[str, Counter[str]]
"""Module path -> MACs of each of its own ops, by the counter's name for the op."""


def fvcore_macs(model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Ops, dict[str, set[str]]]:
    """What fvcore counts for each module, and the ops of each module that it says it does not know.

    (It calls them flops, but a MAC is one.) Raises what the model or fvcore's tracing raises, and MissingExtraError without fvcore.
    """
    tensors = tuple(tensor for _, tensor in tensors_in((args, kwargs)))
    with warnings.catch_warnings(), _quiet("fvcore.nn.jit_analysis"):
        warnings.simplefilter("ignore")
        try:
            from fvcore.nn import FlopCountAnalysis
        except ImportError as error:
            raise MissingExtraError("fvcore", "dev", "--crosscheck") from error
        analysis = FlopCountAnalysis(_OnTensors(model, args, dict(kwargs)), tensors)
        analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False).tracer_warnings("none")
        inclusive = {_below(path): counts for path, counts in analysis.by_module_and_operator().items() if _is_below(path)}
        unknown = {path: set(analysis.unsupported_ops("model" + (f".{path}" if path else ""))) for path in inclusive}
    own = _own({path: Counter({op: round(count) for op, count in counts.items()}) for path, counts in inclusive.items()})
    return own, unknown


def flop_counter_macs(model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Ops, dict[str, set[str]]]:
    """What torch's FlopCounterMode counts for each module, halved: it counts 2 a MAC. (It does not say what it does not know.)"""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(*args, **kwargs)
    inclusive: Ops = {}
    for name, counts in counter.get_flop_counts().items():
        path = "" if name == "Global" else name.partition(".")[2]
        if name == "Global" or path:
            inclusive[path] = Counter({str(op).removeprefix("aten."): count // 2 for op, count in counts.items()})
    return _own(inclusive), {}


@contextmanager
def calls_noted(model: nn.Module) -> Iterator[set[str]]:
    """Paths of the modules that are called through their hooks: the only ones that a counter can give anything to."""
    paths = {id(module): path for path, module in model.named_modules()}
    called: set[str] = set()
    hook = nn.modules.module.register_module_forward_pre_hook(lambda module, _: called.add(paths.get(id(module), "")))
    try:
        yield called
    finally:
        hook.remove()


class _OnTensors(nn.Module):
    """A model that takes a flat list of tensors and returns one: what a tracer wants."""

    def __init__(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        super().__init__()
        self.model, self.given = model, (args, kwargs)

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        remaining = iter(tensors)
        args, kwargs = map_tensors(self.given, lambda _: next(remaining))
        return tuple(tensor for _, tensor in tensors_in(self.model(*args, **kwargs)))


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    logger = logging.getLogger(name)
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _is_below(path: str) -> bool:
    return path == "model" or path.startswith("model.")


def _below(path: str) -> str:
    return path.removeprefix("model").removeprefix(".")


def _own(inclusive: Ops) -> Ops:
    """The counts of each module without those of the modules inside it."""
    own: Ops = {path: Counter(counts) for path, counts in inclusive.items()}
    for path, counts in inclusive.items():
        above = nearest(path, inclusive)
        if above is not None:
            own[above].subtract(counts)
    return {path: Counter({op: count for op, count in counts.items() if count}) for path, counts in own.items()}


def nearest(path: str, paths: Iterable[str]) -> str | None:
    """The innermost of ``paths`` that a module lies in."""
    while path:
        path = path.rpartition(".")[0]
        if path in paths:
            return path
    return None
