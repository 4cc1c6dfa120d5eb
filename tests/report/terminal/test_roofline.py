"""The roofline made of characters."""

from __future__ import annotations

import io

import pytest

from modelstat.report.chart.view import views
from modelstat.report.terminal.canvas import BRAILLE, Canvas
from modelstat.report.terminal.roofline import NAMED, draw
from tests.report.chart.nets import analysis, copies, deep, empty, hostile
from tests.report.sample import net_trace


def drawn(*models: object, gpus: tuple[str, ...] = ("v100",), encoding: str = "utf-8", width: int | None = None, ops: bool = False) -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    draw(views([analysis(model, *gpus) for model in models]), file, width=width, ops=ops)  # type: ignore[arg-type]
    file.seek(0)
    return file.read()


@pytest.mark.parametrize("width", [None, 60, 80, 120])
def test_the_chart_keeps_its_width_and_names_its_lines(width: int | None) -> None:
    text = drawn(deep(20), width=width)
    assert max(map(len, text.splitlines())) <= (width or 80)
    for part in ("fp32 CUDA cores 14.0 TFLOP/s", "HBM2 900 GB/s", "stage0", "of roof"):
        assert part in text
    assert "\x1b" not in text


def test_the_heaviest_have_letters_and_lines() -> None:
    letters = [line[0] for line in drawn(deep(20)).splitlines() if "(Conv2d)" in line or "(ReLU)" in line]
    assert letters == [chr(ord("A") + place) for place in range(NAMED)]


def test_an_encoding_without_braille_gets_plain_characters() -> None:
    text = drawn(deep(2), encoding="ascii")
    assert text.isascii()
    assert "." in text


@pytest.mark.parametrize(
    "model", [copies(), empty(), hostile(), net_trace(precision="tf32")[0]], ids=["copies", "empty", "hostile", "no peak"]
)
@pytest.mark.parametrize("ops", [False, True])
def test_odd_models_draw(model: object, ops: bool) -> None:
    text = drawn(model, ops=ops)
    assert "Roofline of" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_missing_ceiling_is_named() -> None:
    assert "ceiling of tf32 contractions" in drawn(net_trace(precision="tf32")[0])


def test_several_views_are_whole_models() -> None:
    text = drawn(deep(2), gpus=("v100", "t4", "h100"))
    assert "Rooflines: whole models" in text
    assert [line.split()[0] for line in text.splitlines()[-3:]] == ["A", "B", "C"]


def test_names_cannot_steer_the_terminal() -> None:
    trace, _ = net_trace(("\x1b[31mred", "act", "spare"))
    assert "\x1b" not in drawn(trace)


def test_a_line_sets_the_dots_that_it_passes() -> None:
    canvas = Canvas(4, 2, fine=True)
    canvas.line(0.0, 0.0, 1.0, 0.0)
    assert [line.plain for line in canvas.line_texts()] == ["", chr(BRAILLE + 0xC0) * 4]  # the two lowest dots of each cell


def test_text_keeps_to_free_cells_inside() -> None:
    canvas = Canvas(10, 1, fine=True)
    assert canvas.text(0, 0, "abc")
    assert not canvas.text(0, 2, "de")
    assert not canvas.text(0, 8, "fgh")
    assert not canvas.text(1, 0, "i")
    assert canvas.line_texts()[0].plain == "abc"


def test_what_lies_outside_is_not_drawn() -> None:
    canvas = Canvas(4, 2, fine=False)
    canvas.mark(1.5, 0.5, "X", "")
    canvas.line(2.0, 2.0, 3.0, 3.0)
    assert [line.plain for line in canvas.line_texts()] == ["", ""]
