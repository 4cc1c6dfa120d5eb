"""One readable function per verb. Torch is imported only when a model has to be walked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from modelstat.cost.user import formula
from modelstat.errors import InputError, UsageError
from modelstat.sources import parse
from modelstat.trace.cache import TraceCache

if TYPE_CHECKING:
    from torch import nn

    from modelstat.analysis import Analysis
    from modelstat.hardware.gpu import Gpu
    from modelstat.records import Trace

__all__ = ["analyze", "formula", "stat", "trace_spec"]


def analyze(
    model: nn.Module | str,
    inputs: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    gpu: str | Gpu | Sequence[str | Gpu] | None = None,
    precision: str | None = None,
    batch: int | None = None,
) -> Analysis:
    """What each layer of a model costs, and what bounds it on a GPU.

    Args:
        model: an nn.Module, which comes back unchanged and is analyzed in the mode it is in; or a spec as on the command line
            (``"resnet50"``, ``"timm:vit_base_patch16_224"``, ``"net.py:build"``, ``"net.yaml"``).
        inputs: a tuple of tensors (one tensor stands for a tuple of one), or a shape as on the command line (``"3x224x224"``, one
            sample). A spec has an input of its own.
        kwargs: keyword arguments of the forward.
        gpu: one GPU or several, by name, definition or record.
        precision: fp32, tf32, fp16, bf16, amp-fp16, amp-bf16; the model's own by default.
        batch: prepended to inputs that are given by shape.

    Raises:
        ModelstatError: one of its kinds, see :mod:`modelstat.errors`; each names the input and the way out.
    """
    from modelstat.analysis import Analysis

    gpus = _gpus(gpu)
    if isinstance(model, str):
        if inputs is not None and not isinstance(inputs, str):
            raise InputError(f"{model}: inputs of a model spec are given by shape, such as '3x224x224'")
        if kwargs:
            raise InputError(f"{model}: keyword arguments of a model spec are given in inputs, such as 'mask=128:bool'")
        trace = trace_spec(model, inputs, batch, precision)
    else:
        trace = _trace_module(model, inputs, kwargs, precision, batch)
    analysis = Analysis.from_trace(trace, gpus)
    analysis.require_peak()
    return analysis


def stat(
    model: nn.Module | str, input_size: Sequence[int] | str | None = None, query_granularity: int = 1, *, file: TextIO | None = None
) -> None:
    """Prints torchstat's table of a model: its columns and its formulas, with the duration of one timed run on the CPU.

    ``input_size`` is one sample, ``(3, 224, 224)``. ``query_granularity`` is accepted as torchstat accepts it; only 1 (every
    layer) is known. For the true costs of the layers that torchstat does not know, and for everything else, see :func:`analyze`.

    Raises UsageError for another granularity, InputError or TraceError where the model does not take the input.
    """
    from modelstat.cost.registry import costs
    from modelstat.measure.durations import leaf_durations
    from modelstat.report.torchstat import render, torchstat_rows

    if query_granularity != 1:
        raise UsageError(f"query_granularity {query_granularity}: only 1 (every layer) is known, use analyze() and its depth instead")
    if isinstance(model, str):
        source = parse(model)
        built = source.build(_shape_text(input_size), None, weights=True)
        module, args, kwargs = built.model, built.args, built.kwargs
    else:
        module = model
        args, kwargs = _inputs(module, input_size, None, None)[:2]
    trace = _capture(module, args, kwargs, None, None)
    durations = leaf_durations(module, args, kwargs)
    render(torchstat_rows(trace, costs(trace), durations), file or sys.stdout)


def trace_spec(
    spec: str,
    inputs: str | None = None,
    batch: int | None = None,
    precision: str | None = None,
    *,
    cache: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Trace:
    """The trace of a model spec, from the cache if it is there: then torch is not imported.

    ``inputs``, ``batch`` and ``precision`` are as on the command line; ``progress`` is told the number of ops while a model is
    walked. Raises SourceError, InputError, UsageError or TraceError.
    """
    source = parse(spec)
    precision = precision or source.precision
    key = {**source.key(), "inputs": inputs, "batch": batch, "precision": precision}
    store = TraceCache() if cache else None
    trace = store.get(key) if store is not None else None
    if trace is None:
        from modelstat.trace.capture import capture

        built = source.build(inputs, batch)
        trace = capture(
            built.model,
            built.args,
            built.kwargs,
            model_name=source.spec,
            precision_name=precision,
            batch=built.batch,
            notes=built.notes,
            rebuild=lambda: source.build(inputs, batch, weights=True).model,
            progress=progress,
        )
        if store is not None and not _has_user_formula(trace):
            store.put(key, trace)
    return trace


def _has_user_formula(trace: Trace) -> bool:
    """A formula lives in one process: a trace that holds its result must not answer another."""
    return any(op.cost is not None for op in trace.ops)


def _trace_module(model: nn.Module, inputs: Any, kwargs: Mapping[str, Any] | None, precision: str | None, batch: int | None) -> Trace:
    args, named, batch = _inputs(model, inputs, kwargs, batch)
    return _capture(model, args, named, precision, batch)


def _capture(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], precision: str | None, batch: int | None) -> Trace:
    from modelstat.trace.capture import capture

    return capture(model, args, kwargs, precision_name=precision, batch=batch)


def _inputs(
    model: nn.Module, inputs: Any, kwargs: Mapping[str, Any] | None, batch: int | None
) -> tuple[tuple[Any, ...], dict[str, Any], int | None]:
    named = dict(kwargs or {})
    if inputs is None and not named:
        raise InputError(f"{type(model).__name__}: give inputs, a tuple of tensors or the shape of one sample such as '3x224x224'")
    text = _shape_text(inputs)
    if text is None:
        if batch is not None:
            raise UsageError(f"batch {batch}: tensors are used as they are, give the shape of one sample instead")
        args = inputs if isinstance(inputs, tuple) else tuple(inputs) if isinstance(inputs, list) else () if inputs is None else (inputs,)
        return args, named, None
    from modelstat.sources.inputs import parse_inputs

    args, from_text, batch = parse_inputs(text).build(batch)
    return args, {**from_text, **named}, batch


def _shape_text(inputs: Any) -> str | None:
    """``3x224x224`` for a text or for a sequence of integers, which is one sample's shape; None for tensors."""
    if isinstance(inputs, str):
        return inputs
    if isinstance(inputs, (tuple, list)) and inputs and all(type(size) is int for size in inputs):
        return "x".join(str(size) for size in inputs)
    return None


def _gpus(gpu: str | Gpu | Sequence[str | Gpu] | None) -> tuple[Gpu, ...]:
    if gpu is None:
        return ()
    from modelstat.hardware.database import resolve

    several = [gpu] if isinstance(gpu, str) or not isinstance(gpu, Sequence) else list(gpu)
    found: list[Gpu] = []
    for one in several:
        found.extend(resolve([one]) if isinstance(one, str) else [one])
    return tuple(found)
