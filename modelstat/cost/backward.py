"""Gradients of contractions, where autograd has an op of its own for them. (Those of a matrix product are matrix products.)

A contraction has one gradient for each of its two factors, and each costs as many MACs as the forward: of ``y = W x`` they are
``W^T dy`` and ``dy x^T``. Which of them are asked for, ``output_mask`` says: a first layer needs none for its input.
"""

from __future__ import annotations

from math import prod

from modelstat.cost.attention import pairs_heads_last, query_key_pairs
from modelstat.cost.convolution import convolution_macs
from modelstat.cost.operands import elements, operand, total_bytes
from modelstat.cost.registry import Work, register
from modelstat.records import Op, TensorSpec


@register("loss", "modelstat::loss")
def loss(op: Op) -> Work | None:
    """Where the loss stands in a trace of training: it is not the model's, and not counted."""
    return None


def output_mask(op: Op, length: int) -> list[bool]:
    """Which gradients an op computes; all of them where it does not say."""
    return [bool(wanted) for wanted in op.argument("output_mask", [True] * length)]


@register("convolution", "aten::convolution_backward", "aten::convolution_backward_overrideable")
def convolution(op: Op) -> Work:
    """Gradients of input, weight and bias, from grad_output (N, Cout, *spatial): two convolutions, and a sum for the bias."""
    grad, data, weight = operand(op, "grad_output"), operand(op, "input"), operand(op, "weight")
    return _two_factors(op, grad, data, weight, convolution_macs(data, weight, grad, bool(op.argument("transposed", False))))


@register("matmul", "aten::linear_backward", "aten::mkldnn_linear_backward")
def linear(op: Op) -> Work:
    """Gradients of input (..., K), weight (N, K) and bias (N), from grad_output (..., N)."""
    grad, data, weight = operand(op, "grad_output"), operand(op, "self"), operand(op, "weight")
    return _two_factors(op, grad, data, weight, data.elements * weight.shape[0])


def _two_factors(op: Op, grad: TensorSpec, data: TensorSpec, weight: TensorSpec, macs: int) -> Work:
    to_data, to_weight, to_bias = output_mask(op, 3)
    read = [grad, *([weight] if to_data else []), *([data] if to_weight else [])]
    return Work(
        macs=macs * (to_data + to_weight),
        flops=grad.elements * to_bias,
        outputs=data.elements * to_data + weight.elements * to_weight,
        read=total_bytes(read),
    )


@register("vision", "torchvision::_deform_conv2d_backward")
def deformable_convolution(op: Op) -> Work:
    """Gradients of input, weight, offset, mask and bias.

    Two contractions as large as the forward's. Every sample is taken again (7), and its gradient goes to four elements (8), two offsets
    (2 x 8) and the mask (1).
    """
    grad, data, weight = operand(op, "grad"), operand(op, "input"), operand(op, "weight")
    samples = grad.elements // max(grad.shape[1], 1) * data.shape[1] * prod(weight.shape[2:])
    masked = bool(op.argument("use_mask", True))
    return Work(
        macs=2 * grad.elements * prod(weight.shape[1:]),
        flops=samples * (7 + 8 + 16 + 2 * masked) + grad.elements,
        outputs=samples + weight.elements,
    )


SCORE = 6
"""FLOPs per score in the backward of attention: scale, subtract the log-sum-exp and exp, to have the probabilities again; then
P (dP - D), and scale. D, a sum of products over each row of the output, is 2 per output element."""


def _attention(pairs: int, grad: TensorSpec, tensors: list[TensorSpec], masked: bool, to_mask: int, dropout: bool) -> Work:
    """Five products over the query-key ``pairs`` of all heads. ``tensors`` are query, key and value; E and Ev their last axes."""
    channels, value_channels = tensors[0].shape[-1], tensors[2].shape[-1]
    per_score = SCORE + masked + 2 * dropout
    return Work(
        macs=pairs * (3 * channels + 2 * value_channels),
        flops=pairs * per_score + 2 * grad.elements + to_mask,
        outputs=2 * pairs + elements(tensors),
    )


def _tensors(op: Op) -> tuple[TensorSpec, list[TensorSpec]]:
    grad = operand(op, "grad_output", "grad_out", "grad_out_", "dout")
    return grad, [operand(op, long, short) for long, short in (("query", "q"), ("key", "k"), ("value", "v"))]


def _has_mask(op: Op) -> bool:
    return any(op.tensor(name) is not None for name in ("attn_mask", "attn_bias", "bias"))


