"""Gradients of everything that is no contraction, in FLOPs per element.

An argument that lends its shape alone (the input of a pooling whose indices are known) is not read.
"""

from __future__ import annotations

from math import prod

from modelstat.cost.backward import output_mask
from modelstat.cost.operands import operand, per_axis, total_bytes
from modelstat.cost.registry import Work, register
from modelstat.cost.resample import ANTIALIASED_SUPPORT, antialiased_taps
from modelstat.records import Op

GRADS = ("grad_output", "grad_out", "grad", "grad_in", "grad_w")
"""What the gradient of the output is called."""

ACTIVATIONS = {
    "leaky_relu_backward": 2, "rrelu_with_noise_backward": 2, "hardshrink_backward": 2, "softshrink_backward": 2,  # compare, multiply
    "hardtanh_backward": 2,  # two compares
    "hardsigmoid_backward": 3,  # two compares, multiply
    "elu_backward": 4,  # compare, exp, 2 multiply
    "_prelu_kernel_backward": 4,  # compare, multiply for each of input and slope
    "hardswish_backward": 5,  # two compares, divide, add, multiply
    "log_sigmoid_backward": 5,  # compare, add, divide, subtract, multiply
    "softplus_backward": 6,  # multiply, exp, add, divide, multiply, compare
    "glu_backward": 9,  # per pair of inputs: sigmoid, subtract, 4 multiply
    "mish_backward": 13,  # sigmoid 4, tanh(log1p(exp)) 3, 1 - tanh^2 2, 2 multiply, add, multiply
}  # fmt: skip
"""Per element of the gradient that comes in."""

LOSSES = {
    "mse_loss_backward": 3, "smooth_l1_loss_backward": 5, "huber_loss_backward": 5, "binary_cross_entropy_backward": 6,
    "soft_margin_loss_backward": 6, "multi_margin_loss_backward": 3, "multilabel_margin_loss_backward": 3,
}  # fmt: skip
"""Per element of the gradient that goes out."""

SOFTMAX = 4
"""y (dy - sum(y dy)): multiply, add, subtract, multiply; of a logarithm dy - exp(y) sum(dy): add, exp, multiply, subtract."""


@register("activation", *(f"aten::{name}" for name in ACTIVATIONS))
def activation(op: Op) -> Work:
    """By the table."""
    return Work(flops=operand(op, *GRADS).elements * ACTIVATIONS[op.name.removeprefix("aten::")])


@register("loss", *(f"aten::{name}" for name in LOSSES))
def loss(op: Op) -> Work:
    """By the table."""
    return Work(flops=op.outputs[0].elements * LOSSES[op.name.removeprefix("aten::")])


@register("loss", "aten::nll_loss_backward", "aten::nll_loss2d_backward")
def negative_log_likelihood(op: Op) -> Work:
    """Fills with zeros, and writes a product for every target."""
    read = total_bytes(spec for name, spec in zip(op.names, op.inputs, strict=True) if name != "self")
    return Work(flops=2 * operand(op, "target").elements, read=read)


@register("loss", "aten::_ctc_loss_backward")
def ctc(op: Op) -> Work:
    """log_probs (T, N, classes), log_alpha (N, T, 2 S + 1): the recursion back (9), and the gradient of every state (5)."""
    return Work(flops=14 * operand(op, "log_alpha").elements)


@register("softmax", "aten::_softmax_backward_data", "aten::_log_softmax_backward_data", "aten::_masked_softmax_backward")
def softmax(op: Op) -> Work:
    """4 per element."""
    return Work(flops=SOFTMAX * operand(op, "grad_output").elements)


