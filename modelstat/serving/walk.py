"""A walk through a phase becomes a trace of it."""

from __future__ import annotations

from modelstat.records import Trace
from modelstat.serving.cache import given
from modelstat.serving.experts import routed
from modelstat.serving.phase import Phase


def finished(trace: Trace, phase: Phase) -> Trace:
    """The trace with its cache as an input and its router's choices written down. Raises UsageError for a model without a cache."""
    return routed(given(trace), (trace.batch or 1) * phase.new)
