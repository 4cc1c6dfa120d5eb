"""The page as text: its policy, its data, and that nothing in it comes from elsewhere or breaks out."""

from __future__ import annotations

import json
import re
import sys
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelstat.errors import MissingExtraError, UsageError
from modelstat.report.chart.view import views
from modelstat.report.page.build import page, require
from modelstat.report.page.encode import encode, script_safe
from tests.report.chart.nets import HOSTILE, MORE_HOSTILE, analysis, copies, deep, hostile, net
from tests.report.sample import PIXELS

pytest.importorskip("plotly", reason="the html extra is optional")


TEXTS = {"path", "name", "family", "bound", "outputs"}


class Reader(HTMLParser):
    """Elements with their attributes, and the text of each script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[str | None, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs).get("type"), ""))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] == "script":
            kind, text = self.scripts[-1]
            self.scripts[-1] = (kind, text + data)

    def handle_endtag(self, tag: str) -> None:
        self.elements.append((f"/{tag}", {}))


@pytest.fixture(scope="module")
def attacked() -> Reader:
    return Reader(page([analysis(hostile())]))


def decoded(document: dict[str, Any], table: dict[str, int], *names: str) -> list[tuple[Any, ...]]:
    """Rows of a table of the page: columns by their place, texts by theirs."""
    columns = ([document["strings"][each] if name in TEXTS else each for each in document["columns"][table[name]]] for name in names)
    return list(zip(*columns, strict=True))


def test_the_rows_that_the_page_gets() -> None:
    document = json.loads(encode(views([net()])))
    image = 4 * 8 * PIXELS
    assert decoded(document, document["views"][0]["ops"], "path", "name", "flops", "bytes", "outputs") == [
        ("block.conv", "aten::convolution", 2 * 27 * 8 * PIXELS + 8 * PIXELS, 4 * (3 * PIXELS + 224) + image, "1x8x32x128"),
        ("block.act", "aten::relu", 8 * PIXELS, 2 * image, "1x8x32x128"),
        ("", "odd::sum", 0, image + 32, "8"),
    ]


def test_the_policy_allows_exactly_the_scripts_of_the_page(attacked: Reader) -> None:
    (content,) = [
        attributes["content"]
        for tag, attributes in attacked.elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    hashes = {f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for kind, text in attacked.scripts if kind is None}
    assert len(hashes) == 2
    assert content is not None
    rules = dict(rule.split(" ", 1) for rule in content.split("; "))
    assert set(rules.pop("script-src").split()) == hashes
    nothing = dict.fromkeys(("default-src", "base-uri", "form-action"), "'none'")
    assert rules == {**nothing, "style-src": "'unsafe-inline'", "img-src": "data:"}


def test_nothing_is_fetched(attacked: Reader) -> None:
    for tag, attributes in attacked.elements:
        assert not attributes.get("src"), tag
        assert not any(name.startswith("on") for name in attributes), tag
        href = attributes.get("href")
        assert href is None or href.startswith(("#", "data:,")), tag


def test_hostile_names_are_data(attacked: Reader) -> None:
    assert [kind for kind, _ in attacked.scripts] == ["application/json", None, None]  # none was added
    assert "img" not in {tag for tag, _ in attacked.elements}
    document = json.loads(attacked.scripts[0][1])
    assert f"block.{HOSTILE}" in document["strings"]
    assert document["views"][0]["model"] == HOSTILE + MORE_HOSTILE


@settings(deadline=None)
@given(st.dictionaries(st.text(alphabet="<>&/!-\u2028\"\\ab"), st.text()))
def test_safe_json_is_the_same_json(value: dict[str, str]) -> None:
    text = script_safe(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == value
    assert not set("<>&") & set(text)


def test_a_thousand_ops_of_many_views_stay_below_six_megabytes() -> None:
    trace = deep(700)
    text = page([analysis(trace, "v100", "t4", "h100", "a100", "4090", "l4", "a10", "3090")])
    assert len(text.encode()) < 6e6
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    document = json.loads(data)
    first = document["views"][0]
    assert len(decoded(document, first["ops"], "path")) == 5000 // 8
    assert first["left_out_ops"] == 2 * 700 - 5000 // 8


def test_one_view_has_the_thousand_heaviest() -> None:
    document = json.loads(encode(views([analysis(deep(700))])))
    assert len(decoded(document, document["views"][0]["ops"], "path")) == 1000


def test_the_page_is_the_same_each_time() -> None:
    assert page([net()]) == page([net()])


def test_without_a_gpu_there_is_no_roofline() -> None:
    from modelstat.analysis import Analysis

    with pytest.raises(UsageError, match="--gpu"):
        page([Analysis.from_trace(copies())])


def test_a_comparison_is_one_of_two() -> None:
    with pytest.raises(UsageError, match="two analyses"):
        page([net()], compare=True)


@pytest.mark.parametrize("package", ["plotly", "jinja2"])
def test_without_a_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package}.*\[html\]"):
        require()
