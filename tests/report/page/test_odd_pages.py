"""The page of odd models: hostile names, nothing to compute, nothing at all, no peak, and two models in one page."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec

from modelstat import units
from tests.report.chart.nets import HOSTILE, analysis, copies, empty, hostile
from tests.report.page.driver import Open, drawn, hover, listed, screenshot
from tests.report.sample import net_trace


def test_hostile_names_are_text_everywhere(opened: Open) -> None:
    """A dialog, a request or an error would fail in ``opened``."""
    page = opened("hostile", analysis(hostile()), analysis(msgspec.structs.replace(hostile(), model="other" + HOSTILE)))
    assert page.locator("img").count() == 0
    assert f"block.{HOSTILE}" in listed(page, "path")
    assert HOSTILE in page.inner_text("h1")
    assert HOSTILE in page.inner_text("#notes")
    page.focus("#point-chart")
    page.keyboard.press("ArrowRight")
    assert "block." in page.inner_text("#tooltip")
    page.select_option("#colour", "family")
    hover(page, "#program-chart")
    assert HOSTILE in page.inner_text("#tooltip")
    assert HOSTILE in (page.locator("#program-chart .textpoint").first.text_content() or "")
    opened("hostile")
    screenshot(page, "hostile")


def test_a_model_that_only_copies_still_draws(opened: Open) -> None:
    page = opened("copies", analysis(copies()))
    assert len(drawn(page)) == len(listed(page, "path")) == 2
    assert page.locator("#point-chart .scatterlayer path.point").count() == 2
    screenshot(page, "copies")


def test_a_model_that_does_nothing_has_an_empty_chart(opened: Open) -> None:
    page = opened("empty", analysis(empty()))
    assert (drawn(page), listed(page, "path")) == ([], [])
    assert page.inner_text("#memory-text").startswith("No op runs.")


def test_a_missing_peak_is_said(opened: Open) -> None:
    page = opened("peak", analysis(net_trace(precision="tf32")[0]))
    assert "ceiling of tf32 contractions" in page.inner_text("#brief")
    assert "No ceiling of tf32 contractions" in page.inner_text("#status")
    assert page.inner_text("#tiles b") == "-"  # unknown, not zero


def test_before_and_after_are_joined_by_an_arrow(opened: Open) -> None:
    before, _ = net_trace()
    after = msgspec.structs.replace(before, ops=(before.ops[0], before.ops[0], *before.ops[2:]), model="after")
    changed = tuple(msgspec.structs.replace(op, module=3) if index == 1 else op for index, op in enumerate(after.ops))
    modules = tuple(msgspec.structs.replace(each, type="Conv2d") if each.path == "block.act" else each for each in after.modules)
    page = opened("change", analysis(before), analysis(msgspec.structs.replace(after, ops=changed, modules=modules)), compare=True)
    assert page.is_visible("#changes")
    labels = page.eval_on_selector_all("#programs td.text:first-child", "cells => cells.map((cell) => cell.textContent)")
    assert labels == ["before", "after"]
    rows = page.eval_on_selector_all("#change-table tbody tr", "lines => lines.map((line) => line.firstChild.textContent)")
    assert rows == ["whole model", "block.act"]
    assert page.locator("#change-chart .annotation-arrow-g").count() == 2
    screenshot(page, "change")


def test_numbers_are_written_as_python_writes_them(opened: Open) -> None:
    page = opened("copies", analysis(copies()))
    wholes = [0.0, 1.0, 224.0, 999.0, 1000.0, 999_994.0, 999_995.0, 25_557_032.0, 1.4e13]
    values = [*wholes, 1e-12, 4.2e-7, 0.00099949, 0.0009996, 0.05, 3.14159, 9.994, 9.996, 99.94, 99.96, 999.4, 999.6, 12345.678, 9.9999e14]
    pairs: dict[str, Callable[[float], str]] = {
        "count": units.count, "bytes": units.bytes_, "rate": units.flops_rate, "bandwidth": units.bandwidth, "seconds": units.seconds,
        "ratio": units.ratio, "percent": units.percent, "perSecond": units.per_second,
    }  # fmt: skip
    for name, write in pairs.items():
        given = wholes if name in ("count", "bytes") else values
        texts = page.evaluate(f"{json.dumps(given)}.map((value) => units.{name}(value))")
        assert dict(zip(given, texts, strict=True)) == {value: write(value) for value in given}, name
