"""Figures: every kind in every theme and format, the same bytes each time."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import msgspec
import pytest

from modelstat.errors import MissingExtraError, UsageError
from modelstat.records import Trace
from modelstat.report.chart.view import View, views
from modelstat.report.plot import Kind
from modelstat.report.plot.figure import check, draw, form_of, require, save
from modelstat.report.plot.theme import THEMES, Theme
from tests.report.chart.nets import HOSTILE, analysis, copies, deep, empty, hostile
from tests.report.sample import net_trace

matplotlib = pytest.importorskip("matplotlib", reason="the plot extra is optional")

STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def batches(*sizes: int) -> tuple[View, ...]:
    return views([analysis(msgspec.structs.replace(deep(2), batch=size)) for size in sizes])


def saved(shown: tuple[View, ...], form: str = "svg", kind: Kind = "roofline", theme: Theme = "light") -> bytes:
    file = io.BytesIO()
    save(shown, file, form, kind=kind, theme=theme)
    return file.getvalue()


@pytest.mark.parametrize("form", ["png", "svg", "pdf"])
def test_the_same_views_give_the_same_bytes(form: str) -> None:
    first, second = (saved(views([analysis(deep(3))]), form) for _ in range(2))
    assert first.startswith(STARTS[form])
    assert first == second
    assert b"20" + b"26-" not in first  # no date


@pytest.mark.parametrize("theme", list(THEMES))
@pytest.mark.parametrize("kind", ["roofline", "batch", "gpus"])
def test_every_kind_in_every_theme(kind: Kind, theme: Theme) -> None:
    shown = batches(1, 2, 4) if kind == "batch" else views([analysis(deep(2), "v100", "t4", "h100")])
    assert saved(shown, kind=kind, theme=theme).startswith(b"<?xml")


@pytest.mark.parametrize(
    "trace",
    [copies(), empty(), hostile(), net_trace(precision="tf32")[0]],
    ids=["only copies", "nothing", "hostile names", "no peak"],
)
@pytest.mark.parametrize("kind", ["roofline", "gpus"])
def test_odd_models_draw(trace: Trace, kind: Kind) -> None:
    assert saved(views([analysis(trace, "v100", "t4")]), kind=kind)
    assert saved(views([analysis(trace)]))


def test_names_are_texts_and_no_formulas() -> None:
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure = draw(views([analysis(hostile())]))
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert f"block.{HOSTILE}" in texts
    assert "block.$x_{\\frac" in texts
    figure.canvas.draw()  # raises where a dollar sign starts a formula


def test_labels_of_batches_on_one_spot_do_not_touch() -> None:
    """The same trace, said to be of four batches, lies on one spot four times."""
    from matplotlib.text import Text

    figure = draw(batches(1, 64, 65, 66), kind="roofline")
    figure.draw_without_rendering()
    named = {text.get_text(): Text.get_window_extent(text) for text in figure.axes[0].texts}
    assert {"batch 1", "batch 64", "batch 65", "batch 66"} <= named.keys()
    boxes = list(named.values())
    assert [box for index, box in enumerate(boxes) if box.count_overlaps(boxes[index + 1 :])] == []


def test_what_the_roofline_holds() -> None:
    axes = draw(views([analysis(deep(2))])).axes[0]
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert "arithmetic intensity" in axes.get_xlabel()
    labels = {text.get_text() for text in axes.texts}
    assert {"HBM2 900 GB/s", "fp32 CUDA cores 14.0 TFLOP/s", "fp32 element-wise 7.00 TFLOP/s"} <= labels


def test_a_gpu_without_the_peak_has_no_bar_and_says_so() -> None:
    axes = draw(views([analysis(net_trace(precision="tf32")[0], "v100", "a100")]), kind="gpus").axes[0]
    assert len(axes.patches) == 1
    assert "no peak for this precision" in [text.get_text() for text in axes.texts]


@pytest.mark.parametrize("name", ["roofline", "roofline.jpg", "roofline.svgz"])
def test_a_format_that_is_not_drawn(name: str) -> None:
    with pytest.raises(UsageError, match=r"must end in \.png, \.svg, \.pdf"):
        form_of(Path(name))


@pytest.mark.parametrize(
    ("kind", "batches", "precisions", "gpus", "message"),
    [
        ("batch", 1, 1, 1, "several batches"),
        ("gpus", 2, 1, 3, "one batch"),
        ("gpus", 1, 2, 3, "one precision"),
        ("gpus", 1, 1, 1, "give several"),
    ],
)
def test_a_kind_with_nothing_to_draw(kind: Kind, batches: int, precisions: int, gpus: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check(kind, batches=batches, precisions=precisions, gpus=gpus)


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"\[plot\]"):
        require()
