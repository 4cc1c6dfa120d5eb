"""A model walked forward and back: what one step of training computes and keeps.

The model runs in training mode with autograd on; every output that depends on a parameter is given a gradient of its own shape, as a
loss over all of them does, and autograd runs back from there. What the loss computes and the optimizer's step are not part of the
trace: an op ``modelstat::loss``, which costs nothing, stands where the loss would be, and what comes after it is backward.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from modelstat.errors import TraceError
from modelstat.memory.training import LOSS
from modelstat.records import Trace
from modelstat.trace.capture import Rebuild, _Run
from modelstat.trace.cuda_autocast import cuda_lists
from modelstat.trace.differentiable import Tensors, Whole
from modelstat.trace.nested import tensors_in
from modelstat.trace.precision import autocast
from modelstat.trace.recorder import Recorder


class TrainingRun(_Run):
    """One model and its inputs, to be walked forward and back."""

    @property
    def label(self) -> str:
        """What an error calls the model: some raise in training mode only."""
        return f"{self.name} in training mode"

    def devices(self) -> tuple[str, ...]:
        """The CPU alone: on a machine without a GPU, autograd follows no other."""
        return ("cpu",)

    def fake(self, device: str) -> Trace:
        """On tensors without values; whoever calls may have turned gradients off."""
        with torch.inference_mode(False), torch.enable_grad():
            return super().fake(device)

    def real(self, rebuild: Rebuild | None, why: str) -> Trace:
        """On the CPU with values."""
        with torch.inference_mode(False), torch.enable_grad():
            return super().real(rebuild, why)

    def recorder(self, **options: Any) -> Recorder:
        """What writes the ops of both directions down."""
        return TrainingRecorder(self.tree, progress=self.progress, **options)

    def call(self, model: nn.Module, recorder: Recorder, args: tuple[Any, ...], kwargs: dict[str, Any], device: str) -> Any:
        """Forward in training mode, then back. A model that is in training mode already keeps the modules in it that are not."""
        if not model.training:
            model.train()
        chosen = self.precision.autocast
        with cuda_lists(device, chosen), self.tree.running(), recorder:
            with autocast(device, chosen):
                outputs = model(*args, **kwargs)
            _run_back(self.label, recorder, outputs)
        for parameter in model.parameters():
            if parameter.grad is not None:
                recorder.values.mark_output(parameter.grad)
        return outputs


def _run_back(label: str, recorder: Recorder, outputs: Any) -> None:
    """Autograd's own backward from the outputs, in this thread."""
    found = {id(tensor): tensor for _, tensor in tensors_in(outputs, unwrap=False) if tensor.requires_grad}
    with recorder.suspended():
        roots = [tensor.values() if tensor.layout == torch.jagged else tensor for tensor in found.values()]
    if not roots:
        raise TraceError(f"{label}: no output depends on a parameter that is trained (do all have requires_grad=False?)")

    def loss() -> tuple[tuple[Tensor, ...], Sequence[Tensors]]:
        with recorder.suspended():
            result = torch.zeros((), device=roots[0].device)
        recorder.record(LOSS, {"outputs": roots}, [result], {})
        return (result,), ()

    def gradients(saved: Sequence[Tensors], grads: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
        with recorder.suspended():
            return tuple(torch.ones_like(root) for root in roots)

    (result,) = Whole.apply(loss, gradients, *roots)
    with recorder.suspended():
        one = torch.ones_like(result)
    with torch.autograd.set_multithreading_enabled(False):
        torch.autograd.backward(result, one)


class TrainingRecorder(Recorder):
    """Gives each op of the backward to the module whose forward made the node of autograd that runs it.

    A node has a number, and numbers grow: while an op of the forward is recorded, the last number is that of its node.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._numbers: list[int] = []
        self._places: list[tuple[int, int]] = []

    def place(self, held: list[Tensor], computes: bool) -> tuple[int, int]:
        """Row and call index of the module that an op belongs to."""
        node = torch._C._current_autograd_node()
        # Activation checkpoints run modules forward in the middle of the backward.
        if node is None or self.tree.is_running:
            place = super().place(held, computes)
            number = torch._C._autograd._get_sequence_nr() - 1
            if not self._numbers or number > self._numbers[-1]:
                self._numbers.append(number)
                self._places.append(place)
            return place
        variable = getattr(node, "variable", None)
        if variable is not None:
            return super().place([variable], False)
        index = bisect_right(self._numbers, node._sequence_nr())
        return self._places[index - 1] if index else (0, 0)
