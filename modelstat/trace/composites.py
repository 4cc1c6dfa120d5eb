"""Ops that are kept whole: attention, and one RNN op per layer and direction.

Below autograd, attention falls apart into products and a softmax, and an RNN into a step at a time or into one backend's call:
the same arithmetic, but not the bytes that a fused kernel moves. So the dispatcher itself is told, for the time of one trace, to
hand these ops to the functions below; autocast lies above and has cast their inputs already. The functions record one op
and give the values back: empty ones in a fake run, real ones in a real run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from modelstat.trace.recorder import Recorder

KEYS = ("AutogradCPU", "AutogradCUDA", "CPU", "CUDA")
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@contextmanager
def kept_whole(recorder: Recorder) -> Iterator[None]:
    """Routes attention and RNN calls, from Python or C++, to one recorded op each."""
    composites = Composites(recorder)
    recorder.whole = {f"aten::{name}": function for name, function in composites.table().items()}
    library = torch.library.Library("aten", "IMPL")
    try:
        for key in KEYS:
            for name, function in composites.table().items():
                library.impl(name, function, key)
        yield
    finally:
        library._destroy()


class Composites:
    """The replacements, bound to one recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def table(self) -> dict[str, Any]:
        """Op overload -> replacement."""
        table: dict[str, Any] = {"scaled_dot_product_attention": self.attention}
        for kind in GATES:
            table[f"{kind}.input"] = self._rnn_dense(kind)
            table[f"{kind}.data"] = self._rnn_packed(kind)
        return table

    def attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """F.scaled_dot_product_attention. query (..., Hq, L, E), key (..., Hkv, S, E), value (..., Hkv, S, Ev) -> (..., Hq, L, Ev)."""
        recorder = self.recorder
        with recorder.suspended():
            if recorder.real:
                op = torch.ops.aten.scaled_dot_product_attention.default
                output: Tensor = op.decompose(
                    query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **({"enable_gqa": True} if enable_gqa else {})
                )
            else:
                output = _attention_output(query, key, value)
        inputs = {"query": query, "key": key, "value": value, "attn_mask": attn_mask}
        arguments = {"is_causal": is_causal, "enable_gqa": enable_gqa, "dropout_p": dropout_p, "scale": scale}
        recorder.record("modelstat::attention", inputs, [output], arguments)
        return output

    def _rnn_dense(self, kind: str) -> Any:
        def run(
            input: Tensor,
            hx: Any,
            params: Sequence[Tensor],
            has_biases: bool,
            num_layers: int,
            dropout: float,
            train: bool,
            bidirectional: bool,
            batch_first: bool,
        ) -> Any:
            arguments = (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
            time, batch = (1, 0) if batch_first else (0, 1)
            steps = input.shape[time] * input.shape[batch]
            layers = _Layers(self.recorder, kind, hx, params, has_biases, num_layers, bidirectional)
            layers.record(input, steps, input.shape[batch])
            return self._result(kind, "input", arguments, layers)

        return run

    def _rnn_packed(self, kind: str) -> Any:
        def run(
            data: Tensor,
            batch_sizes: Tensor,
            hx: Any,
            params: Sequence[Tensor],
            has_biases: bool,
            num_layers: int,
            dropout: float,
            train: bool,
            bidirectional: bool,
        ) -> Any:
            arguments = (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)
            layers = _Layers(self.recorder, kind, hx, params, has_biases, num_layers, bidirectional)
            first = hx[0] if kind == "lstm" else hx
            layers.record(data, data.shape[0], first.shape[1])
            return self._result(kind, "data", arguments, layers)

        return run

    def _result(self, kind: str, overload: str, arguments: tuple[Any, ...], layers: _Layers) -> Any:
        if not self.recorder.real:
            return layers.fake_result()
        with self.recorder.suspended():
            return getattr(getattr(torch.ops.aten, kind), overload).decompose(*arguments)


def _attention_output(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Batch axes broadcast, and laid out as the fused kernels lay it out: heads next to each other for every token."""
    batch = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2]) if query.shape[:-3] != key.shape[:-3] else query.shape[:-2]
    length, width = query.shape[-2], value.shape[-1]
    if len(batch) == 2:
        return query.new_empty((batch[0], length, batch[1], width)).transpose(1, 2)
    return query.new_empty((*batch, length, width))


class _Layers:
    """Layers and directions of one RNN call."""

    def __init__(
        self, recorder: Recorder, kind: str, hx: Any, params: Sequence[Tensor], has_biases: bool, num_layers: int, bidirectional: bool
    ) -> None:
        self.recorder, self.kind, self.num_layers = recorder, kind, num_layers
        self.directions = 2 if bidirectional else 1
        self.hx: tuple[Tensor, ...] = tuple(hx) if kind == "lstm" else (hx,)
        per_layer = len(params) // (num_layers * self.directions)
        self.names = ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if has_biases else [])]
        if per_layer > len(self.names):
            self.names.append("weight_hr")
        self.weights = [tuple(params[i : i + per_layer]) for i in range(0, len(params), per_layer)]
        self.output: Tensor | None = None

    def record(self, data: Tensor, steps: int, batch: int) -> None:
        """One op for each layer and direction; a layer's directions write halves of one output."""
        recorder, hidden = self.recorder, self.hx[-1].shape[-1]
        width = self.hx[0].shape[-1]
        casted = self._autocast(data)
        for layer in range(self.num_layers):
            with recorder.suspended():
                output = casted.new_empty((*casted.shape[:-1], width * self.directions))
            for direction in range(self.directions):
                row = layer * self.directions + direction
                weights = [self._autocast(weight) for weight in self.weights[row]]
                with recorder.suspended():
                    half = output[..., direction * width : (direction + 1) * width]
                    states = [state[row] for state in self.hx]
                inputs: dict[str, Any] = {"input": casted, **dict(zip(("h0", "c0"), states, strict=False))}
                inputs.update(zip(self.names, weights, strict=True))
                arguments = {
                    "steps": steps, "gates": GATES[self.kind], "hidden": hidden, "batch": batch, "kind": self.kind,
                    "reverse": direction == 1,
                }  # fmt: skip
                name = {"lstm": "lstm_layer", "gru": "gru_layer"}.get(self.kind, "rnn_layer")
                recorder.record(f"modelstat::{name}", inputs, [half], arguments, owners=list(self.weights[row]))
            casted = output
        self.output = casted

    def _autocast(self, tensor: Tensor) -> Tensor:
        """What autocast does inside the RNN call on a GPU: input and weights go to its dtype."""
        device = tensor.device.type
        if torch.is_autocast_enabled(device) and tensor.dtype == torch.float32:
            return tensor.to(torch.get_autocast_dtype(device))
        return tensor

    def fake_result(self) -> Any:
        """(output, h_n) or (output, h_n, c_n) without values."""
        assert self.output is not None
        with self.recorder.suspended():
            return (self.output, *(self.output.new_empty(state.shape) for state in self.hx))
