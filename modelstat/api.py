"""One readable function per verb. Torch is imported only when a model has to be walked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from modelstat.cost.user import formula
from modelstat.errors import InputError, UsageError
from modelstat.given import given_gpus, listed, several
from modelstat.memory.optimizer import check_optimizer
from modelstat.sources import parse
from modelstat.walking import module_inputs, shape_text, spec_inputs, trace_key, trace_module, trace_row, trace_source, trace_spec

if TYPE_CHECKING:
    from torch import nn

    from modelstat.analysis import Analysis
    from modelstat.deploy.parallel import Layout
    from modelstat.hardware.gpu import Gpu
    from modelstat.records import Trace
    from modelstat.report.compare import Comparison
    from modelstat.serving.phase import Phase

__all__ = ["analyze", "compare", "formula", "stat", "swap", "trace_key", "trace_source", "trace_spec"]


def analyze(
    model: nn.Module | str,
    inputs: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    gpu: str | Gpu | Sequence[str | Gpu] | None = None,
    precision: str | None = None,
    batch: int | None = None,
    training: str | None = None,
    mode: str = "eager",
    host: str | float = "typical",
    channels_last: bool = False,
    cuda_graph: bool = False,
    measured: str | None = None,
    phase: Phase | None = None,
    weights: str | None = None,
    activations: str | None = None,
    group: int | None = None,
    plan: str | None = None,
    layout: Layout | None = None,
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
        training: sgd, momentum or adam: also what one step of training with it computes and holds.
        mode: eager or compile, for the predicted times.
        host: fast, typical, slow, or the microseconds that the host needs to issue an op.
        channels_last: images with their channels innermost.
        cuda_graph: one launch for all kernels.
        measured: a time of the same pass on another GPU, ``"12.3ms@rtx-3090"``, or a CSV of several, which corrects the predicted times.
        phase: of a language model's spec, ``modelstat.serving.phase.prefill(2048)`` or ``decode(4096)``.
        weights: int8, int4, fp8 or nf4 weights of convolutions and matrix products.
        activations: int8 or fp8 activations beside them: then they compute in it too.
        group: weights that share a scale; by default all of one output, 128 for int4 and 64 for nf4.
        plan: a YAML file with weights and activations layer by layer, instead of the three above.
        layout: of several GPUs, ``modelstat.deploy.parallel.Layout(tensor=4)``; needs a GPU.

    Raises:
        ModelstatError: one of its kinds, see :mod:`modelstat.errors`; each names the input and the way out.
    """
    from modelstat.analysis import Analysis
    from modelstat.deploy.plan import make_plan
    from modelstat.deploy.quantized import planned
    from modelstat.predict.execution import parse_execution
    from modelstat.predict.measured import correction

    gpus = given_gpus(gpu)
    if layout is not None:
        layout.check()
        if not gpus:
            raise UsageError("a layout needs to know the GPU and its interconnect: give gpu")
    precision_plan = make_plan(weights, activations, group, plan)
    if precision_plan is not None and training is not None:
        raise UsageError("a precision plan is for inference: leave training out")
    execution = parse_execution(mode, str(host), channels_last=channels_last, cuda_graph=cuda_graph)
    if training is not None:
        check_optimizer(training)
    if isinstance(model, str):
        inputs = spec_inputs(model, inputs)
        if kwargs:
            raise InputError(f"{model}: keyword arguments of a model spec are given in inputs, such as 'mask=128:bool'")
        if phase is not None and training:
            raise UsageError(f"{model}: a phase of a language model is no training, leave one of the two out")
        trace = trace_spec(model, inputs, batch, precision, channels_last=execution.walks_channels_last, phase=phase)
        step = trace_spec(model, inputs, batch, precision, training=True) if training else None
    elif phase is not None:
        raise UsageError(f"{type(model).__name__}: a phase is of a model spec such as 'hf:llama', not of a module")
    else:
        trace = trace_module(model, inputs, kwargs, precision, batch, channels_last=execution.walks_channels_last)
        step = trace_module(model, inputs, kwargs, precision, batch, training=True) if training else None
    if precision_plan is not None:
        trace = planned(trace, precision_plan)
    ratio = None
    if measured is not None:
        ratio = correction(measured, trace, execution, trace_row)
    both = (step, training) if step and training else None
    analysis = Analysis.from_trace(trace, gpus, training=both, execution=execution, measured=ratio, layout=layout)
    analysis.require_peak()
    return analysis


