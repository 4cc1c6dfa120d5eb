"""What a reader does with the page: filter, hover, sort, select, with the mouse and with the keyboard. Screenshots go to artifacts/."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from modelstat.predict.execution import Execution
from tests.report.chart.nets import analysis, deep
from tests.report.page.driver import Open, drawn, hover, listed, screenshot, settle

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture
def shown(opened: Open) -> Page:
    """The page of 40 ops and one without a formula, as after a reset."""
    page: Page = opened("net", analysis(deep(20), "v100", "t4", execution=Execution(cuda_graph=True)))
    page.evaluate("chooseView(0)")
    page.click("button[type=reset]")
    page.locator("#ops tbody tr:nth-child(40)").wait_for(state="attached")
    return page


def test_points_and_rows_are_the_ops(shown: Page) -> None:
    assert len(drawn(shown)) == len(listed(shown, "path")) == 40
    assert "40 of 40 ops shown: 100.0 % of the time" in shown.inner_text("#status")
    screenshot(shown, "start")


def test_the_browsers_own_marks_are_as_many(shown: Page) -> None:
    assert shown.locator("#point-chart .scatterlayer path.point").count() == 40


def test_filtering_by_bound_leaves_only_those_points_and_rows(shown: Page) -> None:
    bounds = {point["bound"] for point in drawn(shown)}
    assert len(bounds) > 1
    unwanted = sorted(bounds)[0]
    shown.uncheck(f"[data-bound={unwanted}]")
    settle(shown)
    assert {point["bound"] for point in drawn(shown)} == set(listed(shown, "bound")) == bounds - {unwanted}
    assert len(drawn(shown)) == len(listed(shown, "bound")) < 40
    screenshot(shown, "filtered")


def test_filtering_by_family_text_and_share(shown: Page) -> None:
    shown.uncheck("[data-family=activation]")
    settle(shown)
    assert set(listed(shown, "family")) == {point["family"] for point in drawn(shown)} == {"convolution"}
    shown.fill("#text", "STAGE1")
    settle(shown)
    assert len(drawn(shown)) == len(listed(shown, "path")) == 10
    assert all(path.startswith("stage1.") for path in listed(shown, "path"))
    shown.fill("#share", "99")
    settle(shown)
    assert (drawn(shown), listed(shown, "path")) == ([], [])


def test_layers_instead_of_ops(shown: Page) -> None:
    shown.check("[name=level][value=layers]")
    assert set(listed(shown, "name")) == {"Conv2d", "ReLU"}


def test_transfers_are_off_at_first_and_add_points_rows_and_time(shown: Page) -> None:
    before = shown.inner_text("#tiles")
    assert "transfer" not in listed(shown, "family")
    shown.check("#transfers")
    assert [point["name"] for point in drawn(shown) if point["transfer"]] == ["input to the GPU", "output to the host"]
    assert listed(shown, "family").count("transfer") == 2
    assert shown.inner_text("#tiles") != before
    assert "with transfers" in shown.inner_text("#tiles")
    screenshot(shown, "transfers")


def test_roofs_and_ceilings_can_be_switched(shown: Page) -> None:
    def labels() -> list[str]:
        found: list[str] = shown.evaluate("find('point-chart').layout.annotations.map((each) => each.text)")
        return found

    assert not any(text.startswith("L1") for text in labels())
    shown.check("[data-roof='L1, shared memory']")
    assert any(text.startswith("L1, shared memory 14131 GB/s") for text in labels())  # 80 x 128 B x 1380 MHz
    shown.uncheck("[data-roof='fp32 CUDA cores']")
    assert not any(text.startswith("fp32 CUDA cores") for text in labels())


def test_hovering_tells_everything_of_a_point(shown: Page) -> None:
    shown.fill("#text", "stage0.conv0")
    settle(shown)
    hover(shown, "#point-chart")
    text = shown.inner_text("#tooltip")
    counts = ("1x3x32x128", "1.80 M", "181.12 kB", "9.95 FLOP/B")
    for part in ("stage0.conv0", "aten::convolution", *counts, "of peak FLOP/s", "of peak bandwidth", "ideal", "predicted"):
        assert part in text
    shown.mouse.move(5, 5)
    shown.wait_for_selector("#tooltip", state="hidden")


def test_sorting_by_the_header(shown: Page) -> None:
    def bytes_() -> list[int]:
        script = "lines => lines.map((line) => points()[Number(line.dataset.row)].bytes)"
        found: list[int] = shown.eval_on_selector_all("#ops tbody tr", script)
        return found

    shown.click("[data-key=bytes]")
    assert bytes_() == sorted(bytes_(), reverse=True)
    shown.keyboard.press("Enter")  # the button keeps the focus
    assert bytes_() == sorted(bytes_())
    assert shown.get_attribute("th:has([data-key=bytes])", "aria-sort") == "ascending"


def test_the_keyboard_goes_from_point_to_point_and_to_the_row_and_back(shown: Page) -> None:
    heaviest = shown.evaluate("Math.max(...points().filter(isVisible).map((point) => point.seconds))")
    shown.focus("#point-chart")
    shown.keyboard.press("ArrowRight")
    assert shown.evaluate("points()[state.selected].seconds") == heaviest
    assert shown.locator("#ring").count() == 1
    shown.wait_for_selector("#tooltip:not([hidden])")
    shown.keyboard.press("ArrowRight")
    second = shown.evaluate("state.selected")
    screenshot(shown, "selected")
    shown.focus("#point-chart")
    shown.keyboard.press("Enter")
    assert shown.evaluate("document.activeElement.dataset.row") == str(second)
    shown.keyboard.press("ArrowDown")
    assert shown.evaluate("state.selected") != second
    shown.keyboard.press("Enter")
    assert shown.evaluate("document.activeElement.id") == "point-chart"
    shown.keyboard.press("Escape")
    assert shown.evaluate("state.selected") is None
    assert shown.locator("#ring").count() == 0


def test_a_row_finds_its_point(shown: Page) -> None:
    shown.click("#ops tbody tr:nth-child(3)")
    assert shown.locator("#ring").count() == 1
    assert shown.locator("#ops tr[aria-current=true]").count() == 1


def test_a_module_of_the_tree_filters_chart_and_table(shown: Page) -> None:
    shown.click("#tree button[aria-label^='stage1 ']")
    shown.click("#only")
    settle(shown)
    assert {path.split(".")[0] for path in listed(shown, "path")} == {"stage1"}
    shown.select_option("#weigh", "bytes")
    assert "of the model" in (shown.get_attribute("#tree button", "aria-label") or "")


def test_dark_and_light(shown: Page) -> None:
    assert shown.get_attribute("html", "data-theme") == "light"
    shown.click("#theme")
    assert shown.get_attribute("html", "data-theme") == "dark"
    assert shown.evaluate("find('point-chart').layout.paper_bgcolor") == "#14171b"
    screenshot(shown, "dark")
    shown.click("#theme")


def test_another_view_can_be_chosen(shown: Page) -> None:
    shown.select_option("#view", "1")
    assert "Tesla T4" in shown.inner_text("#brief")
    shown.focus("#programs tbody tr")
    shown.keyboard.press("Enter")
    assert "V100" in shown.inner_text("#brief")


def test_the_memory_names_its_peak_and_the_capacity(shown: Page) -> None:
    shown.check("#capacity")
    assert shown.evaluate("find('memory-chart').data.at(-1).y[0]") == pytest.approx(32 * 2**30, rel=1e-4)  # rounded for the page
    assert "Peak at op" in shown.inner_text("#memory-text")
