"""The page in a real browser: Debian's Chromium, headless and offline, driven by Playwright. Screenshots go to artifacts/."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from modelstat import units
from modelstat.predict.execution import Execution
from modelstat.report.page.build import page as build
from tests.report.chart.nets import HOSTILE, analysis, copies, deep, empty, hostile, net
from tests.report.sample import net_trace

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
pytest.importorskip("plotly", reason="the html extra is optional")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium")

ARTIFACTS = Path(__file__).parents[3] / "artifacts"
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with playwright.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def opened(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """``opened(name, *analyses)`` is the page, loaded from a file without a network; complaints of its console fail the test."""
    pages: dict[str, Page] = {}
    complaints: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def get(name: str, *analyses: Any, width: int = 1280, **options: Any) -> Page:
        if name not in pages:
            path = tmp_path_factory.mktemp("page") / f"{name}.html"
            path.write_text(build(list(analyses), **options), encoding="utf-8")
            context = browser.new_context(offline=True, viewport={"width": width, "height": 900}, color_scheme="light")
            context.set_default_timeout(120_000)  # a busy machine is slow, not wrong
            page = context.new_page()
            page.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("dialog", dismiss)
            page.on("request", lambda request: complaints.append(request.url) if not request.url.startswith(("file:", "data:")) else None)
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-ready=yes]")
            pages[name] = page
        assert complaints == []
        return pages[name]

    yield get
    for page in pages.values():
        page.context.close()
    assert complaints == []


@pytest.fixture
def shown(opened: Open) -> Page:
    """The page of 40 ops and one without a formula, as after a reset."""
    page: Page = opened("net", analysis(deep(20), "v100", "t4", execution=Execution(cuda_graph=True)))
    page.evaluate("chooseView(0)")
    page.click("button[type=reset]")
    page.locator("#ops tbody tr:nth-child(40)").wait_for(state="attached")
    return page


def drawn(page: Page) -> list[dict[str, Any]]:
    """The rows behind the points that the chart really drew."""
    rows: list[dict[str, Any]] = page.evaluate(
        "find('point-chart').data.filter((trace) => trace.customdata).flatMap((trace) => trace.customdata.map((row) => points()[row]))"
    )
    return rows


def listed(page: Page, column: str) -> list[str]:
    texts: list[str] = page.eval_on_selector_all(f"#ops tbody td.{column}", "cells => cells.map((cell) => cell.textContent)")
    return texts


def settle(page: Page) -> None:
    """Filters wait for the typing to end."""
    page.wait_for_timeout(250)


def hover(page: Page, chart: str) -> None:
    """Puts the mouse on the first point of a chart, over which plotly lays a sheet of its own."""
    page.locator(chart).scroll_into_view_if_needed()
    box = page.locator(f"{chart} .scatterlayer path.point").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector("#tooltip:not([hidden])")


def screenshot(page: Page, name: str) -> None:
    ARTIFACTS.mkdir(exist_ok=True)
    for width in (1280, 640):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(250)
        page.screenshot(path=ARTIFACTS / f"{name}-{width}.png", full_page=True)
    page.set_viewport_size({"width": 1280, "height": 900})


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
    assert shown.locator("#ops tr[aria-selected=true]").count() == 1


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


def test_hostile_names_are_text_everywhere(opened: Open) -> None:
    """A dialog, a request or an error would fail in ``opened``."""
    page = opened("hostile", analysis(hostile()), analysis(msgspec.structs.replace(hostile(), model="other<b>")))
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
    page = opened("net", net())
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
