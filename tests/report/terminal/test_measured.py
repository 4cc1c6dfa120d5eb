"""Measured points made of characters."""

from __future__ import annotations

import io
import re

import pytest

from modelstat.report.chart.measured import Mark, Measured, Place, measured
from modelstat.report.chart.view import views
from modelstat.report.terminal.roofline import MARGIN, NAMED, ROWS, draw
from tests.measure.overlays import analysis, laid


def drawn(found: Measured, width: int | None = None, encoding: str = "utf-8") -> list[str]:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    draw(views([analysis()], measured=found), file, width=width)
    file.seek(0)
    return file.read().splitlines()


def chart(lines: list[str]) -> list[str]:
    """The rows of the plane alone."""
    first = next(index for index, line in enumerate(lines) if "FLOP/s ┤" in line)
    return [line[MARGIN:] for line in lines[first : first + ROWS]]


@pytest.mark.parametrize("name", ["torch_gpu.json", "torch_cpu.json.gz", "ncu_caches.csv"])
@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_chart_keeps_its_width(name: str, width: int) -> None:
    # The heading folds like any text.
    assert max(map(len, drawn(measured(laid(name)), width))) <= width


def test_letters_stand_above_one_another() -> None:
    """Both are at the intensity of the op; the A100 is predicted to be faster than the sample."""
    lines = chart(drawn(measured(laid("torch_gpu.json"))))
    rows = [re.sub(r"\S{3,} [\d.]+ \S+|fp32 .*", lambda found: " " * len(found[0]), line) for line in lines]
    for letter in "AB":
        ((high, x),) = [(row, line.index(letter.lower())) for row, line in enumerate(rows) if letter.lower() in line]
        ((low, other),) = [(row, line.index(letter)) for row, line in enumerate(rows) if letter in line]
        assert (x, high < low) == (other, True)


def test_the_key_has_both_times() -> None:
    line = next(line for line in drawn(measured(laid("torch_gpu.json"))) if line.startswith("A 0"))
    flops, size = 2 * 8 * 32 * 32 * 55, 4 * (2 * 3 * 32 * 32 + 224 + 2 * 8 * 32 * 32)
    assert line.split()[:4] == ["A", "0", "42.0", "us"]
    assert f"{flops / size:.2f} {flops / 42e-6 / 1e9:.1f} G" in line


def test_counters_caches_and_steps_have_signs() -> None:
    text = " ".join(" ".join(drawn(measured(laid("ncu_caches.csv")))).split())
    assert "2 over L2 bytes (no roof is known), 1 over L1 bytes" in text
    assert "160 G" in text
    assert "x a step" in "\n".join(drawn(measured(laid("torch_cpu.json.gz"))))
    assert "x a step" not in text


def test_only_the_longest_have_letters() -> None:
    places = [Place(2.0**index, 1.0, 1e-9) for index in range(NAMED + 5)]
    marks = [Mark(kind="op", name="op", path=f"m{index}", seconds=1.0, measured=place) for index, place in enumerate(places)]
    lines = drawn(Measured("many", tuple(marks), 0, ()))
    assert [line[0] for line in lines[-NAMED:]] == [chr(ord("A") + index) for index in range(NAMED)]


def test_plain_characters_and_hostile_names() -> None:
    mark = Mark(kind="op", name="op", path="\x1b[31mred", seconds=1.0, measured=Place(1e9, 1e8, 1e-3))
    text = "\n".join(drawn(Measured("x", (mark,), 0, ()), encoding="ascii"))
    assert text.isascii()
    assert "\x1b" not in text
