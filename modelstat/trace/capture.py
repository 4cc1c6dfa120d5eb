"""A model becomes a trace: walked once, without values where that is enough."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from torch import Tensor, nn

from modelstat.errors import ModelstatError, TraceError
from modelstat.records import TRACE_SCHEMA, Input, Trace
from modelstat.trace.composites import kept_whole
from modelstat.trace.failures import described, needs_values
from modelstat.trace.fakes import Fakes, materialize
from modelstat.trace.lazy import is_lazy
from modelstat.trace.modules import ModuleTree, unwrapped
from modelstat.trace.names import input_names
from modelstat.trace.nested import map_tensors, tensors_in
from modelstat.trace.parameters import parameter_records
from modelstat.trace.precision import Precision, autocast, own_precision, precision
from modelstat.trace.recorder import Recorder
from modelstat.trace.state import preserved, quiet, swap_tensors
from modelstat.trace.values import dtype_name

Progress = Callable[[int], None]


def capture(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    model_name: str | None = None,
    precision_name: str | None = None,
    batch: int | None = None,
    notes: Sequence[str] = (),
    rebuild: Callable[[], nn.Module] | None = None,
    progress: Progress | None = None,
) -> Trace:
    """Walks ``model(*args, **kwargs)`` once and returns its trace.

    Tensors may be real or on the meta device: in a fake run only their shape and dtype count. Where the model's control flow
    needs values, it runs for real on the CPU: on a copy of the model, or on what ``rebuild`` returns if its weights are not
    allocated. The model is left as it was, also when it raises.

    ``precision_name`` is one of :data:`modelstat.trace.precision.PRECISIONS`, by default the model's own.
    Raises TraceError if the model raises, in one line that names the module and the cause.
    """
    model = unwrapped(model)
    args, kwargs = tuple(args), dict(kwargs or {})
    name = precision_name or own_precision(model, (tensor for _, tensor in tensors_in((args, kwargs))))
    if any(is_lazy(tensor) for tensor in (*model.parameters(), *model.buffers())):
        model = _shaped(model, args, kwargs)
    run = _Run(model, args, kwargs, model_name or type(model).__name__, precision(name), batch, tuple(notes), progress)
    if any(tensor.layout != torch.strided for _, tensor in (*_tensors_of(model), *tensors_in((args, kwargs)))):
        return run.real(rebuild, "the work of sparse tensors depends on their values")
    failure: Exception | None = None
    for device in ("cuda", "cpu") if run.precision.autocast is not None else ("cpu",):
        try:
            return run.fake(device)
        except ModelstatError:
            raise
        except Exception as error:
            failure = error
    assert failure is not None
    if needs_values(failure):
        return run.real(rebuild, "its forward needs values")
    raise TraceError(described(run.name, failure, run.tree)) from failure


class _Run:
    """One model and its inputs, to be walked in one way or another."""

    def __init__(
        self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], name: str, chosen: Precision, batch: int | None,
        notes: tuple[str, ...], progress: Progress | None,
    ) -> None:  # fmt: skip
        self.model, self.args, self.kwargs, self.name, self.precision = model, args, kwargs, name, chosen
        self.batch, self.notes, self.progress = batch, notes, progress
        self.tree = ModuleTree(model)

    def fake(self, device: str) -> Trace:
        """On tensors without values."""
        fakes = Fakes(device, self.precision.dtype)
        self.tree = ModuleTree(self.model)
        with ExitStack() as stack:
            stack.enter_context(preserved(self.model))
            stack.enter_context(quiet())
            swap_tensors(self.model, fakes.cast)
            args, kwargs = map_tensors((self.args, self.kwargs), fakes.cast)
            recorder = Recorder(self.tree, real=False, adopt=fakes.keep, progress=self.progress)
            stack.enter_context(fakes.mode)
            return self._walk(self.model, recorder, args, kwargs, device, fakes.storage_of, ())

    def real(self, rebuild: Callable[[], nn.Module] | None, why: str) -> Trace:
        """On the CPU with values: the model's own weights if they are there, else seeded random ones."""
        weights = "random weights" if any(tensor.is_meta for _, tensor in _tensors_of(self.model)) else "its own weights"
        note = f"{self.name} ran for real on the CPU with {weights}: {why}"
        with ExitStack() as stack:
            stack.enter_context(preserved(self.model))
            torch.manual_seed(0)
            if weights == "random weights" and rebuild is not None:
                model = unwrapped(rebuild())
            elif weights == "random weights":
                model = _with_random_weights(self.model)
            else:
                model = copy.deepcopy(self.model)
            if self.precision.dtype is not None and self.precision.name != own_precision(model, iter(())):
                model = model.to(self.precision.dtype)
            args, kwargs = map_tensors((self.args, self.kwargs), lambda tensor: materialize(tensor, self.precision.dtype))
            self.tree = ModuleTree(model)
            recorder = Recorder(self.tree, real=True, progress=self.progress)
            try:
                return self._walk(model, recorder, args, kwargs, "cpu", _own_storage, (note,))
            except ModelstatError:
                raise
            except Exception as error:
                raise TraceError(described(self.name, error, self.tree)) from error

    def _walk(
        self, model: nn.Module, recorder: Recorder, args: tuple[Any, ...], kwargs: dict[str, Any], device: str,
        storage_of: Callable[[Tensor], int], notes: tuple[str, ...],
    ) -> Trace:  # fmt: skip
        tree = self.tree
        tree.index_parameters()
        for _, tensor in _tensors_of(model):
            recorder.values.spec(tensor, "parameter" if isinstance(tensor, nn.Parameter) else "buffer")
        given = list(tensors_in((args, kwargs)))
        for _, tensor in given:
            recorder.values.spec(tensor, "input")
        torch.backends.mha.set_fastpath_enabled(False)
        with ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            stack.enter_context(torch.compiler.set_stance("force_eager"))
            stack.enter_context(kept_whole(recorder))
            stack.enter_context(autocast(device, self.precision.autocast))
            stack.enter_context(tree.running())
            stack.enter_context(recorder)
            outputs = model(*args, **kwargs)
        returned = list(tensors_in(outputs))
        for _, tensor in returned:
            recorder.values.mark_output(tensor)
        return Trace(
            schema=TRACE_SCHEMA,
            model=self.name,
            inputs=tuple(Input(name, tuple(tensor.shape), dtype_name(tensor.dtype)) for name, tensor in input_names(model, args, kwargs)),
            outputs=tuple(tuple(tensor.shape) for _, tensor in returned),
            batch=self.batch,
            precision=self.precision.name,
            run="real" if recorder.real else "fake",
            training=model.training,
            modules=tree.records(),
            parameters=parameter_records(tree, recorder.values.index, storage_of),
            values=recorder.values.records(),
            ops=recorder.records(),
            notes=(*self.notes, *notes),
            versions=versions(),
        )


def versions() -> dict[str, str]:
    """Versions of what a trace depends on."""
    found = {"torch": str(torch.__version__)}
    for package in ("torchvision", "timm", "transformers"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _shaped(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> nn.Module:
    """A copy of a model with lazy parameters, after the first call that gives them their shapes."""
    with preserved(model), torch.no_grad():
        shaped = copy.deepcopy(model)
        given, named = map_tensors((args, kwargs), lambda tensor: materialize(tensor, None))
        tree = ModuleTree(shaped)
        try:
            with tree.running():
                shaped(*given, **named)
        except Exception as error:
            raise TraceError(described(type(model).__name__, error, tree)) from error
    return shaped


def _tensors_of(model: nn.Module) -> list[tuple[str, Tensor]]:
    return [*model.named_parameters(), *model.named_buffers()]


def _own_storage(tensor: Tensor) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):
        return id(tensor)


def _with_random_weights(model: nn.Module) -> nn.Module:
    """A copy of a model on the meta device, filled by its layers' own initialisation."""
    model = copy.deepcopy(model).to_empty(device="cpu")
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
