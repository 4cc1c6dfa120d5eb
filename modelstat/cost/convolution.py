"""Convolutions, forward and transposed, of any number of axes."""

from __future__ import annotations

from math import prod

from modelstat.cost.operands import operand
from modelstat.cost.registry import Work, register
from modelstat.records import Op, TensorSpec


def convolution_macs(data: TensorSpec, weight: TensorSpec, output: TensorSpec, transposed: bool) -> int:
    """MACs of a convolution without bias.

    data (N, Cin, *spatial), output (N, Cout, *spatial); weight (Cout, Cin/groups, *kernel), transposed (Cin, Cout/groups, *kernel).
    Forward: every output element sums Cin/groups x kernel products. Transposed: every input element is multiplied into a patch of
    Cout/groups x kernel.
    """
    return (data if transposed else output).elements * prod(weight.shape[1:])


def _convolution(op: Op, transposed: bool, flops_per_output: int = 0) -> Work:
    data, weight, output = operand(op, "input", "self", "X"), operand(op, "weight", "W"), op.outputs[0]
    bias = op.tensor("bias") or op.tensor("B")
    return Work(
        macs=convolution_macs(data, weight, output, transposed),
        bias=output.elements if bias is not None else 0,
        flops=flops_per_output * output.elements,
    )


@register(
    "convolution",
    "aten::convolution", "aten::_convolution", "aten::convolution_overrideable", "aten::_convolution_mode",
    "aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::cudnn_convolution", "aten::mkldnn_convolution", "aten::miopen_convolution",
    "aten::miopen_depthwise_convolution", "aten::_mps_convolution", "aten::_nnpack_spatial_convolution", "aten::thnn_conv2d",
    "aten::_slow_conv2d_forward", "aten::slow_conv3d", "aten::slow_conv3d_forward", "aten::slow_conv_dilated2d",
    "aten::slow_conv_dilated3d", "aten::_conv_depthwise2d", "aten::conv_depthwise3d",
)  # fmt: skip
def convolution(op: Op) -> Work:
    """A convolution, transposed if its argument ``transposed`` says so."""
    return _convolution(op, bool(op.argument("transposed", False)))


@register(
    "convolution",
    "aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d", "aten::slow_conv_transpose2d",
    "aten::slow_conv_transpose3d", "aten::cudnn_convolution_transpose", "aten::miopen_convolution_transpose",
    "aten::_mps_convolution_transpose",
)  # fmt: skip
def transposed_convolution(op: Op) -> Work:
    """A transposed convolution."""
    return _convolution(op, transposed=True)


@register("convolution", "aten::cudnn_convolution_relu", "aten::miopen_convolution_relu", "mkldnn::_convolution_pointwise")
def convolution_activation(op: Op) -> Work:
    """A convolution with an activation fused behind it: 1 per output element, and 1 for an addend that is fused too."""
    return _convolution(op, transposed=False, flops_per_output=1 + (op.tensor("other") is not None))


@register("convolution", "aten::cudnn_convolution_add_relu", "aten::miopen_convolution_add_relu")
def convolution_add_relu(op: Op) -> Work:
    """relu(convolution + alpha z): an addition and a compare per output element."""
    return _convolution(op, transposed=False, flops_per_output=2)


@register("convolution", "mkldnn::_convolution_transpose_pointwise")
def transposed_convolution_activation(op: Op) -> Work:
    """A transposed convolution with an activation fused behind it."""
    return _convolution(op, transposed=True, flops_per_output=1)


@register("convolution", "aten::conv_tbc")
def time_batch_channel(op: Op) -> Work:
    """data (T, B, Cin), weight (kernel, Cin, Cout), output (T', B, Cout)."""
    kernel, channels, _ = operand(op, "weight").shape
    outputs = op.outputs[0].elements
    return Work(macs=outputs * kernel * channels, bias=outputs)


@register("convolution", "causal_conv1d::causal_conv1d_fwd", "causal_conv1d::_causal_conv1d_fwd_cpp")
def causal_depthwise(op: Op) -> Work:
    """data (B, D, L), weight (D, kernel): depthwise, with as many outputs as inputs; SiLU fused behind it on request."""
    data, weight = operand(op, "x"), operand(op, "weight")
    silu = 5 * data.elements if op.argument("silu_activation", op.argument("activation")) else 0
    return Work(
        macs=data.elements * weight.shape[-1],
        bias=data.elements if op.tensor("bias") is not None else 0,
        flops=silu,
        outputs=data.elements,
    )
