"""From a model spec, a source or a module to its trace: out of the cache, or by a walk. Torch is imported only for a walk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from modelstat.errors import InputError, UsageError
from modelstat.sources import parse
from modelstat.trace.cache import TraceCache

if TYPE_CHECKING:
    from pathlib import Path

    from torch import nn

    from modelstat.predict.measured import Row as MeasuredRow
    from modelstat.records import Trace
    from modelstat.serving.phase import Phase
    from modelstat.sources import Source
    from modelstat.sources.source import Built


def trace_spec(
    spec: str,
    inputs: str | None = None,
    batch: int | None = None,
    precision: str | None = None,
    *,
    eval_mode: bool = False,
    training: bool = False,
    channels_last: bool = False,
    phase: Phase | None = None,
    cache: bool = True,
    progress: Callable[[int], None] | None = None,
    folder: Path | None = None,
) -> Trace:
    """The trace of a model spec, from the cache if it is there: then torch is not imported.

    ``inputs``, ``batch`` and ``precision`` are as on the command line; ``eval_mode`` puts a model that its file returns in training
    mode into eval; ``training`` walks the model forward and back, in training mode; ``channels_last`` on images whose channels are
    innermost; ``phase`` walks a language model through a prompt or one token; ``progress`` is told the number of ops while a model is
    walked; a file that the spec names is relative to ``folder`` (default: the working directory).
    Raises SourceError, InputError, UsageError or TraceError.
    """
    source = parse(spec, folder)
    finish = None
    if phase is not None:
        from modelstat.sources.hf_phase import PhaseSource

        source, finish = PhaseSource.of(source, phase), _finishing(phase)
    how = {"eval_mode": eval_mode, "training": training, "channels_last": channels_last}
    return trace_source(source, inputs, batch, precision, **how, cache=cache, progress=progress, finish=finish)


def _finishing(phase: Phase) -> Callable[[Trace], Trace]:
    def finish(trace: Trace) -> Trace:
        from modelstat.serving.walk import finished

        return finished(trace, phase)

    return finish


def trace_source(
    source: Source,
    inputs: str | None = None,
    batch: int | None = None,
    precision: str | None = None,
    *,
    eval_mode: bool = False,
    training: bool = False,
    channels_last: bool = False,
    cache: bool = True,
    progress: Callable[[int], None] | None = None,
    finish: Callable[[Trace], Trace] | None = None,
) -> Trace:
    """The trace of what a source builds, as :func:`trace_spec`; ``finish`` is applied before it is kept."""
    precision = precision or source.precision
    key = trace_key(source, inputs, batch, precision, channels_last)
    key |= {name: True for name, asked in (("eval", eval_mode), ("training", training)) if asked}
    store = TraceCache() if cache else None
    trace = store.get(key) if store is not None else None
    if trace is None:
        from modelstat.trace.capture import capture

        def build(weights: bool) -> Built:
            built = source.build(inputs, batch, weights=weights)
            if eval_mode:
                built.model.eval()
            return built

        def rebuild() -> tuple[nn.Module, tuple[str, ...]]:
            real = build(weights=True)
            return real.model, real.notes

        built = build(weights=False)
        trace = capture(
            built.model,
            built.args,
            built.kwargs,
            model_name=source.spec,
            precision_name=precision,
            batch=built.batch,
            notes=built.notes,
            rebuild=rebuild,
            progress=progress,
            training=training,
            channels_last=channels_last,
        )
        if built.swaps:
            trace = msgspec.structs.replace(trace, swaps=built.swaps)
        if finish is not None:
            trace = finish(trace)
        if store is not None and not _has_user_formula(trace):
            store.put(key, trace)
    return trace


def trace_key(
    source: Source, inputs: str | None, batch: int | None, precision: str | None, channels_last: bool = False
) -> dict[str, Any]:
    """What the trace of a source is stored under, see :class:`modelstat.trace.cache.TraceCache`."""
    layout = {"channels-last": True} if channels_last else {}
    return {**source.key(), "inputs": inputs, "batch": batch, "precision": precision or source.precision, **layout}


def _has_user_formula(trace: Trace) -> bool:
    """A formula lives in one process: a trace that holds its result must not answer another."""
    return any(op.cost is not None for op in trace.ops)


def trace_row(row: MeasuredRow) -> Trace:
    """The trace of a measured row's model, walked as it ran."""
    return trace_spec(row.model, row.input, row.batch, row.precision, channels_last=row.walks_channels_last)


def trace_module(
    model: nn.Module, inputs: Any, kwargs: Mapping[str, Any] | None, precision: str | None, batch: int | None, *,
    training: bool = False, channels_last: bool = False,
) -> Trace:  # fmt: skip
    """The trace of a module in the mode it is in; inputs as :func:`modelstat.analyze` takes them. Nothing is kept."""
    from modelstat.trace.capture import capture

    args, named, batch = module_inputs(model, inputs, kwargs, batch)
    return capture(model, args, named, precision_name=precision, batch=batch, training=training, channels_last=channels_last)


def module_inputs(
    model: nn.Module, inputs: Any, kwargs: Mapping[str, Any] | None, batch: int | None
) -> tuple[tuple[Any, ...], dict[str, Any], int | None]:
    """Positional and named arguments of a module, and the batch that was prepended. Raises InputError without any, UsageError."""
    named = dict(kwargs or {})
    if inputs is None and not named:
        raise InputError(f"{type(model).__name__}: give inputs, a tuple of tensors or the shape of one sample such as '3x224x224'")
    text = shape_text(inputs)
    if text is None:
        if batch is not None:
            raise UsageError(f"batch {batch}: tensors are used as they are, give the shape of one sample instead")
        args = inputs if isinstance(inputs, tuple) else tuple(inputs) if isinstance(inputs, list) else () if inputs is None else (inputs,)
        return args, named, None
    from modelstat.sources.inputs import parse_inputs

    args, from_text, batch = parse_inputs(text).build(batch)
    return args, {**from_text, **named}, batch


def shape_text(inputs: Any) -> str | None:
    """``3x224x224`` for a text or for a sequence of integers, which is one sample's shape; None for tensors."""
    if isinstance(inputs, str):
        return inputs
    if isinstance(inputs, (tuple, list)) and inputs and all(type(size) is int for size in inputs):
        return "x".join(str(size) for size in inputs)
    return None


def spec_inputs(model: str, inputs: Any) -> str | None:
    """The inputs of a model that is named by a spec. Raises InputError for tensors."""
    if inputs is not None and not isinstance(inputs, str):
        raise InputError(f"{model}: inputs of a model spec are given by shape, such as '3x224x224'")
    return inputs
