"""The sign of a change, on four rows whose pairs can be counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def scored(script: Callable[[str], Any], model: str, gmacs: float, measured: float, predicted: float, ideal: float, gpu: str = "t4") -> Any:
    row = script("rows").Row(1, "timm", gpu, model, "3x8x8", 2, "fp32", "nchw", "eager", measured, 1.0, gmacs)
    return script("score").Scored(row, predicted, 0.0, 9.0, ideal)


@pytest.mark.parametrize(
    ("light_only", "pairs", "right", "right_roofline"),
    [
        # ghostnet is slower than resnet and vgg although it multiplies less; resnet is not slower than vgg.
        (False, 2, 1, 0),
        (True, 2, 1, 0),
    ],
)
def test_pairs(script: Callable[[str], Any], light_only: bool, pairs: int, right: int, right_roofline: int) -> None:
    rows = [
        scored(script, "timm:ghostnet_100", 0.1, 3.0, 2.5, 1.0),
        scored(script, "timm:resnet18", 1.8, 2.0, 2.6, 1.5),
        scored(script, "timm:vgg11", 7.6, 2.1, 2.0, 2.0),
        # On another GPU: no pair with any of them. 5 % more time are no change.
        scored(script, "timm:mobilenetv2_100", 0.3, 9.0, 9.0, 9.0, gpu="v100-pcie-32"),
        scored(script, "timm:densenet121", 2.9, 8.6, 9.9, 9.9, gpu="v100-pcie-32"),
    ]
    found = script("pairs").direction(rows, light_only=light_only)
    assert found == (pairs, right, right_roofline)
    assert found.share == right / pairs


def test_resnet_is_not_light(script: Callable[[str], Any]) -> None:
    rows = [scored(script, "timm:resnet18", 1.8, 3.0, 3.0, 3.0), scored(script, "timm:vgg11", 7.6, 2.0, 2.0, 2.0)]
    assert script("pairs").direction(rows, light_only=True) == (0, 0, 0)
    assert script("pairs").direction(rows, light_only=False) == (1, 1, 1)
