"""Widths: COLUMNS, the terminal, or a fixed one; and no value of COLUMNS breaks a report."""

from __future__ import annotations

from io import StringIO

import pytest

from modelstat.cli import main
from modelstat.report.width import LEAST, columns, width_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("120", 120), ("40", 40), ("39", LEAST), ("1", LEAST), ("999999", 999_999),
        ("", None), ("0", None), ("000", None), ("-80", None), ("eighty", None), ("8e1", None), (" 80", None), ("1" * 5000, None),
        ("\u0668\u0660", None),  # digits of another script
    ],
)  # fmt: skip
def test_columns(monkeypatch: pytest.MonkeyPatch, text: str, expected: int | None) -> None:
    monkeypatch.setenv("COLUMNS", text)
    assert columns() == expected
    assert width_of(StringIO(), 100) == (expected or 100)


def test_without_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert columns() is None
    assert width_of(StringIO(), 77) == 77


COMMANDS = [("gpus", "v100"), ("gpus",), ("--help",), ("gpus", "--help")]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("text", ["0", "1", "60", "nonsense", "99999999", "300"])
def test_every_width_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], text: str
) -> None:
    monkeypatch.setenv("COLUMNS", text)
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert len(printed.split()) > 20
    if text == "60" and command != ("gpus",):  # whose keys are never cut
        assert max(map(len, printed.splitlines())) <= 60
