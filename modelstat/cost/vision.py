"""torchvision's own ops. A bilinear sample is 4 multiplications and 3 additions: 7."""

from __future__ import annotations

from math import prod

from modelstat.cost.operands import operand
from modelstat.cost.registry import Work, register
from modelstat.records import Op

BILINEAR = 7

ASSUMED_SAMPLES = 2
"""Samples per bin and axis where ``sampling_ratio`` leaves it to the sizes of the boxes, which are values: Detectron2's and
torchvision's own setting."""

INTERSECTION_OVER_UNION = 13
"""Per pair of boxes: 2 maxima, 2 minima, 2 subtractions, 2 clamps, a product, 2 for the union, a division, a compare."""


@register("vision", "torchvision::deform_conv2d")
def deformable_convolution(op: Op) -> Work:
    """input (N, Cin, H, W), weight (Cout, Cin/groups, kh, kw), offset (N, 2 groups kh kw, H', W'): a convolution over samples.

    Every output position samples Cin x kh x kw elements bilinearly, times a mask if there is one.
    """
    data, weight, output = operand(op, "input"), operand(op, "weight"), op.outputs[0]
    positions = output.elements // max(output.shape[1], 1)
    samples = positions * data.shape[1] * prod(weight.shape[2:])
    mask, bias = op.tensor("mask"), op.tensor("bias")
    masked = bool(op.argument("use_mask", mask is not None and mask.elements > 0))
    return Work(
        macs=output.elements * prod(weight.shape[1:]),
        bias=output.elements if bias is not None and bias.elements else 0,
        flops=samples * (BILINEAR + masked),
    )


@register("vision", "torchvision::roi_align", "torchvision::qroi_align", "torchvision::ps_roi_align")
def roi_align(op: Op) -> Work:
    """input (N, C, H, W), rois (K, 5) -> (K, C', ph, pw): every bin is the mean of ratio^2 bilinear samples."""
    ratio = int(op.argument("sampling_ratio", -1))
    samples = (ratio if ratio > 0 else ASSUMED_SAMPLES) ** 2
    return Work(flops=op.outputs[0].elements * samples * (BILINEAR + 1))


@register("vision", "torchvision::roi_pool", "torchvision::ps_roi_pool")
def roi_pool(op: Op) -> Work:
    """One compare or addition per element of a bin. Sizes of boxes are values: bins share out the whole feature map."""
    data, output = op.inputs[0], op.outputs[0]
    bins = max(prod(output.shape[-2:]), 1)
    return Work(flops=output.elements * max(prod(data.shape[-2:]) // bins, 1))


@register("vision", "torchvision::nms", "torchvision::qnms")
def non_maximum_suppression(op: Op) -> Work:
    """dets (K, 4): K (K - 1) / 2 pairs of boxes, and a sort of K scores (compares not counted: they are values of few bytes)."""
    boxes = operand(op, "dets").shape[0]
    return Work(flops=boxes * (boxes - 1) // 2 * INTERSECTION_OVER_UNION)


@register("vision", "torchvision::box_iou_rotated")
def rotated_boxes(op: Op) -> Work:
    """boxes1 (N, 5), boxes2 (M, 5) -> (N, M): counted like upright boxes; the polygon's corners are values."""
    return Work(flops=op.outputs[0].elements * INTERSECTION_OVER_UNION)
