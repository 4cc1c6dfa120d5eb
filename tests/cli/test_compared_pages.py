"""`--html` of the commands that set two models against each other: one page, an arrow for each layer that changed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("plotly", reason="the extra `html` is not installed")
pytest.importorskip("jinja2", reason="the extra `html` is not installed")

Run = Callable[..., Any]

NETS = """
from torch import nn

def net(width=8):
    return nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 4, 3, padding=1))
"""


@pytest.fixture
def nets(tmp_path: Path) -> str:
    (tmp_path / "nets.py").write_text(NETS)
    return str(tmp_path / "nets.py")


def changed_paths(page: Path) -> set[str]:
    """The layers that the page's data names as changed."""
    text = page.read_text(encoding="utf-8")
    data = max(re.findall(r"<script[^>]*application/json[^>]*>(.*?)</script>", text, re.S), key=len)
    return {change["path"] for change in json.loads(data)["changes"]}


def test_compare_draws_both_models(run: Run, nets: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    code, out, err = run("compare", f"{nets}:net", f"{nets}:net(width=16)", "--input", "3x8x8", "--gpu", "t4", "--html", str(page))
    assert (code, err) == (0, "")
    assert "width=16" in out
    assert {"0", "2"} <= changed_paths(page)


def test_swap_draws_before_and_after(run: Run, nets: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    code, _, err = run("swap", f"{nets}:net", "conv=separable", "--skip-stem", "--input", "3x8x8", "--gpu", "t4", "--html", str(page))
    assert code == 0, err
    assert "2" in changed_paths(page)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["swap", "{nets}:net", "conv=separable"], "--html draws the roofline of a GPU: add --gpu NAME"),
        (["swap", "{nets}:net", "conv=separable", "--gpu", "t4", "--batch", "1,8"], "give one --batch and one --precision"),
        (["compare", "{nets}:net", "{nets}:net(width=16)"], "--html draws the roofline of a GPU: add --gpu NAME"),
    ],
)
def test_what_a_page_cannot_draw(run: Run, nets: str, tmp_path: Path, arguments: list[str], words: str) -> None:
    page = tmp_path / "page.html"
    code, out, err = run(*(each.format(nets=nets) for each in arguments), "--html", str(page))
    assert (code, out) == (2, "")
    assert words in err
    assert not page.exists()
