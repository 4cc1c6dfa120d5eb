"""Normalisations, in FLOPs per element of the input.

BatchNorm: 2 at inference (a folded scale and shift), 7 in training, like the other norms that compute their statistics:
mean 1, variance 2, subtract and divide 2, then scale 1 and shift 1. RMSNorm: square and mean 2, divide 1, scale 1.
"""

from __future__ import annotations

from modelstat.cost.operands import operand
from modelstat.cost.registry import Work, bytes_written, register
from modelstat.records import Op

STATISTICS = 5
"""LayerNorm and its kin without weight and bias."""

BATCH_NORM_INFERENCE = 2
BATCH_NORM_TRAINING = 7


def _batch_norm(op: Op, training: bool) -> Work:
    data = operand(op, "input", "self", "qx")
    if not training:
        return Work(flops=BATCH_NORM_INFERENCE * data.elements)
    # Running statistics are written too. Only some schemas say so: count those that the shared rule does not.
    running = [spec for spec in (op.tensor("running_mean"), op.tensor("running_var")) if spec is not None]
    silent = not any(name.startswith("running_") for name in op.mutates) and not op.name.endswith("_functional")
    write = bytes_written(op) + (sum(spec.bytes for spec in running) if silent else 0)
    return Work(flops=BATCH_NORM_TRAINING * data.elements, write=write)


@register(
    "norm",
    "aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm", "aten::_native_batch_norm_legit",
    "aten::_native_batch_norm_legit_functional", "aten::batch_norm", "aten::_batch_norm_impl_index",
)  # fmt: skip
def batch_norm(op: Op) -> Work:
    """input (N, C, *), per channel; the argument ``training`` says whether batch statistics are computed."""
    return _batch_norm(op, bool(op.argument("training", False)))


@register(
    "norm",
    "aten::_native_batch_norm_legit_no_training", "aten::_batch_norm_no_update", "aten::quantized_batch_norm", "aten::batch_norm_elemt",
    "quantized::batch_norm", "quantized::batch_norm1d", "quantized::batch_norm2d", "quantized::batch_norm3d",
    "quantized::batch_norm_relu", "quantized::batch_norm1d_relu", "quantized::batch_norm2d_relu", "quantized::batch_norm3d_relu",
    "onednn::qbatch_norm2d",
)  # fmt: skip
def batch_norm_inference(op: Op) -> Work:
    """BatchNorm with given statistics."""
    return _batch_norm(op, training=False)


@register("norm", "aten::_batch_norm_with_update", "aten::_batch_norm_with_update_functional")
def batch_norm_update(op: Op) -> Work:
    """BatchNorm that computes batch statistics and updates the running ones."""
    return _batch_norm(op, training=True)


@register("norm", "aten::batch_norm_stats", "aten::batch_norm_update_stats")
def batch_statistics(op: Op) -> Work:
    """Mean 1 and variance 2 of every element."""
    return Work(flops=3 * op.inputs[0].elements)


@register("norm", "aten::batch_norm_gather_stats", "aten::batch_norm_gather_stats_with_counts")
def gathered_statistics(op: Op) -> Work:
    """Merges the statistics (processes, C) of several processes: about 4 per entry."""
    return Work(flops=4 * operand(op, "mean").elements)


@register(
    "norm",
    "aten::native_layer_norm", "aten::layer_norm", "aten::native_group_norm", "aten::group_norm", "aten::instance_norm",
    "quantized::layer_norm", "quantized::group_norm", "quantized::instance_norm",
)  # fmt: skip
def layer_norm(op: Op) -> Work:
    """5 per element, 1 more for a weight and 1 more for a bias."""
    affine = (op.tensor("weight") is not None) + (op.tensor("bias") is not None)
    return Work(flops=(STATISTICS + affine) * op.inputs[0].elements)


@register("norm", "aten::_fused_rms_norm", "aten::rms_norm")
def rms_norm(op: Op) -> Work:
    """4 per element, 3 without weight."""
    return Work(flops=(3 + (op.tensor("weight") is not None)) * op.inputs[0].elements)


@register("norm", "aten::_weight_norm_interface", "aten::_weight_norm")
def weight_norm(op: Op) -> Work:
    """G v / |v|: square, sum and scale, 3 per element of v."""
    return Work(flops=3 * operand(op, "v").elements)


@register("norm", "aten::renorm", "aten::embedding_renorm")
def renorm(op: Op) -> Work:
    """Square, sum and scale, 3 per element (of the rows that the indices name)."""
    indices = op.tensor("indices")
    table = operand(op, "self")
    if indices is None:
        return Work(flops=3 * table.elements)
    rows = min(indices.elements, table.shape[0])
    touched = rows * table.elements // max(table.shape[0], 1)
    moved = round(touched * table.item_bytes)
    return Work(flops=3 * touched, read=moved + indices.bytes, write=moved)
