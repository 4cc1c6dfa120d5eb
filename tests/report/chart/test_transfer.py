"""Inputs and outputs over PCIe."""

from __future__ import annotations

import pytest

from modelstat.hardware.database import all_gpus, find
from modelstat.hardware.link import link_bytes
from modelstat.report.chart.transfer import transfers
from tests.report.chart.nets import copies, deep


@pytest.mark.parametrize(
    ("gpu", "rate"),
    [
        ("v100", 16 * 8e9 * 128 / 130 / 8),  # 3.0 x16: 8 GT/s, 128 of 130 bits
        ("a100", 16 * 16e9 * 128 / 130 / 8),
        ("4060", 8 * 16e9 * 128 / 130 / 8),  # 4.0 x8
        ("h100", 16 * 32e9 * 128 / 130 / 8),
    ],
)
def test_rates(gpu: str, rate: float) -> None:
    assert link_bytes(find(gpu)) == pytest.approx(rate)


def test_every_link_of_the_database_can_be_read() -> None:
    assert [gpu.key for gpu in all_gpus() if gpu.pcie and link_bytes(gpu) is None] == []


def test_input_and_output() -> None:
    given, returned = transfers(deep(1), find("v100"))
    speed = 16 * 8e9 * 128 / 130 / 8
    assert (given.bytes, returned.bytes) == (4 * 3 * 32 * 128, 4 * 8 * 32 * 128)
    assert given.seconds == pytest.approx(given.bytes / speed)
    assert returned.seconds == pytest.approx(returned.bytes / speed)
    assert given.transfer
    assert given.share is None


def test_what_has_no_link_or_returns_nothing_has_no_transfer() -> None:
    assert transfers(deep(1), find("m1")) == ()
    assert [point.name for point in transfers(copies(), find("v100"))] == ["input to the GPU"]