@register(
    "norm",
    "aten::native_batch_norm_backward", "aten::cudnn_batch_norm_backward", "aten::miopen_batch_norm_backward", "aten::batch_norm_backward",
)  # fmt: skip
def batch_norm(op: Op) -> Work:
    """Normalise again 2, sum dy 1 and dy x 2, which are also the gradients of bias and weight; then subtract both means and scale 4.

    With given statistics the input's gradient is a scale, 1, and the sums are taken for the weights alone.
    """
    data = operand(op, "input").elements
    to_input, to_weight, to_bias = output_mask(op, 3)
    if op.argument("train", op.argument("update", True)):
        return Work(flops=(5 + 4 * to_input) * data)
    return Work(flops=(to_input + 4 * to_weight + to_bias) * data)


@register("norm", "aten::native_layer_norm_backward", "aten::native_group_norm_backward")
def layer_norm(op: Op) -> Work:
    """9 per element as for BatchNorm; with a weight 1 for dy w, and 2 for its own gradient; 1 for the bias's."""
    to_input, to_weight, to_bias = output_mask(op, 3)
    weighted = op.tensor("weight") is not None
    normalise = 2 * (to_input or to_weight)
    return Work(flops=(normalise + (7 + weighted) * to_input + 2 * to_weight + to_bias) * operand(op, "input").elements)


@register("norm", "aten::_fused_rms_norm_backward")
def rms_norm(op: Op) -> Work:
    """Normalise 1; dy x 2, and subtract its mean 3; with a weight 1 for dy w and 2 for its own gradient."""
    to_input, to_weight = output_mask(op, 2)
    weighted = op.tensor("weight") is not None
    return Work(flops=(1 + (5 + weighted) * to_input + 2 * to_weight) * operand(op, "input").elements)


@register("norm", "aten::_weight_norm_interface_backward")
def weight_norm(op: Op) -> Work:
    """Of g v / |v|: a sum of products 2, and its share taken off and scaled 4, per element of v."""
    return Work(flops=6 * operand(op, "saved_v").elements)


def _read(op: Op, *shapes: str) -> int:
    """Bytes of all inputs but those that lend their shape."""
    return total_bytes(spec for name, spec in zip(op.names, op.inputs, strict=True) if name not in shapes)


@register(
    "pooling",
    "aten::max_pool2d_with_indices_backward", "aten::max_pool3d_with_indices_backward", "aten::adaptive_max_pool2d_backward",
    "aten::adaptive_max_pool3d_backward", "aten::fractional_max_pool2d_backward", "aten::fractional_max_pool3d_backward",
)  # fmt: skip
def maximum(op: Op) -> Work:
    """Adds every gradient to the element that was the largest."""
    return Work(flops=operand(op, "grad_output").elements, read=_read(op, "self"))


@register("pooling", "aten::avg_pool2d_backward", "aten::avg_pool3d_backward")
def mean(op: Op) -> Work:
    """Divides every gradient once and adds it to the elements of its window."""
    window = prod(per_axis(op.arguments["kernel_size"], 3 if "3d" in op.name else 2))
    return Work(flops=operand(op, "grad_output").elements * (window + 1), read=_read(op, "self"))


@register("pooling", "aten::_adaptive_avg_pool2d_backward", "aten::_adaptive_avg_pool3d_backward")
def adaptive_mean(op: Op) -> Work:
    """1 per gradient that comes in, 1 per gradient that goes out."""
    return Work(flops=operand(op, "grad_output").elements + op.outputs[0].elements, read=_read(op, "self"))


TAPS = {
    "upsample_linear1d": 2, "upsample_bilinear2d": 4, "upsample_trilinear3d": 8, "upsample_bicubic2d": 16,
}  # fmt: skip
NEAREST = ("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d",
           "_upsample_nearest_exact3d")  # fmt: skip


@register("resample", *(f"aten::{name}_backward" for name in NEAREST))
def nearest(op: Op) -> Work:
    """Adds every gradient to the element that it was copied from."""
    return Work(flops=operand(op, "grad_output").elements)