def compare(
    *models: nn.Module | str | Analysis,
    inputs: Any = None,
    batch: int | Sequence[int | None] | None = None,
    precision: str | Sequence[str | None] | None = None,
    gpu: str | Gpu | Sequence[str | Gpu] | None = None,
    mode: str = "eager",
    host: str | float = "typical",
    channels_last: bool = False,
    cuda_graph: bool = False,
    eval_mode: bool = False,
    cache: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Comparison:
    """Models against each other, at each batch and precision, on each GPU. Each model is traced once for each batch and precision.

    Args:
        models: at least two of: a spec as on the command line, an nn.Module, an Analysis, and the path of a saved report (``old.json``).
        inputs: as for :func:`analyze`, the same for all; each spec's own by default. An nn.Module needs it.
        batch: one batch or several. Of a saved report, those that it holds.
        precision: as for :func:`analyze`, one or several.
        gpu: as for :func:`analyze`; by default the GPUs that the saved reports and analyses among the models hold.
        mode: as for :func:`analyze`, like the three that follow.
        host: what issues the ops.
        channels_last: images with their channels innermost.
        cuda_graph: one launch for all kernels.
        eval_mode: put a model that its file returns in training mode into eval.
        cache: read traces that are there already, and keep new ones.
        progress: told the number of ops while a model is walked.

    Raises UsageError for fewer than two models and for what a saved report does not hold, InputError for a file that is no report, and
    what :func:`analyze` raises. Among several GPUs or models a missing peak is a row without times.
    """
    from modelstat.predict.execution import parse_execution
    from modelstat.report.compare import Comparison
    from modelstat.report.compare_gather import gather

    execution = parse_execution(mode, str(host), channels_last=channels_last, cuda_graph=cuda_graph)

    last = execution.walks_channels_last

    def trace(model: Any, size: int | None, kind: str | None) -> Trace:
        if isinstance(model, str):
            shape = spec_inputs(model, inputs)
            return trace_spec(model, shape, size, kind, eval_mode=eval_mode, channels_last=last, cache=cache, progress=progress)
        return trace_module(model, inputs, None, kind, size, channels_last=last)

    return Comparison(gather(models, several(batch), several(precision), given_gpus(gpu), execution, trace))


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
    from modelstat.trace.capture import capture

    if query_granularity != 1:
        raise UsageError(f"query_granularity {query_granularity}: only 1 (every layer) is known, use analyze() and its depth instead")
    if isinstance(model, str):
        source = parse(model)
        built = source.build(shape_text(input_size), None, weights=True)
        module, args, kwargs = built.model, built.args, built.kwargs
    else:
        module = model
        args, kwargs = module_inputs(module, input_size, None, None)[:2]
    trace = capture(module, args, kwargs)
    durations = leaf_durations(module, args, kwargs)
    render(torchstat_rows(trace, costs(trace), durations), file or sys.stdout)


def swap(
    model: nn.Module,
    *rules: str,
    where: str | Sequence[str] | None = None,
    skip_stem: bool = False,
    kernel: int | str | Sequence[int | str] | None = None,
    min_channels: int | None = None,
    inputs: Any = None,
    kwargs: Mapping[str, Any] | None = None,
) -> nn.Module:
    """A copy of a model with some of its layers swapped; the model itself stays as it was. The copy can be trained as it is.

    Args:
        model: an nn.Module, with weights or on the meta device.
        rules: what to swap, one after another: ``"conv=ghost"``, ``"conv=ghost(ratio=2,kernel=3)"``, ``"act=relu"``, ...
        where: globs on module paths (``"layer3.*"``); each takes what is below too.
        skip_stem: leave out the first layer that runs.
        kernel: take only convolutions of this size, or of one of these: 3, ``"1x7"``.
        min_channels: take only layers with at least as many channels (features), on both sides.
        inputs: as for :func:`analyze`. Which layer follows which is then known from a run on them, else from torch.fx, which cannot follow
            every forward.
        kwargs: keyword arguments of the forward.

    Raises SwapError for a rule that does not exist, a selection that matches nothing or that no layer takes, and where the order of layers
    is needed and torch.fx does not find it.
    """
    from modelstat.rewrite.plan import plans
    from modelstat.rewrite.selection import from_mapping

    if not rules:
        raise UsageError("swap() needs a rule, such as 'conv=ghost'")
    fields = {"where": listed(where), "skip_stem": skip_stem, "kernel": listed(kernel), "min_channels": min_channels}
    wanted = plans(rules, from_mapping(fields))
    from modelstat.rewrite.flow import TraceFlow
    from modelstat.rewrite.graph import GraphFlow
    from modelstat.rewrite.source import apply
    from modelstat.trace.capture import capture
    from modelstat.trace.copies import own_copy

    given = None if inputs is None and not kwargs else module_inputs(model, inputs, kwargs, None)[:2]
    return apply(own_copy(model), wanted, lambda each: TraceFlow(capture(each, *given)) if given else GraphFlow(each))[0]
