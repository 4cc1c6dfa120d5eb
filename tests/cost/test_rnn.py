from __future__ import annotations

from typing import Any

import pytest

from modelstat.cost.registry import cost_of
from tests.cost.ops import op, tensor


def test_lstm_layer_with_projection() -> None:
    inputs = {
        "input": (4, 7, 12), "h0": (1, 4, 8), "c0": (1, 4, 16), "weight_ih": (64, 12), "weight_hh": (64, 8), "bias_ih": (64,),
        "bias_hh": (64,), "weight_hr": (8, 16),
    }  # fmt: skip
    cost = cost_of(op("modelstat::lstm_layer", inputs, (4, 7, 8), steps=28, gates=4, hidden=16, batch=4))
    assert cost.macs == 28 * (64 * (12 + 8) + 8 * 16)
    pointwise = 4 + 3 * 4 + 2 + 3 + 1  # gate additions, sigmoids, tanh, multiplications, addition
    assert cost.flops == 2 * cost.macs + 28 * 2 * 64 + 28 * 16 * pointwise
    assert cost.activations == 28 * (64 + 64 + 8)
    assert cost.read == 4 * (4 * 7 * 12 + 4 * 8 + 4 * 16 + 64 * 20 + 128 + 128)
    assert (cost.unit, cost.family) == ("matmul", "rnn")


def test_packed_steps_are_the_real_lengths() -> None:
    inputs = {
        "input": (15, 8),
        "h0": (3, 16),
        "c0": (3, 16),
        "weight_ih": (64, 8),
        "weight_hh": (64, 16),
        "bias_ih": (64,),
        "bias_hh": (64,),
    }
    assert cost_of(op("modelstat::lstm_layer", inputs, (15, 16), steps=9 + 4 + 2, gates=4, hidden=16, batch=3)).macs == 15 * 64 * 24


@pytest.mark.parametrize(("name", "gates", "pointwise"), [("gru_layer", 3, 2 + 8 + 3 + 3), ("rnn_layer", 1, 1 + 1)])
def test_gru_and_rnn_layers(name: str, gates: int, pointwise: int) -> None:
    inputs = {"input": (5, 2, 6), "h0": (1, 2, 10), "weight_ih": (gates * 10, 6), "weight_hh": (gates * 10, 10)}
    cost = cost_of(op(f"modelstat::{name}", inputs, (5, 2, 10), steps=10, gates=gates, hidden=10, batch=2))
    assert (cost.macs, cost.flops) == (10 * gates * 10 * 16, 2 * 10 * gates * 160 + 10 * 10 * pointwise)


def two_layers(gates: int, dirs: int) -> list[tuple[int, ...]]:
    """Input 6, hidden 10: weights and biases of two layers."""
    rows = gates * 10
    below = [(rows, 6), (rows, 10), (rows,), (rows,)]
    above = [(rows, 10 * dirs), (rows, 10), (rows,), (rows,)]
    return [shape for layer in (below, above) for _ in range(dirs) for shape in layer]


@pytest.mark.parametrize(("name", "gates", "pointwise"), [("aten::lstm", 4, 22), ("aten::gru", 3, 16), ("aten::rnn_tanh", 1, 2)])
def test_whole_networks(name: str, gates: int, pointwise: int) -> None:
    states = [(4, 2, 10)] * (2 if gates == 4 else 1)
    cost = cost_of(op(name, {"input": (5, 2, 6), "hx": states, "params": two_layers(gates, 2)}, (5, 2, 20)))
    rows = gates * 10
    macs = 10 * 2 * (rows * 16 + rows * 30)
    assert (cost.macs, cost.flops) == (macs, 2 * macs + 10 * 8 * rows + 10 * 4 * 10 * pointwise)


def test_cudnn_does_not_read_its_weights_twice() -> None:
    weights = two_layers(4, 1)
    inputs = {"input": (5, 2, 6), "weight": weights, "weight_buf": (3000,), "hx": (2, 2, 10), "cx": (2, 2, 10)}
    cost = cost_of(op("aten::_cudnn_rnn", inputs, (5, 2, 10), mode=2, hidden_size=10, num_layers=2, bidirectional=False))
    assert cost.macs == 10 * (40 * 16 + 40 * 20)
    assert cost.read == 4 * (60 + 40 * 16 + 40 * 20 + 4 * 40 + 2 * 40)


def test_onednn_layer() -> None:
    inputs = {
        "input": (5, 2, 6),
        "weight0": (40, 6),
        "weight1": (40, 10),
        "weight2": (40,),
        "weight3": (40,),
        "hx_": (2, 10),
        "cx_": (2, 10),
    }
    cost = cost_of(op("aten::mkldnn_rnn_layer", inputs, (5, 2, 10), mode=2, hidden_size=10))
    assert (cost.macs, cost.flops) == (10 * 40 * 16, 2 * 10 * 640 + 10 * 80 + 10 * 10 * 22)


@pytest.mark.parametrize(("name", "gates"), [("aten::lstm_cell", 4), ("aten::gru_cell", 3), ("aten::rnn_relu_cell", 1)])
def test_cells(name: str, gates: int) -> None:
    inputs: dict[str, Any] = {"input": (3, 6), "hx": [(3, 10)], "w_ih": (gates * 10, 6), "w_hh": (gates * 10, 10)}
    assert cost_of(op(name, inputs, (3, 10))).macs == 3 * gates * 10 * 16


def test_pointwise_part_of_a_cell() -> None:
    inputs = {"input_gates": (3, 40), "hidden_gates": (3, 40), "cx": (3, 10), "input_bias": (40,), "hidden_bias": (40,)}
    lstm = cost_of(op("aten::_thnn_fused_lstm_cell", inputs, (3, 10), (3, 10), (3, 40), unused=(2,)))
    assert (lstm.macs, lstm.flops, lstm.unit) == (0, 3 * 10 * 22 + 3 * 2 * 40, "vector")
    assert (lstm.read, lstm.write) == (4 * (240 + 30 + 80), 4 * 60)


def test_packed_quantised_lstm() -> None:
    cost = cost_of(op("aten::quantized_lstm", {"input": (5, 2, 6), "hx": [(2, 2, 10), (2, 2, 10)]}, (5, 2, 10), num_layers=2))
    assert (cost.macs, cost.dtype) == (10 * (40 * 16 + 40 * 20), "int8")
    assert cost.read == 4 * (60 + 40 + 40) + (40 * 16 + 40 * 20) + 4 * 2 * 2 * 40


def test_half_precision_decides_the_peak() -> None:
    inputs = {"input": (5, 2, 6), "weight_ih": (30, 6), "weight_hh": (30, 10), "h0": tensor((1, 2, 10))}
    assert (
        cost_of(op("modelstat::gru_layer", inputs, (5, 2, 10), dtype="float16", steps=10, gates=3, hidden=10, batch=2)).dtype == "float16"
    )