@register("resample", *(f"aten::{name}_backward" for name in TAPS))
def weighted(op: Op) -> Work:
    """Every gradient, times a weight, is added to each of its taps."""
    name = op.name.removeprefix("aten::").removesuffix("_backward")
    return Work(flops=operand(op, "grad_output").elements * 2 * TAPS[name])


@register("resample", *(f"{name}_backward" for name in ANTIALIASED_SUPPORT))
def antialiased(op: Op) -> Work:
    """The two passes of the forward the other way round: (N, C, H', W') -> (N, C, H, W') -> (N, C, H, W)."""
    *outer, new_height, new_width = operand(op, "grad_output").shape
    height, width = op.outputs[0].shape[-2:]
    down, across = antialiased_taps(op.name.removesuffix("_backward"), (height, width), (new_height, new_width))
    return Work(flops=prod(outer) * 2 * (new_height * new_width * down + height * new_width * across))


@register("resample", "aten::grid_sampler_2d_backward", "aten::grid_sampler_3d_backward", "aten::cudnn_grid_sampler_backward",
          "aten::_grid_sampler_2d_cpu_fallback_backward")  # fmt: skip
def grid_sample(op: Op) -> Work:
    """Of every sample and each of its taps: a product added to the input's gradient, and two to each coordinate's."""
    grad, axes = operand(op, "grad_output"), operand(op, "grid").shape[-1]
    taps = 1 if op.argument("interpolation_mode", 0) == 1 else 2**axes
    to_input, to_grid = output_mask(op, 2)
    return Work(flops=grad.elements * taps * (2 * to_input + 3 * axes * to_grid))


@register("embedding", "aten::embedding_dense_backward", "aten::_embedding_bag_dense_backward")
def embedding(op: Op) -> Work:
    """Adds the gradient of every look-up to its row of a whole table of zeros."""
    indices, table = operand(op, "indices"), op.outputs[0]
    return Work(flops=indices.elements * prod(table.shape[1:]))


@register("gather", "aten::select_backward", "aten::slice_backward", "aten::diagonal_backward", "aten::_pack_padded_sequence_backward",
          "aten::_nested_select_backward")  # fmt: skip
def window(op: Op) -> Work:
    """A field of zeros with the gradient in its place: bytes only."""
    return Work()


@register(
    "gather",
    "aten::unfold_backward", "aten::reflection_pad1d_backward", "aten::reflection_pad2d_backward", "aten::reflection_pad3d_backward",
    "aten::replication_pad1d_backward", "aten::replication_pad2d_backward", "aten::replication_pad3d_backward",
)  # fmt: skip
def folded(op: Op) -> Work:
    """Adds every gradient to the element that it was copied from."""
    return Work(flops=operand(op, *GRADS).elements, read=_read(op, "self"))


@register("reduction", "aten::_cdist_backward")
def distances(op: Op) -> Work:
    """grad_output (..., P, R), x1 (..., P, M): subtract, power, scale and add for every pair and coordinate."""
    return Work(flops=4 * operand(op, "grad_output").elements * operand(op, "x1").shape[-1])


@register("reduction", "aten::_pdist_backward")
def distances_of_one(op: Op) -> Work:
    """self (N, M), grad_output of N (N - 1) / 2 pairs: the same, and each pair has two ends."""
    return Work(flops=5 * operand(op, "grad_output").elements * operand(op, "self").shape[-1])


@register("vision", "torchvision::_roi_align_backward", "torchvision::_ps_roi_align_backward")
def roi_align(op: Op) -> Work:
    """Every bin's gradient, divided once, is added to the four taps of its ratio^2 samples."""
    ratio = int(op.argument("sampling_ratio", -1))
    return Work(flops=operand(op, "grad").elements * (1 + (ratio if ratio > 0 else 2) ** 2 * 8))


@register("vision", "torchvision::_roi_pool_backward", "torchvision::_ps_roi_pool_backward")
def roi_pool(op: Op) -> Work:
    """Adds every gradient to where it came from."""
    return Work(flops=operand(op, "grad").elements)
