"""Recurrent networks: every step multiplies every weight matrix once, so MACs are steps x elements of the matrices.

A step is one time step of one sequence. Per step and hidden unit, point-wise:

- LSTM 22: 4 additions of the two gate halves, 3 sigmoids of 4, 2 tanh, 3 multiplications, 1 addition.
- GRU 16: 2 additions of gate halves, 2 sigmoids of 4, tanh(a + r b) 3, n + z (h - n) 3.
- RNN 2: 1 addition of the two halves, tanh or relu 1.

Every bias vector adds its length per step.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from modelstat.cost.operands import elements, operand, total_bytes
from modelstat.cost.registry import Work, register
from modelstat.records import Op, TensorSpec

POINTWISE = {4: 22, 3: 16, 1: 2}
"""Gates of the cell -> FLOPs per step and hidden unit."""


def _layers(steps: int, units: int, gates: int, weights: Iterable[TensorSpec], read: int | None = None) -> Work:
    """Layers that do ``steps`` steps with ``units`` hidden units together; ``weights`` are matrices (rows, columns) and biases (rows)."""
    weights = tuple(weights)
    matrices = [spec for spec in weights if len(spec.shape) == 2]
    biases = [spec for spec in weights if len(spec.shape) == 1]
    return Work(
        macs=steps * elements(matrices),
        bias=steps * elements(biases),
        flops=steps * units * POINTWISE[gates],
        outputs=steps * sum(matrix.shape[0] for matrix in matrices),
        read=read,
    )


@register("rnn", "modelstat::lstm_layer", "modelstat::gru_layer", "modelstat::rnn_layer")
def layer(op: Op) -> Work:
    """One layer in one direction, as cuDNN runs it: weight_ih (G H, I), weight_hh (G H, P or H), and weight_hr (P, H) of a projection.

    The arguments ``steps`` (T x B, or the sum of the lengths of packed sequences), ``gates`` and ``hidden`` come from the trace.
    """
    names = ("weight_ih", "weight_hh", "weight_hr", "bias_ih", "bias_hh")
    weights = [spec for name, spec in zip(op.names, op.inputs, strict=True) if name in names]
    return _layers(int(op.arguments["steps"]), int(op.arguments["hidden"]), int(op.arguments["gates"]), weights)


@register("rnn", "aten::mkldnn_rnn_layer")
def onednn_layer(op: Op) -> Work:
    """input (T, B, I), weight0 (G H, I), weight1 (G H, H), two biases; mode 2 is LSTM, 3 GRU, 0 and 1 RNN."""
    steps = prod(operand(op, "input").shape[:2])
    gates = {2: 4, 3: 3}.get(int(op.argument("mode", 2)), 1)
    weights = [spec for name, spec in zip(op.names, op.inputs, strict=True) if name.startswith("weight")]
    return _layers(steps, int(op.arguments["hidden_size"]), gates, weights)


@register("rnn", "aten::_cudnn_rnn", "aten::miopen_rnn")
def vendor_rnn(op: Op) -> Work:
    """All layers and directions: input (T, B, I), or packed (total, I) with ``batch_sizes``. ``weight_buf`` is the weights again."""
    steps = prod(operand(op, "input").shape[:-1])
    gates = {2: 4, 3: 3}.get(int(op.argument("mode", 2)), 1)
    units = int(op.arguments["hidden_size"]) * int(op.argument("num_layers", 1)) * (2 if op.argument("bidirectional") else 1)
    read = total_bytes(spec for name, spec in zip(op.names, op.inputs, strict=True) if name not in ("weight_buf", "dropout_state"))
    return _layers(steps, units, gates, op.tensors("weight"), read)


def _whole(op: Op, gates: int) -> Work:
    """All layers and directions: input (T, B, I), packed data (total, I); hx[0] (layers x directions, B, P), its last state has H."""
    data = operand(op, "input", "data")
    steps = prod(data.shape[:-1])
    state = op.tensors("hx")[-1]
    return _layers(steps, state.shape[0] * state.shape[-1], gates, op.tensors("params"))


@register("rnn", "aten::lstm", "aten::_lstm_mps")
def lstm(op: Op) -> Work:
    """torch.lstm as a whole."""
    return _whole(op, 4)


@register("rnn", "aten::gru")
def gru(op: Op) -> Work:
    """torch.gru as a whole."""
    return _whole(op, 3)


@register("rnn", "aten::rnn_tanh", "aten::rnn_relu")
def rnn(op: Op) -> Work:
    """torch.rnn_tanh and rnn_relu as a whole."""
    return _whole(op, 1)


@register("rnn", "aten::quantized_lstm", "aten::quantized_gru")
def quantized(op: Op) -> Work:
    """The same with packed weights of one byte, which are no tensors: (G H, I) and (G H, H) with I the width of the layer below."""
    gates = 4 if "lstm" in op.name else 3
    data, state = operand(op, "input", "data"), op.tensors("hx")[-1]
    steps, hidden = prod(data.shape[:-1]), state.shape[-1]
    layers = int(op.argument("num_layers", 1))
    directions = state.shape[0] // layers
    inputs = data.shape[-1] + (layers - 1) * directions * hidden  # of all layers together
    weights = directions * gates * hidden * (inputs + layers * hidden)
    rows = state.shape[0] * gates * hidden
    return Work(
        macs=steps * weights,
        bias=steps * 2 * rows,
        flops=steps * state.shape[0] * hidden * POINTWISE[gates],
        outputs=steps * 2 * rows,
        read=total_bytes(op.inputs) + weights + 2 * rows * 4,
        dtype="int8",
    )


def _cell(op: Op, gates: int) -> Work:
    """One step: input (B, I), w_ih (G H, I), w_hh (G H, H)."""
    hidden = operand(op, "w_hh").shape[0] // gates
    data = operand(op, "input")
    weights = [spec for name, spec in zip(op.names, op.inputs, strict=True) if name in ("w_ih", "w_hh", "b_ih", "b_hh")]
    return _layers(prod(data.shape[:-1]), hidden, gates, weights)


@register("rnn", "aten::lstm_cell", "aten::quantized_lstm_cell")
def lstm_cell(op: Op) -> Work:
    """One step of an LSTM."""
    return _cell(op, 4)


@register("rnn", "aten::gru_cell", "aten::quantized_gru_cell")
def gru_cell(op: Op) -> Work:
    """One step of a GRU."""
    return _cell(op, 3)


@register("rnn", "aten::rnn_tanh_cell", "aten::rnn_relu_cell", "aten::quantized_rnn_tanh_cell", "aten::quantized_rnn_relu_cell")
def rnn_cell(op: Op) -> Work:
    """One step of a plain RNN."""
    return _cell(op, 1)


def _fused_gates(op: Op, gates: int, state: TensorSpec) -> Work:
    """What follows the two products of a cell: input_gates and hidden_gates (B, G H), biases (G H), state (B, H)."""
    biases = sum(op.tensor(name) is not None for name in ("input_bias", "hidden_bias"))
    return Work(flops=state.elements * (POINTWISE[gates] + gates * biases))


@register("rnn", "aten::_thnn_fused_lstm_cell")
def fused_lstm_cell(op: Op) -> Work:
    """The point-wise part of an LSTM cell."""
    return _fused_gates(op, 4, operand(op, "cx"))


@register("rnn", "aten::_thnn_fused_gru_cell")
def fused_gru_cell(op: Op) -> Work:
    """The point-wise part of a GRU cell."""
    return _fused_gates(op, 3, operand(op, "hx"))


@register("rnn", "aten::_cudnn_rnn_flatten_weight")
def flatten_weight(op: Op) -> Work:
    """Packs the weights into one buffer: bytes only."""
    return Work()
