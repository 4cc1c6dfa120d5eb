"""`modelstat cache`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELSTAT_CACHE_DIR", str(tmp_path))


def test_it_is_counted_and_cleared(run: Run, small: str, tmp_path: Path) -> None:
    assert "0 traces" in run("cache").out
    assert run(f"{small}:Net", "--input", "3x32x128").code == 0
    out = run("cache", "info").out
    assert "1 trace," in out
    assert str(tmp_path) in out
    assert "deleted 1 trace," in run("cache", "clear").out
    assert "0 traces" in run("cache", "info").out


def test_no_cache_keeps_nothing(run: Run, small: str) -> None:
    assert run(f"{small}:Net", "--input", "3x32x128", "--no-cache").code == 0
    assert "0 traces" in run("cache").out


def test_a_damaged_entry_is_no_crash(run: Run, small: str, tmp_path: Path) -> None:
    first = run(f"{small}:Net", "--input", "3x32x128")
    for path in tmp_path.rglob("*"):
        if path.is_file():
            path.write_bytes(b"\x00damaged")
    assert run(f"{small}:Net", "--input", "3x32x128") == first
