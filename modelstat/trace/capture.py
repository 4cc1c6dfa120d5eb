"""A model becomes a trace: walked once, without values where that is enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from torch import Tensor, nn

from modelstat import collector
from modelstat.errors import ModelstatError, TraceError
from modelstat.records import TRACE_SCHEMA, Input, Trace
from modelstat.trace.composites import WHOLE, Composites
from modelstat.trace.conversion import replaceable_tensors
from modelstat.trace.copies import own_copy
from modelstat.trace.failures import described, needs_values
from modelstat.trace.fakes import Fakes, laid_out, materialize
from modelstat.trace.lazy import is_lazy
from modelstat.trace.listed import readable_tensors
from modelstat.trace.modules import ModuleTree, unwrapped
from modelstat.trace.names import input_names
from modelstat.trace.nested import map_tensors, tensors_in
from modelstat.trace.parameters import parameter_records, registered
from modelstat.trace.precision import Precision, autocast, is_mixed, own_precision, precision
from modelstat.trace.recorder import Recorder
from modelstat.trace.routes import routed
from modelstat.trace.state import alone, preserved, quiet, swap_tensors, uncompiled
from modelstat.trace.uneven import jagged_attention_kept_whole
from modelstat.trace.values import dtype_name, memory_of, shape_of

Progress = Callable[[int], None]
Rebuild = Callable[[], tuple[nn.Module, tuple[str, ...]]]
"""The model again with real weights, and notes: a model too large for that may come back with fewer layers."""


@alone()
def capture(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    model_name: str | None = None,
    precision_name: str | None = None,
    batch: int | None = None,
    notes: Sequence[str] = (),
    rebuild: Rebuild | None = None,
    progress: Progress | None = None,
    training: bool = False,
    channels_last: bool = False,
) -> Trace:
    """Walks ``model(*args, **kwargs)`` once and returns its trace.

    Tensors may be real or on the meta device: in a fake run only their shape and dtype count. Where the model's control flow
    needs values, it runs for real on the CPU: on a copy of the model, or on what ``rebuild`` returns if its weights are not
    allocated. The model is left as it was, also when it raises.

    ``precision_name`` is one of :data:`modelstat.trace.precision.PRECISIONS`, by default the model's own. ``training`` walks the model
    in training mode and back again, see :mod:`modelstat.trace.training`. ``channels_last`` walks it as after
    ``model.to(memory_format=torch.channels_last)``, on such images.
    Raises TraceError if the model raises, in one line that names the module and the cause.
    """
    model = unwrapped(model)
    args, kwargs = tuple(args), dict(kwargs or {})
    inputs = [tensor for _, tensor in tensors_in((args, kwargs), unwrap=False)]
    weights = registered(model)
    if any(map(is_lazy, weights)):
        model = _shaped(model, args, kwargs)
        weights = registered(model)
    name = precision_name or own_precision(weights, inputs)
    kind = _Run
    if training:
        from modelstat.trace.training import TrainingRun

        kind = TrainingRun
    chosen = precision(name)
    if precision_name is None and (is_mixed(weights) or any(getattr(type(module), "casts_its_input", False) for module in model.modules())):
        chosen = chosen._replace(dtype=None)
    run = kind(model, args, kwargs, model_name or type(model).__name__, chosen, batch, tuple(notes), progress)
    run.channels_last = channels_last
    given = [*weights, *inputs]
    if any(tensor.layout != torch.strided or tensor.is_nested for tensor in given):
        return run.real(rebuild, "the work of sparse and nested tensors depends on their values")
    failure: Exception | None = None
    for device in run.devices():
        try:
            return run.fake(device)
        except ModelstatError:
            raise
        except Exception as error:
            failure = error
    assert failure is not None
    if needs_values(failure):
        if any(tensor.is_meta for tensor in given):
            with suppress(Exception):
                return run.assumed()
        return run.real(rebuild, "its forward needs values")
    raise TraceError(described(run.label, failure, run.tree)) from failure


class _Run:
    """One model and its inputs, to be walked in one way or another."""

    def __init__(
        self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], name: str, chosen: Precision, batch: int | None,
        notes: tuple[str, ...], progress: Progress | None,
    ) -> None:  # fmt: skip
        self.model, self.args, self.kwargs, self.name, self.precision = model, args, kwargs, name, chosen
        self.batch, self.notes, self.progress = batch, notes, progress
        self.assumes = self.channels_last = False
        self.tree = ModuleTree(model)

    @property
    def label(self) -> str:
        """What an error calls the model."""
        return self.name

    def devices(self) -> tuple[str, ...]:
        """The devices to pretend to be on, in this order: autocast follows CUDA's lists on CUDA only."""
        return ("cuda", "cpu") if self.precision.autocast is not None else ("cpu",)

    def recorder(self, **options: Any) -> Recorder:
        """What writes the ops down."""
        return Recorder(self.tree, progress=self.progress, **options)

    def call(self, model: nn.Module, recorder: Recorder, args: tuple[Any, ...], kwargs: dict[str, Any], device: str) -> Any:
        """Calls the model, and returns its outputs."""
        with torch.no_grad(), autocast(device, self.precision.autocast), self.tree.running(), recorder:
            return model(*args, **kwargs)

    def fake(self, device: str) -> Trace:
        """On tensors without values."""
        notes: tuple[str, ...] = ()
        if self.precision.autocast is not None and device != self.devices()[0]:
            notes = ("autocast follows the CPU's lists of ops: the model cannot be walked on a fake GPU here",)
        fakes = Fakes(device, self.precision.dtype, self.channels_last)
        if self.assumes:
            fakes.known.assumes = True
            notes = (*notes, "the choice of experts was assumed to be spread evenly: its values are not known")
        self.tree = ModuleTree(self.model)
        # When the collector runs is chance, and what it frees would die at another op in every trace.
        with preserved(self.model), quiet(), collector.paused(), replaceable_tensors(), readable_tensors():
            swap_tensors(self.model, fakes.cast)
            args, kwargs = map_tensors((self.args, self.kwargs), fakes.given)
            recorder = self.recorder(real=False, device=device, adopt=fakes.keep, known=fakes.known, memo=fakes.memo)
            with fakes.mode:
                trace = self._walk(self.model, recorder, args, kwargs, device, fakes.storage_of, fakes.trains, notes)
        fakes.done()
        return trace

    def assumed(self) -> Trace:
        """On tensors without values, where a router's choice of experts is assumed to be even. Raises what the model raises."""
        self.assumes = True
        return self.fake(self.devices()[-1])

    def real(self, rebuild: Rebuild | None, why: str) -> Trace:
        """On the CPU with values: the model's own weights if they are there, else seeded random ones."""
        weights = "random weights" if any(tensor.is_meta for tensor in registered(self.model)) else "its own weights"
        note = f"{self.name} ran for real on the CPU with {weights}: {why}"
        notes: tuple[str, ...] = (note,)
        with preserved(self.model):
            torch.default_generator.manual_seed(0)  # torch.manual_seed would seed each GPU that is used later
            if weights == "random weights" and rebuild is not None:
                made, remarks = rebuild()
                model, notes = unwrapped(made), (note, *(remark for remark in remarks if remark not in self.notes))
            elif weights == "random weights":
                model = _with_random_weights(self.model)
            else:
                model = own_copy(self.model)
            if self.precision.dtype is not None and self.precision.name != own_precision(model.parameters(), ()):
                model = model.to(self.precision.dtype)
            args, kwargs = map_tensors((self.args, self.kwargs), lambda tensor: materialize(tensor, self.precision.dtype))
            if self.channels_last:
                args, kwargs = map_tensors((args, kwargs), laid_out)
                for tensor in (*model.parameters(), *model.buffers()):
                    tensor.data = laid_out(tensor.data)
            self.tree = ModuleTree(model)
            recorder = self.recorder(real=True)
            try:
                return self._walk(model, recorder, args, kwargs, "cpu", memory_of, _own_flag, notes)
            except ModelstatError:
                raise
            except Exception as error:
                raise TraceError(described(self.label, error, self.tree)) from error

    def _walk(
        self, model: nn.Module, recorder: Recorder, args: tuple[Any, ...], kwargs: dict[str, Any], device: str,
        storage_of: Callable[[Tensor], int], trains: Callable[[Tensor], bool], notes: tuple[str, ...],
    ) -> Trace:  # fmt: skip
        tree = self.tree
        tree.index_parameters()
        for tensor in registered(model):
            recorder.values.spec(tensor, "parameter" if isinstance(tensor, nn.Parameter) else "buffer")
        given = input_names(model, args, kwargs)  # before the call: forward may add to a cache that it is given
        for _, tensor in given:
            recorder.values.spec(tensor, "input")
        torch.backends.mha.set_fastpath_enabled(False)
        jagged = jagged_attention_kept_whole(recorder) if recorder.real else nullcontext()  # no fake tensor is nested
        with uncompiled(), routed(WHOLE, Composites(recorder).of), jagged:
            outputs = self.call(model, recorder, args, kwargs, device)
        returned = list(tensors_in(outputs))
        for _, tensor in returned:
            recorder.values.mark_output(tensor)
        return Trace(
            schema=TRACE_SCHEMA,
            model=self.name,
            inputs=tuple(Input(name, shape_of(tensor), dtype_name(tensor.dtype)) for name, tensor in given),
            outputs=tuple(shape_of(tensor) for _, tensor in returned),
            batch=self.batch,
            precision=self.precision.name,
            run="real" if recorder.real else "fake",
            training=bool(getattr(model, "training", False)),
            layout="channels-last" if self.channels_last else "natural",
            modules=tree.records(),
            parameters=parameter_records(tree, recorder.values.index, storage_of, trains),
            values=recorder.values.records(),
            ops=recorder.records(),
            notes=(*self.notes, *notes, *torchscript_notes(self.name, tree)),
            versions=versions(),
        )


