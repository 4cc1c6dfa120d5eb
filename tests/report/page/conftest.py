"""One browser for all tests of the page; they are skipped where it, its driver or plotly is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from modelstat.report.page.build import page as build
from tests.report.page.driver import CHROMIUM, Open

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright, which drives the browser, is not installed")
    pytest.importorskip("plotly", reason="the html extra is optional")
    if CHROMIUM is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="session")
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
