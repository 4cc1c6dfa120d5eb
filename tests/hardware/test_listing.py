from __future__ import annotations

import pytest

from modelstat.errors import UnknownGpuError
from modelstat.hardware.database import all_gpus, find
from modelstat.hardware.listing import LIST_COLUMNS, PEAK_COLUMNS, list_gpus, view_gpu


def test_the_list_has_every_gpu_once() -> None:
    rows = list_gpus()
    assert [row[0] for row in rows] == [gpu.key for gpu in all_gpus()]
    assert {len(row) for row in rows} == {len(LIST_COLUMNS)}


def test_a_row_of_the_list() -> None:
    row = dict(zip(LIST_COLUMNS, next(row for row in list_gpus("v100") if row[0] == "v100-pcie-32"), strict=True))
    assert row["memory (GB)"] == 32
    assert row["bandwidth (GB/s)"] == 900
    assert row["fp32 (TFLOP/s)"] == 14.0
    assert row["fp16 (TFLOP/s)"] == 112
    assert row["ridge fp32"] == pytest.approx(14_000 / 900)
    assert row["ridge fp16"] == pytest.approx(112_000 / 900)
    assert row["confidence"] == "vendor-doc"


def test_unknown_figures_are_none_and_not_zero() -> None:
    row = dict(zip(LIST_COLUMNS, list_gpus("tpu-v4")[0], strict=True))
    assert row["fp32 (TFLOP/s)"] is None
    assert row["ridge fp32"] is None


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("4090", ["rtx-4090", "rtx-4090-d", "rtx-4090-laptop"]),
        ("2080ti", ["rtx-2080-ti"]),
        ("hopper pcie", ["h100-pcie", "h800-pcie"]),
        ("AMD rdna", ["rx-7900-xtx"]),
    ],
)
def test_the_filter_needs_every_word(text: str, keys: list[str]) -> None:
    assert [row[0] for row in list_gpus(text)] == keys


def test_a_filter_that_finds_nothing_names_the_nearest() -> None:
    with pytest.raises(UnknownGpuError, match="rtx-4090"):
        list_gpus("rtx 40900")


def test_the_view_of_one_gpu() -> None:
    view = view_gpu(find("4090"))
    facts = dict(view.facts)
    assert facts["bandwidth"] == "1008 GB/s (21 Gbit/s x 384 bit / 8 = 1008 GB/s)"
    assert facts["other boards"] == "rtx-4090-d, rtx-4090-laptop"
    assert "exceptions" not in facts
    peaks = {(row[0], row[1]): dict(zip(PEAK_COLUMNS, row, strict=True)) for row in view.peaks}
    assert peaks["fp16", "matmul"]["peak"] == "165 TFLOP/s"
    assert peaks["fp16", "matmul"]["ridge (FLOP/B)"] == pytest.approx(165_200 / 1008)
    assert peaks["fp16", "matmul"]["column"] == "fp16_tensor"
    assert peaks["int8", "matmul"]["peak"] == "661 TOP/s"
    assert peaks["fp32", "vector"]["peak"] == "41.3 TFLOP/s"
    assert peaks["fp4", "matmul"]["peak"] is None
    assert peaks["fp4", "matmul"]["source"] == "no figure in column fp4_tensor"


def test_every_gpu_and_a_definition_can_be_viewed() -> None:
    for gpu in (*all_gpus(), find("2070 super,clock=1815MHz"), find("fp32=14,bandwidth=900GB/s")):
        view = view_gpu(gpu)
        assert dict(view.facts)["key"] == gpu.key
        assert {len(row) for row in view.peaks} == {len(PEAK_COLUMNS)}
    assert "exceptions" in dict(view_gpu(find("h20")).facts)
    assert "fp32 9.293 TFLOP/s" in dict(view_gpu(find("2070 super,clock=1815MHz")).facts)["derived"]