def torchscript_notes(name: str, tree: ModuleTree) -> list[str]:
    """What a reader must know about TorchScript modules: no hook sees the calls inside."""
    paths = tree.in_torchscript()
    if not paths:
        return []
    inside = "an op inside belongs to the submodule whose parameter it reads, or to it"
    return [f"{', '.join(path or name for path in paths)} is TorchScript: {inside}"]


@cache
def _installed() -> dict[str, str]:
    """Versions of what a trace depends on: read once, since each takes a millisecond to look up."""
    found = {"torch": str(torch.__version__)}
    for package in ("torchvision", "timm", "transformers"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def versions() -> dict[str, str]:
    """Versions of what a trace depends on."""
    return dict(_installed())


def _shaped(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> nn.Module:
    """A copy of a model with lazy parameters, after the first call that gives them their shapes."""
    with preserved(model), torch.no_grad():
        shaped = own_copy(model)
        given, named = map_tensors((args, kwargs), lambda tensor: materialize(tensor, None))
        tree = ModuleTree(shaped)
        try:
            with tree.running():
                shaped(*given, **named)
        except Exception as error:
            raise TraceError(described(type(model).__name__, error, tree)) from error
    return shaped


def _own_flag(tensor: Tensor) -> bool:
    return tensor.requires_grad


def _with_random_weights(model: nn.Module) -> nn.Module:
    """A copy of a model on the meta device, filled by its layers' own initialisation."""
    model = own_copy(model).to_empty(device="cpu")
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.is_floating_point():
            nn.init.normal_(tensor.detach(), std=0.02)
        else:
            tensor.detach().zero_()
    for module in model.modules():
        reset = getattr(module, "reset_parameters", None)
        if callable(reset):
            reset()
    return model
