from __future__ import annotations

from typing import Any

import pytest

from modelstat.cost.registry import cost_of
from tests.cost.ops import op


@pytest.mark.parametrize(
    ("name", "data", "output", "flops"),
    [
        ("aten::upsample_nearest2d", (1, 4, 6, 6), (1, 4, 12, 12), 0),
        ("aten::upsample_linear1d", (1, 4, 6), (1, 4, 12), 48 * 3),
        ("aten::upsample_bilinear2d", (1, 4, 12, 12), (1, 4, 18, 18), 4 * 18 * 18 * 7),
        ("aten::upsample_trilinear3d", (1, 2, 3, 3, 3), (1, 2, 6, 6, 6), 2 * 216 * 15),
        ("aten::upsample_bicubic2d", (1, 4, 12, 12), (1, 4, 18, 18), 4 * 18 * 18 * 31),
        # shrinking by 2 widens a filter of 2 taps to 4: first 16 x 8, then 8 x 8
        ("aten::_upsample_bilinear2d_aa", (1, 3, 16, 16), (1, 3, 8, 8), 3 * (16 * 8 * 7 + 8 * 8 * 7)),
        # enlarging keeps the 4 taps of the cubic filter
        ("aten::_upsample_bicubic2d_aa", (1, 3, 8, 8), (1, 3, 16, 16), 3 * (8 * 16 * 7 + 16 * 16 * 7)),
    ],
)
def test_interpolation(name: str, data: Any, output: Any, flops: int) -> None:
    cost = cost_of(op(name, {"self": data}, output))
    assert (cost.flops, cost.macs, cost.family) == (flops, 0, "resample")


@pytest.mark.parametrize(("mode", "flops"), [(0, 100 * 14 + 800 * 7), (1, 100 * 8), (2, 100 * 46 + 800 * 31)])
def test_grid_sample(mode: int, flops: int) -> None:
    inputs = {"input": (1, 8, 20, 20), "grid": (1, 10, 10, 2)}
    assert cost_of(op("aten::grid_sampler_2d", inputs, (1, 8, 10, 10), interpolation_mode=mode)).flops == flops


def test_grid_sample_of_volumes() -> None:
    inputs = {"input": (1, 2, 8, 8, 8), "grid": (1, 4, 4, 4, 3)}
    assert cost_of(op("aten::grid_sampler_3d", inputs, (1, 2, 4, 4, 4), interpolation_mode=0)).flops == 64 * 31 + 128 * 15


def test_affine_grid_is_a_product() -> None:
    cost = cost_of(op("aten::affine_grid_generator", {"theta": (2, 2, 3)}, (2, 5, 7, 2), size=[2, 1, 5, 7]))
    assert cost.macs == 2 * 35 * 2 * 3
