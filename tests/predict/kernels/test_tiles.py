from __future__ import annotations

import pytest

from modelstat.hardware.database import find
from modelstat.predict.kernels.rates import rates
from modelstat.predict.kernels.tiles import limited_by_power, product_seconds, tile_seconds, waves

PLAIN = {"tail": 1.0, "ramp": 0.0, "prologue": 0.0, "split_k": 1e9, "throttle": 0.0}
V100 = rates(find("v100"), "float32")
"""80 SMs, 14.0 TFLOP/s."""


@pytest.mark.parametrize(
    ("blocks", "slots", "tail", "expected"), [(80, 80, 1.0, 1), (81, 80, 1.0, 2), (120, 80, 0.5, 1.75), (40, 80, 0.0, 0.5)]
)
def test_waves(blocks: float, slots: float, tail: float, expected: float) -> None:
    assert waves(blocks, slots, tail) == pytest.approx(expected)


def test_a_full_wave_runs_at_the_peak() -> None:
    # 10 x 8 tiles of 128 x 128 on 80 SMs.
    seconds = tile_seconds(128, 128, 1.0, 1280.0, 1024.0, 1000.0, V100, PLAIN)
    assert seconds == pytest.approx(2 * 1280 * 1024 * 1000 / 14.0e12)


def test_one_tile_more_is_a_wave_more() -> None:
    one = tile_seconds(128, 128, 1.0, 1280.0, 1024.0, 1000.0, V100, PLAIN)
    assert tile_seconds(128, 128, 1.0, 1281.0, 1024.0, 1000.0, V100, PLAIN) == pytest.approx(2 * one)


def test_a_tile_may_lie_on_its_side() -> None:
    # 64 rows by 128 x 80 columns: 80 tiles of 64 x 128, not 160 of 128 x 64.
    seconds = tile_seconds(128, 64, 1.0, 64.0, 128.0 * 80, 1000.0, V100, PLAIN)
    assert seconds == pytest.approx(2 * 64 * 128 * 80 * 1000 / 14.0e12)


def test_a_split_sum_fills_the_gpu() -> None:
    # 1 tile, k = 8000 in parts of at least 100: 80 parts, each on an SM.
    split = PLAIN | {"split_k": 100.0}
    seconds = tile_seconds(128, 128, 1.0, 128.0, 128.0, 8000.0, V100, split)
    assert seconds == pytest.approx(2 * 128 * 128 * 8000 / 14.0e12)


def test_the_best_tile_counts() -> None:
    both = PLAIN | {"tile_128x128": 0.9, "tile_64x64": 0.8}
    # 64 x 64 outputs: the small tile wastes nothing.
    assert product_seconds(1.0, 64.0, 64.0, 1000.0, V100, both) == pytest.approx(2 * 64 * 64 * 1000 * 80 / 14.0e12 / 0.8)


def test_power_limits_useful_operations() -> None:
    t4 = rates(find("t4"), "float32")
    flops = 1e12
    at_once = flops / t4.issue
    assert limited_by_power(at_once, flops, t4, PLAIN) == pytest.approx(flops / t4.power)
    # A kernel at a fifth of the peak is not limited, unless the lowered clock slows everything.
    assert limited_by_power(5 * at_once, flops, t4, PLAIN) == pytest.approx(5 * at_once)
    assert limited_by_power(5 * at_once, flops, t4, PLAIN | {"throttle": 1.0}) == pytest.approx(5 * at_once * t4.issue / t4.power)
