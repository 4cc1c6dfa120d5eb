"""Quantised layers: integer contractions, whose MACs count and whose "FLOPs" are integer OPs, held against the int8 peak.

Packed weights are no tensors: the trace carries ``weight_shape``, ``weight_bytes`` and ``bias`` as arguments.
"""

from __future__ import annotations

from math import prod

from modelstat.cost.operands import operand, total_bytes
from modelstat.cost.registry import Work, register
from modelstat.records import Op

BIAS_BYTES = 4
"""A packed bias is float32 or int32."""


def _contraction(op: Op, products: int, rows: int, activation: bool, transposed: bool = False) -> Work:
    """``products`` per output element (per input element if transposed), ``rows`` entries of the bias."""
    output = op.outputs[0].elements
    data = op.inputs[0]
    biased = bool(op.argument("bias", False)) or op.tensor("bias") is not None
    packed_bias = BIAS_BYTES * rows if op.argument("bias", False) else 0
    half = "fp16" in op.name or op.argument("weight_dtype") == "float16"
    return Work(
        macs=(data.elements if transposed else output) * products,
        bias=output if biased else 0,
        flops=output if activation else 0,
        read=total_bytes(op.inputs) + int(op.argument("weight_bytes", 0)) + packed_bias,
        dtype="float16" if half else "int8",
    )


def _weight_shape(op: Op) -> tuple[int, ...]:
    """Of the packed weight, or of a weight that is a tensor."""
    packed = op.argument("weight_shape")
    return tuple(packed) if packed else operand(op, "qw", "weight", "W").shape


def _activated(op: Op) -> bool:
    return "relu" in op.name or "tanh" in op.name or op.argument("post_op_name", "none") not in ("none", "", None)


@register(
    "quantized",
    *(f"quantized::linear{kind}" for kind in (
        "", "_relu", "_leaky_relu", "_tanh", "_dynamic", "_relu_dynamic", "_dynamic_fp16", "_relu_dynamic_fp16",
        "_dynamic_fp16_unpacked_weight", "_with_input_q_dq_qweight_dq_output_fp32", "_with_input_q_dq_qweight_dq_relu_output_fp32")),
    "_quantized::linear", "_quantized::linear_dynamic", "onednn::linear_dynamic_fp16", "onednn::linear_relu_dynamic_fp16",
    "sparse::qlinear", "sparse::qlinear_relu", "sparse::qlinear_dynamic", "sparse::qlinear_relu_dynamic",
    "aten::fbgemm_linear_int8_weight", "aten::fbgemm_linear_int8_weight_fp32_activation", "aten::fbgemm_linear_fp16_weight",
    "aten::fbgemm_linear_fp16_weight_fp32_activation",
)  # fmt: skip
def linear(op: Op) -> Work:
    """data (..., K), weight (N, K) -> (..., N)."""
    return _contraction(op, op.inputs[0].shape[-1], op.outputs[0].shape[-1], _activated(op))


@register("quantized", "onednn::qlinear_pointwise")
def onednn_linear(op: Op) -> Work:
    """qx (..., K), qw packed -> (..., N), with a fused activation or addend."""
    return _contraction(op, op.inputs[0].shape[-1], op.outputs[0].shape[-1], _activated(op))


@register(
    "quantized",
    *(f"{namespace}::conv{axes}d{kind}" for namespace in ("quantized", "_quantized") for axes in (1, 2, 3) for kind in ("", "_relu")),
    *(f"quantized::conv{axes}d_dynamic" for axes in (1, 2, 3)),
    "quantized::conv2d_add", "quantized::conv2d_add_relu",
    "onednn::qconv_pointwise", *(f"onednn::qconv{axes}d_pointwise" for axes in (1, 2, 3)),
)  # fmt: skip
def convolution(op: Op) -> Work:
    """data (N, Cin, *), weight (Cout, Cin/groups, *kernel) -> (N, Cout, *)."""
    weight = _weight_shape(op)
    return _contraction(op, prod(weight[1:]), weight[0], _activated(op) or "_add" in op.name)


@register(
    "quantized",
    *(f"{namespace}::conv_transpose{axes}d" for namespace in ("quantized", "_quantized") for axes in (1, 2, 3)),
    *(f"quantized::conv_transpose{axes}d_dynamic" for axes in (1, 2, 3)),
)  # fmt: skip
def transposed_convolution(op: Op) -> Work:
    """data (N, Cin, *), weight (Cin, Cout/groups, *kernel): every input element meets Cout/groups x kernel."""
    weight = _weight_shape(op)
    return _contraction(op, prod(weight[1:]), op.outputs[0].shape[1], activation=False, transposed=True)


@register("quantized", "quantized::matmul")
def matmul(op: Op) -> Work:
    """(..., M, K) @ (..., K, N)."""
    return Work(macs=op.outputs[0].elements * op.inputs[0].shape[-1], dtype="int8")


