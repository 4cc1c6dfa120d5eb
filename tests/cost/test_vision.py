from __future__ import annotations

from modelstat.cost.registry import cost_of
from tests.cost.ops import op


def test_deformable_convolution() -> None:
    inputs = {"input": (1, 8, 12, 12), "weight": (16, 8, 3, 3), "offset": (1, 18, 12, 12), "mask": (1, 9, 12, 12)}
    plain = cost_of(op("torchvision::deform_conv2d", inputs, (1, 16, 12, 12), use_mask=False))
    masked = cost_of(op("torchvision::deform_conv2d", inputs, (1, 16, 12, 12), use_mask=True))
    samples = 144 * 8 * 9
    assert (plain.macs, plain.flops) == (144 * 72 * 16, 2 * 144 * 72 * 16 + samples * 7)
    assert masked.flops - plain.flops == samples


def test_roi_align() -> None:
    inputs = {"input": (1, 256, 50, 50), "rois": (10, 5)}
    fixed = cost_of(op("torchvision::roi_align", inputs, (10, 256, 7, 7), sampling_ratio=3))
    chosen = cost_of(op("torchvision::roi_align", inputs, (10, 256, 7, 7), sampling_ratio=-1))
    outputs = 10 * 256 * 49
    assert (fixed.flops, chosen.flops) == (outputs * 9 * 8, outputs * 4 * 8)


def test_roi_pool_and_nms() -> None:
    inputs = {"input": (1, 4, 14, 14), "rois": (2, 5)}
    assert cost_of(op("torchvision::roi_pool", inputs, (2, 4, 7, 7), (2, 4, 7, 7))).flops == 2 * 4 * 49 * 4
    assert cost_of(op("torchvision::nms", {"dets": (100, 4), "scores": (100,)}, (7,))).flops == 100 * 99 // 2 * 13
