"""The figure of measured points."""

from __future__ import annotations

import io
from typing import Any

import pytest

from modelstat.report.chart.measured import Mark, Measured, Place, measured
from modelstat.report.chart.view import views
from modelstat.report.plot.figure import draw, save
from modelstat.report.plot.measured import NAMED, SERIES
from modelstat.report.plot.theme import THEMES, Theme
from tests.measure.overlays import CONV_BYTES, CONV_FLOPS, RELU_BYTES, RELU_FLOPS, analysis, laid

pytest.importorskip("matplotlib", reason="the plot extra is optional")

FILES = ["torch_gpu.json", "torch_cpu.json.gz", "ncu_raw.csv", "ncu_caches.csv"]


def drawn(found: Measured, theme: Theme = "light") -> Any:
    return draw(views([analysis()], measured=found), theme=theme)


def spots(figure: Any, label: str) -> list[tuple[float, float]]:
    """Where the marks of one line of the legend stand."""
    (collection,) = [each for each in figure.axes[0].collections if each.get_label() == label]
    return [tuple(each) for each in collection.get_offsets()]


def test_marks_stand_where_the_arithmetic_puts_them() -> None:
    figure = drawn(measured(laid("torch_gpu.json")))
    assert spots(figure, "measured") == [
        pytest.approx((CONV_FLOPS / CONV_BYTES, CONV_FLOPS / 42e-6)), pytest.approx((RELU_FLOPS / RELU_BYTES, RELU_FLOPS / 5e-6)),
    ]  # fmt: skip
    predicted = [op.seconds for op in analysis().predictions[0].ops][:2]
    assert spots(figure, "predicted") == [
        pytest.approx((CONV_FLOPS / CONV_BYTES, CONV_FLOPS / predicted[0])),
        pytest.approx((RELU_FLOPS / RELU_BYTES, RELU_FLOPS / predicted[1])),
    ]
    ends = {tuple(line.get_xdata()) for line in figure.axes[0].lines}
    assert (CONV_FLOPS / CONV_BYTES,) * 2 in ends  # a line straight up to the predicted point


def test_counters_and_caches() -> None:
    figure = drawn(measured(laid("ncu_caches.csv")))
    rates = [6_000_150 / 37.5e-6, 32_768 / 4e-6]
    for label, sizes in (("by counters", (128_000, 256_000)), ("over L2 bytes (no roof known)", (256_000, 512_000)),
                         ("over L1 bytes", (1_024_000, 512_000))):  # fmt: skip
        places = zip((6_000_150, 32_768), sizes, rates, strict=True)
        assert spots(figure, label) == [pytest.approx((flops / size, rate)) for flops, size, rate in places]
    labels = [text.get_text() for text in figure.axes[0].texts]
    # 108 SMs x 128 B x 1410 MHz.
    assert "L1, shared memory 19492 GB/s" in labels
    assert "L1, shared memory 19492 GB/s" not in [text.get_text() for text in drawn(measured(laid("ncu_raw.csv"))).axes[0].texts]


def test_steps_are_marks_of_their_own() -> None:
    figure = drawn(measured(laid("torch_cpu.json.gz")))
    overlay = laid("torch_cpu.json.gz")
    assert [y for _, y in spots(figure, "step")] == pytest.approx([step.point.rate for step in overlay.steps])
    assert overlay.mean is not None
    assert spots(figure, "mean of 2 steps, measured") == [pytest.approx((overlay.mean.intensity, overlay.mean.rate))]


def test_kinds_are_told_apart_without_colour() -> None:
    for kind in ("op", "step", "whole", "pass"):
        signs = [(each.marker, each.colour is None) for each in SERIES if kind in each.kinds and each.field in ("measured", "predicted")]
        assert len(set(signs)) == len(signs)
    others = [each.marker for each in SERIES if each.field in ("counted", "l2", "l1") and each.kinds[0] == "op"]
    assert len({*others, "o"}) == 4


def crowd() -> Measured:
    """Twenty ops on nearly the same spot."""
    marks = [
        Mark(kind="op", name="op", path=f"stage.block.{index}.convolution", seconds=1e-3, measured=Place(1e9 + index, 1e8, 1e-3))
        for index in range(20)
    ]
    return Measured("crowd", tuple(marks), 0, ())


@pytest.mark.parametrize("theme", ["light", "paper"])
def test_names_cover_neither_each_other_nor_a_roof_s_name(theme: Theme) -> None:
    figure = drawn(crowd(), theme)
    from matplotlib.text import Text

    figure.draw_without_rendering()
    texts = figure.axes[0].texts
    boxes = [Text.get_window_extent(text) for text in texts]
    assert len([text for text in texts if "block" in text.get_text()]) >= 3
    assert [one for index, one in enumerate(boxes) if one.count_overlaps(boxes[index + 1 :])] == []
    inside = figure.axes[0].get_window_extent()
    assert all(inside.x0 <= box.x0 and box.x1 <= inside.x1 for text, box in zip(texts, boxes, strict=True) if "block" in text.get_text())
    assert len([text for text in texts if "block" in text.get_text()]) <= NAMED


@pytest.mark.parametrize("theme", list(THEMES))
@pytest.mark.parametrize("name", FILES)
def test_the_same_points_give_the_same_bytes(name: str, theme: Theme) -> None:
    def saved() -> bytes:
        file = io.BytesIO()
        save(views([analysis()], measured=measured(laid(name))), file, "svg", theme=theme)
        return file.getvalue()

    assert saved() == saved()


def test_nothing_measured_still_draws() -> None:
    assert drawn(Measured("empty\x1b$x_{", (), 0, ())).axes[0].get_title(loc="left").endswith("measured: empty\\x1b$x_{")