@register(
    "quantized",
    *(f"quantized::{name}" for name in (
        "add", "add_out", "add_relu", "add_relu_out", "add_scalar", "add_scalar_out", "add_scalar_relu", "add_scalar_relu_out", "mul",
        "mul_out", "mul_relu", "mul_relu_out", "mul_scalar", "mul_scalar_out", "mul_scalar_relu", "mul_scalar_relu_out", "cat",
        "cat_out", "cat_relu", "cat_relu_out", "celu", "clamp", "elu", "hardswish", "leaky_relu", "prelu", "relu6", "sigmoid",
        "threshold")),
    "_quantized::add", "onednn::qadd", "onednn::qadd_relu", "onednn::qmul",
)  # fmt: skip
def pointwise(op: Op) -> Work:
    """Integers in, integers out: bytes only."""
    return Work()


@register(
    "quantized",
    "aten::quantize_per_tensor", "aten::quantize_per_tensor_dynamic", "aten::quantize_per_channel",
    "quantized_decomposed::quantize_per_tensor", "quantized_decomposed::quantize_per_channel",
)  # fmt: skip
def quantize(op: Op) -> Work:
    """Multiply, round, add the zero point, two compares: 5 per element."""
    return Work(flops=5 * op.inputs[0].elements)


@register(
    "quantized",
    "aten::dequantize", "quantized_decomposed::dequantize_per_tensor", "quantized_decomposed::dequantize_per_channel",
)  # fmt: skip
def dequantize(op: Op) -> Work:
    """Subtract the zero point, multiply: 2 per element."""
    return Work(flops=2 * op.inputs[0].elements)


@register(
    "quantized",
    "aten::fake_quantize_per_tensor_affine", "aten::fake_quantize_per_channel_affine", "aten::fused_moving_avg_obs_fake_quant",
    "aten::fake_quantize_per_tensor_affine_cachemask", "aten::fake_quantize_per_channel_affine_cachemask",
    "aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", "aten::_fused_moving_avg_obs_fq_helper",
    "aten::_fused_moving_avg_obs_fq_helper_functional", "aten::_fake_quantize_learnable_per_tensor_affine",
    "aten::_fake_quantize_learnable_per_channel_affine",
)  # fmt: skip
def fake_quantize(op: Op) -> Work:
    """Quantise 5 and dequantise 2 per element."""
    return Work(flops=7 * op.inputs[0].elements)


@register("quantized", "aten::choose_qparams_optimized", "aten::_choose_qparams_per_tensor")
def choose_parameters(op: Op) -> Work:
    """Minimum and maximum: 2 per element."""
    return Work(flops=2 * op.inputs[0].elements)


@register(
    "quantized",
    "aten::_make_per_tensor_quantized_tensor", "aten::_make_per_channel_quantized_tensor", "quantized::linear_prepack",
    "quantized::conv1d_prepack", "quantized::conv2d_prepack", "quantized::conv3d_prepack", "quantized::linear_unpack",
    "quantized::conv2d_unpack", "onednn::qlinear_prepack", "onednn::qconv_prepack",
)  # fmt: skip
def repack(op: Op) -> Work:
    """Another layout: bytes only."""
    return Work()


@register("quantized", "quantized::embedding_byte", "quantized::embedding_4bit")
def embedding(op: Op) -> Work:
    """Rows of a packed table: as many elements as come out, at one byte or half of it each, and two operations to widen each."""
    item = 0.5 if "4bit" in op.name else 1.0
    rows = op.outputs[0].elements
    return Work(flops=2 * rows, read=total_bytes(op.inputs) + round(rows * item))


@register(
    "quantized",
    "quantized::quantized_lstm_cell_dynamic", "quantized::quantized_gru_cell_dynamic", "quantized::quantized_rnn_tanh_cell_dynamic",
    "quantized::quantized_rnn_relu_cell_dynamic",
)  # fmt: skip
def cell(op: Op) -> Work:
    """One step of a cell with packed weights (G H, I) and (G H, H): input (B, I), hidden state (B, H)."""
    gates, pointwise_flops = (4, 22) if "lstm" in op.name else (3, 16) if "gru" in op.name else (1, 2)
    data, state = op.inputs[0], operand(op, "hx")
    batch, hidden = state.shape[0], state.shape[-1]
    rows = batch * gates * hidden
    weight_bytes = int(op.argument("weight_bytes", gates * hidden * (data.shape[-1] + hidden)))
    return Work(
        macs=rows * (data.shape[-1] + hidden),
        bias=2 * rows,
        flops=batch * hidden * pointwise_flops,
        outputs=2 * rows,
        read=total_bytes(op.inputs) + weight_bytes,
        dtype="int8",
    )
