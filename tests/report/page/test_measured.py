"""Measured points in a real browser: where the page's own script puts them, and what the table and the box beside a point say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from modelstat.report.chart.measured import Mark, Measured, Place, measured
from tests.measure.overlays import CONV_BYTES, CONV_FLOPS, RELU_BYTES, RELU_FLOPS, analysis, laid
from tests.report.chart.nets import HOSTILE
from tests.report.page.driver import Open, hover, screenshot

if TYPE_CHECKING:
    from playwright.sync_api import Page


def places(page: Page, label: str) -> list[tuple[float, float]]:
    """The coordinates of one line of the legend."""
    script = f"(({{x, y}}) => ({{x, y}}))(find('measured-chart').data.find((each) => each.name === '{label}'))"
    trace: dict[str, Any] = page.evaluate(script)
    return list(zip(trace["x"], trace["y"], strict=True))


def rows(page: Page) -> list[list[str]]:
    found: list[list[str]] = page.eval_on_selector_all(
        "#measured-table tbody tr", "lines => lines.map((line) => [...line.cells].map((cell) => cell.textContent))"
    )
    return found


def near(*spots: tuple[float, float]) -> list[Any]:
    """The page's numbers have five digits."""
    return [pytest.approx(spot, rel=1e-4) for spot in spots]


def test_ops_stand_where_the_arithmetic_puts_them(opened: Open) -> None:
    page = opened("measured", analysis(), measured=measured(laid("torch_gpu.json")))
    assert page.is_visible("#measured")
    assert places(page, "measured") == near(
        (CONV_FLOPS / CONV_BYTES, CONV_FLOPS / 42e-6), (RELU_FLOPS / RELU_BYTES, RELU_FLOPS / 5e-6)
    )
    predicted = analysis().predictions[0].ops[0].seconds
    assert places(page, "predicted")[:1] == near((CONV_FLOPS / CONV_BYTES, CONV_FLOPS / predicted))
    assert page.locator("#measured-chart .scatterlayer path.point").count() == 6  # two ops and the whole, on both sides
    first = rows(page)[0]
    assert first[:4] == ["0", "aten::convolution", "2", "42.0 us"]
    assert first[5:8] == [f"{(predicted / 42e-6 - 1) * 100:.0f} %", f"{CONV_FLOPS / CONV_BYTES:.2f}", "21.5 GFLOP/s"]
    assert "lonely 7.00 us" in page.inner_text("#measured-notes")
    hover(page, "#measured-chart")
    assert "measured" in page.inner_text("#tooltip")
    page.click("#theme")
    assert places(page, "measured")[0] == near((CONV_FLOPS / CONV_BYTES, CONV_FLOPS / 42e-6))[0]
    screenshot(page, "measured")


def test_counters_caches_and_their_note(opened: Open) -> None:
    page = opened("counters", analysis(), measured=measured(laid("ncu_caches.csv")))
    rate = 6_000_150 / 37.5e-6
    assert places(page, "by counters")[:1] == near((6_000_150 / 128_000, rate))
    assert places(page, "over L2 bytes (no roof known)")[:1] == near((6_000_150 / 256_000, rate))
    assert places(page, "over L1 bytes")[:1] == near((6_000_150 / 1_024_000, rate))
    assert "no source states the bandwidth of L2" in page.inner_text("#measured-notes")
    roofs = page.evaluate("find('measured-chart').layout.annotations.map((each) => each.text)")
    assert "L1, shared memory 19492 GB/s" in roofs  # 108 SMs x 128 B x 1410 MHz
    screenshot(page, "counters")


def test_steps_and_their_mean(opened: Open) -> None:
    page = opened("steps", analysis(), measured=measured(laid("torch_cpu.json.gz")))
    steps = [step.point for step in laid("torch_cpu.json.gz").steps]
    assert places(page, "step") == near(*[(step.intensity or 0, step.rate or 0) for step in steps])
    assert [row[0] for row in rows(page)[-3:]] == ["step 1", "step 2", "mean of 2 steps"]
    screenshot(page, "steps")


def test_names_of_a_profile_are_data(opened: Open) -> None:
    mark = Mark(kind="kernel", name=HOSTILE, seconds=1e-3, counted=Place(1e9, 1e8, 1e-3))
    whole = msgspec.structs.replace(mark, kind="whole")
    page = opened("hostile-profile", analysis(), measured=Measured(HOSTILE, (mark, whole), 2, (HOSTILE,)))
    assert page.locator("img").count() == 0
    assert rows(page)[0][0] == HOSTILE
    assert HOSTILE in page.inner_text("#measured-source")
    assert "2 shorter ops and kernels are left out" in page.inner_text("#measured-notes")
    hover(page, "#measured-chart")
    assert HOSTILE in page.inner_text("#tooltip")


def test_without_a_profile_there_is_no_section(opened: Open) -> None:
    assert not opened("plain", analysis()).is_visible("#measured")