@register(
    "attention",
    "modelstat::attention_backward", "aten::_scaled_dot_product_flash_attention_backward",
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward", "aten::_scaled_dot_product_efficient_attention_backward",
    "aten::_scaled_dot_product_cudnn_attention_backward", "aten::_scaled_dot_product_fused_attention_overrideable_backward",
)  # fmt: skip
def attention(op: Op) -> Work:
    """query (..., Hq, L, E), key (..., Hkv, S, E), value (..., Hkv, S, Ev), grad_output (..., Hq, L, Ev), as the fused kernels do it.

    They keep no scores: Q K^T is computed again, then P^T dO and dO V^T, and from the gradient of the scores those of query and key.
    So 3 E + 2 Ev per pair, where the forward has E + Ev: 2.5 times as much for equal widths. (FlopCounterMode counts the same.)
    """
    grad, tensors = _tensors(op)
    pairs = query_key_pairs(op, prod(grad.shape[:-1]), grad.shape[-2], tensors[1].shape[-2])
    to_mask = pairs if len(op.outputs) > 3 and op.outputs[3].elements else 0
    return _attention(pairs, grad, tensors, _has_mask(op), to_mask, bool(op.argument("dropout_p")))


@register(
    "attention",
    "aten::_flash_attention_backward", "aten::_efficient_attention_backward", "flash_attn::_flash_attn_backward",
    "flash_attn::_flash_attn_varlen_backward", "torch_attn::_varlen_attn_backward", "modelstat::varlen_attention_backward",
)  # fmt: skip
def attention_heads_last(op: Op) -> Work:
    """The same for query (B, L, H, E), key (B, S, H, E) and value (B, S, H, Ev), or packed sequences (total, H, E)."""
    grad, tensors = _tensors(op)
    pairs = pairs_heads_last(op, tensors[0], tensors[1])
    return _attention(pairs, grad, tensors, _has_mask(op), 0, bool(op.argument("dropout_p")))


@register("attention", "aten::_cudnn_attention_backward")
def cudnn_attention(op: Op) -> Work:
    """Heads before positions when dense (B, H, L, E), after them when packed (total, H, E)."""
    dense = len(operand(op, "query").shape) == 4
    return attention(op) if dense else attention_heads_last(op)


RNN_POINTWISE = {4: 23, 3: 17, 1: 4}
"""Gates of the cell -> FLOPs per step and hidden unit, going back.

- LSTM 23: add the dh of the step after 1; do 1; dc = dc + dh o (1 - tanh^2 c) 5; di, df, dg and the dc of the step before 1 each; the
  derivatives of three sigmoids and a tanh of 3 each.
- GRU 17: add the dh of the step after 1; dn 2, dz 2 and the dh of the step before 1; the derivative of tanh 3; dr 1 and the hidden
  product 1; the derivatives of two sigmoids of 3 each.
- RNN 4: add the dh of the step after 1; the derivative of tanh 3.
"""


@register("rnn", "modelstat::lstm_layer_backward", "modelstat::gru_layer_backward", "modelstat::rnn_layer_backward")
def rnn_layer(op: Op) -> Work:
    """One layer in one direction: every matrix meets every step twice, once for what it multiplied and once for itself."""
    steps, hidden, gates = (int(op.arguments[name]) for name in ("steps", "hidden", "gates"))
    weights = [spec for name, spec in zip(op.names, op.inputs, strict=True) if name.startswith(("weight_", "bias_"))]
    matrices, biases = (elements(spec for spec in weights if len(spec.shape) == axes) for axes in (2, 1))
    inputs = sum(spec.shape[1] for spec in weights if len(spec.shape) == 2)
    return Work(
        macs=2 * steps * matrices,
        flops=steps * (hidden * RNN_POINTWISE[gates] + biases),
        outputs=steps * inputs + matrices,
    )


@register("rnn", "aten::_thnn_fused_lstm_cell_backward_impl", "aten::_thnn_fused_lstm_cell_backward")
def lstm_cell(op: Op) -> Work:
    """The point-wise part of an LSTM cell: workspace (B, 4 H)."""
    return Work(flops=operand(op, "workspace").elements // 4 * RNN_POINTWISE[4])


@register("rnn", "aten::_thnn_fused_gru_cell_backward")
def gru_cell(op: Op) -> Work:
    """The point-wise part of a GRU cell: grad_hy (B, H)."""
    return Work(flops=operand(op, "grad_hy").elements * RNN_POINTWISE[3])
