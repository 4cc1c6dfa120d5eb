"""Roofs and ceilings: which are drawn, which are on, and which are left out with a reason."""

from __future__ import annotations

import pytest

from modelstat.report.chart.device import Device
from modelstat.report.chart.view import views
from tests.report.chart.nets import analysis, copies
from tests.report.sample import net_trace


def board(gpu: str, **changes: object) -> Device:
    return views([analysis(net_trace(**changes)[0], gpu)])[0].device  # type: ignore[arg-type]


def test_the_v100_in_fp32() -> None:
    device = board("v100")
    assert [(roof.name, roof.bandwidth, roof.on) for roof in device.roofs] == [
        ("HBM2", 900e9, True),
        ("L1, shared memory", 80 * 128 * 1380e6, False),  # SMs x bytes per clock x clock
    ]
    on = [(ceiling.name, ceiling.flops, ceiling.ridge) for ceiling in device.ceilings if ceiling.on]
    assert on == [
        ("fp32 CUDA cores", 14.0e12, 14.0e12 / 900e9),
        ("fp32 element-wise", 7.0e12, 7.0e12 / 900e9),  # half of it
    ]
    assert ("fp16 tensor cores", 112e12) in [(each.name, each.flops) for each in device.ceilings if not each.on]
    assert device.left_out == ("L2: no source states its bandwidth",)


def test_a_peak_that_is_missing_is_left_out_and_named() -> None:
    """The V100 has no tf32."""
    device = board("v100", precision="tf32")
    assert [each.name for each in device.ceilings if each.on] == ["fp32 element-wise"]
    assert device.left_out[0].startswith("ceiling of tf32 contractions: Tesla V100 PCIe 32GB")


def test_a_tpu_has_no_vector_peak_and_memories_without_a_source() -> None:
    reasons = " ".join(board("tpu-v4").left_out)
    assert "VMEM and CMEM: no source" in reasons
    assert "no vector peak" in reasons
    assert [roof.name for roof in board("tpu-v4").roofs] == ["HBM2"]


@pytest.mark.parametrize("gpu", ["mi300x", "m1", "cores=2560,clock=1815MHz,bandwidth=448GB/s"])
def test_l1_is_known_for_nvidia_only(gpu: str) -> None:
    device = board(gpu)
    assert len(device.roofs) == 1
    assert any(reason.startswith("L1:") for reason in device.left_out)


def test_a_model_that_computes_nothing_has_no_ceiling_on() -> None:
    device = views([analysis(copies())])[0].device
    assert [each.on for each in device.ceilings] == [False] * len(device.ceilings)
    assert device.roofs[0].on  # both copies are bound by it


def test_the_panel_has_every_peak_or_its_reason() -> None:
    rows = {(row.precision, row.unit): row for row in board("v100").peaks}
    assert rows["fp32", "CUDA cores"].peak == "14.0 TFLOP/s"
    assert rows["fp32", "CUDA cores"].ridge == pytest.approx(14000 / 900)
    assert rows["tf32", "contractions"].peak is None
    assert "tf32" in rows["tf32", "contractions"].source
