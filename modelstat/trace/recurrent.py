"""RNN calls as one op per layer and direction, as cuDNN runs them, and the backward of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from modelstat.trace.differentiable import Tensors, Whole, needs_gradient

if TYPE_CHECKING:
    from modelstat.trace.recorder import Recorder

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
NAMES = {"lstm": "modelstat::lstm_layer", "gru": "modelstat::gru_layer"}
RESERVE = {"lstm": 5, "gru": 5}
"""What a cell keeps for its backward, in hidden units per step, as torch's fused cells do: the gates, and the cell state of an LSTM or
the hidden product of a GRU. A plain RNN needs its output alone."""


class Layers:
    """Layers and directions of one RNN call over ``steps`` steps (all sequences together) of ``batch`` sequences."""

    def __init__(
        self, recorder: Recorder, kind: str, params: Sequence[Tensor], has_biases: bool, num_layers: int, bidirectional: bool,
        steps: int, batch: int,
    ) -> None:  # fmt: skip
        self.recorder, self.kind, self.num_layers, self.steps, self.batch = recorder, kind, num_layers, steps, batch
        self.directions = 2 if bidirectional else 1
        self.names = ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if has_biases else [])]
        if len(params) > len(self.names) * self.directions * num_layers:
            self.names.append("weight_hr")
        self.name = NAMES.get(kind, "modelstat::rnn_layer")

    def run(self, data: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], values: Callable[[], Any] | None) -> tuple[Tensor, ...]:
        """The call's results: output, h_n and for an LSTM c_n. ``values`` computes them; None where there are no values."""
        if not needs_gradient(data, *hx, *params):
            return self._forward(data, hx, params, values, None)

        def run() -> tuple[tuple[Tensor, ...], Sequence[Tensors]]:
            kept: list[Tensors] = []
            return self._forward(data, hx, params, values, kept), kept

        results: tuple[Tensor, ...] = Whole.apply(run, self._backward, data, *hx, *params)
        return results

    def _forward(
        self, data: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], values: Callable[[], Any] | None, kept: list[Tensors] | None
    ) -> tuple[Tensor, ...]:
        """Records one op for each layer and direction, and appends to ``kept`` what its backward needs."""
        recorder, width = self.recorder, hx[0].shape[-1]
        data = self._autocast(data)
        with recorder.suspended():
            results = tuple(values()) if values is not None else self._empty(data, hx)
        for layer in range(self.num_layers):
            with recorder.suspended():
                output = results[0] if layer == self.num_layers - 1 else data.new_empty((*data.shape[:-1], width * self.directions))
            for direction in range(self.directions):
                row = layer * self.directions + direction
                owners = list(params[row * len(self.names) : (row + 1) * len(self.names)])
                inputs = {"input": data, **dict(zip(self.names, map(self._autocast, owners), strict=True))}
                with recorder.suspended():
                    inputs.update(zip(("h0", "c0"), (state[row] for state in hx), strict=False))
                    # A layer's directions write halves of one output.
                    half = output[..., direction * width : (direction + 1) * width]
                    states = [state[row] for state in results[1:]]
                    reserve = self._reserve(data, hx[-1].shape[-1]) if kept is not None else {}
                arguments = self._arguments(hx[-1].shape[-1], direction)
                recorder.record(self.name, inputs, [half, *states, *reserve.values()], arguments, owners=owners)
                if kept is not None:
                    kept.append({**inputs, "output": half, **reserve})
            data = output
        return results

    def _empty(self, data: Tensor, hx: Sequence[Tensor]) -> tuple[Tensor, ...]:
        output = data.new_empty((*data.shape[:-1], hx[0].shape[-1] * self.directions))
        return (output, *(data.new_empty(state.shape) for state in hx))

    def _reserve(self, data: Tensor, hidden: int) -> dict[str, Tensor]:
        return {"reserve": data.new_empty((self.steps, RESERVE[self.kind] * hidden))} if self.kind in RESERVE else {}

    def _arguments(self, hidden: int, direction: int) -> dict[str, Any]:
        return {
            "steps": self.steps, "gates": GATES[self.kind], "hidden": hidden, "batch": self.batch, "kind": self.kind,
            "reverse": direction == 1,
        }  # fmt: skip

    def _autocast(self, tensor: Tensor) -> Tensor:
        """What autocast does inside the RNN call on a GPU: input and weights go to its dtype."""
        device = tensor.device.type
        if torch.is_autocast_enabled(device) and tensor.dtype == torch.float32:
            return tensor.to(torch.get_autocast_dtype(device))
        return tensor

    def _backward(self, saved: Sequence[Tensors], grads: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
        """Records one op for each layer and direction, the last layer first, and returns gradients of all that the call was given."""
        recorder, (above, *of_states) = self.recorder, grads
        states = ("h0", "c0")[: len(of_states)]
        with recorder.suspended():
            to_states = [saved[0][name].new_zeros((len(saved), *saved[0][name].shape)) for name in states]
        to_params: list[Tensor] = []
        for layer in reversed(range(self.num_layers)):
            rows = saved[layer * self.directions : (layer + 1) * self.directions]
            with recorder.suspended():
                below = torch.zeros_like(rows[0]["input"])
            found: list[Tensor] = []
            for direction, row in enumerate(rows):
                index, width = layer * self.directions + direction, row["output"].shape[-1]
                with recorder.suspended():
                    half = None if above is None else above[..., direction * width : (direction + 1) * width]
                    from_states = [None if grad is None else grad[index] for grad in of_states]
                    to_weights = [torch.zeros_like(row[name]) for name in self.names]
                    to_first = [grad[index] for grad in to_states]
                given = {"grad_output": half, **dict(zip(("grad_h", "grad_c"), from_states, strict=False)), **row}
                arguments = self._arguments(row["weight_hh"].shape[0] // GATES[self.kind], direction)
                recorder.record(f"{self.name}_backward", given, [below, *to_weights, *to_first], arguments, owners=[])
                found += to_weights
            to_params = found + to_params
            above = below
        return (above, *to_states, *to_params)
