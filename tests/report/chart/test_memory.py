"""Memory over time."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from modelstat.memory.peak import peak_memory, timeline
from modelstat.records import Trace
from modelstat.report.chart.memory import curve
from tests.report.chart.nets import deep, empty


def live(trace: Trace, steps: int) -> list[int]:
    found = curve(trace, steps)
    return [found.weight_bytes + step.activation_bytes for step in found.steps]


def test_a_short_trace_is_its_timeline() -> None:
    trace = deep(3)
    assert live(trace, 100) == [size for _, size in timeline(trace)]


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 60))
def test_a_long_trace_keeps_its_peak(blocks: int, steps: int) -> None:
    trace = deep(blocks)
    found = curve(trace, steps)
    assert len(found.steps) <= steps
    assert found.peak is not None
    assert found.weight_bytes + found.steps[found.peak].activation_bytes == peak_memory(trace).peak_bytes
    assert [step.op for step in found.steps] == sorted({step.op for step in found.steps})


def test_no_op_no_peak() -> None:
    assert curve(empty()).peak is None
