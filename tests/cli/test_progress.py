"""The progress bar: late, on a terminal's stderr only, and gone at the end."""

from __future__ import annotations

import io
import sys
import time

import pytest

from modelstat.cli import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def watch(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, patience: float = 0.0) -> None:
    """Called in a test's body: pytest puts its own stderr back after the fixtures."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", patience)


def wait_for(stream: io.StringIO, text: str) -> bool:
    deadline = time.monotonic() + 10
    while text not in stream.getvalue() and time.monotonic() < deadline:
        time.sleep(0.02)
    return text in stream.getvalue()


def test_a_long_trace_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch, terminal := Terminal())
    with progress.TraceProgress("tracing [net]") as bar:
        bar(50)
        assert wait_for(terminal, "tracing [net]")
        bar(100)
        assert wait_for(terminal, "100 ops")
    assert terminal.getvalue().endswith("\x1b[2K")  # the line is wiped


def test_a_short_trace_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch, terminal := Terminal(), progress.PATIENCE_SECONDS)
    with progress.TraceProgress("tracing") as bar:
        bar(50)
    assert terminal.getvalue() == ""


def test_where_nobody_watches_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch, stream := io.StringIO())
    with progress.TraceProgress("tracing") as bar:
        bar(50)
        time.sleep(0.1)
    assert stream.getvalue() == ""


def test_the_bar_stops_when_the_model_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch, terminal := Terminal())

    def trace() -> None:
        with progress.TraceProgress("tracing"):
            assert wait_for(terminal, "tracing")
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        trace()
    shown = terminal.getvalue()
    time.sleep(0.3)
    assert terminal.getvalue() == shown


def test_several_runs_fill_the_bar_and_estimate_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch, terminal := Terminal())
    with progress.TraceProgress("tracing", runs=3) as bar:
        with bar.run():
            bar(50)
        assert wait_for(terminal, "1 of 3 runs")
        with bar.run():
            bar(50)
        assert wait_for(terminal, "2 of 3 runs")
        assert wait_for(terminal, "left")
