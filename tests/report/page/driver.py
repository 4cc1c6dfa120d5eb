"""The page in a real browser: Debian's Chromium, headless and offline, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARTIFACTS = Path(__file__).parents[3] / "artifacts"
"""Where screenshots go, to be looked at."""

Open = Callable[..., Any]


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
