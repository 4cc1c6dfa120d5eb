"""Timelines that a reader draws on paper."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelstat.predict.queue import simulate

TIMES = st.lists(st.floats(0.0, 1e-2), max_size=30)


@pytest.mark.parametrize(
    ("kernels", "issue", "total", "waits"),
    [
        ([], 5.0, 0.0, ()),
        ([1.0, 1.0, 1.0], 0.0, 3.0, (0.0, 0.0, 0.0)),  # a graph: nothing to wait for
        ([1.0, 1.0, 1.0], 2.0, 7.0, (2.0, 1.0, 1.0)),  # issued at 2, 4, 6; done at 3, 5, 7
        ([5.0, 1.0, 1.0], 2.0, 9.0, (2.0, 0.0, 0.0)),  # the first one runs to 7, by which time all are issued
        ([5.0, 0.0, 1.0, 1.0], 2.0, 9.0, (2.0, 0.0, 0.0, 0.0)),  # nothing waits for a view, but it is issued: the last one at 8
        ([5.0, 0.0, 0.0, 1.0], 2.0, 9.0, (2.0, 0.0, 0.0, 1.0)),  # issued at 8, one after the GPU is done
        ([1.0, 1.0], [3.0, 1.0], 5.0, (3.0, 0.0)),
    ],
)
def test_by_hand(kernels: list[float], issue: float | list[float], total: float, waits: tuple[float, ...]) -> None:
    timeline = simulate(kernels, issue)
    assert timeline.total == total
    assert timeline.waits == waits
    assert timeline.idle == total - sum(kernels)


@given(kernels=TIMES, issue=st.floats(0.0, 1e-3))
def test_the_total_is_waits_and_kernels_and_no_less_than_either_queue(kernels: list[float], issue: float) -> None:
    timeline = simulate(kernels, issue)
    assert timeline.total == pytest.approx(sum(kernels) + sum(timeline.waits))
    last = max((index for index, kernel in enumerate(kernels) if kernel > 0), default=-1)
    assert timeline.total >= max(sum(kernels), issue * (last + 1)) * (1 - 1e-9)


@given(kernels=TIMES, issue=st.floats(0.0, 1e-3), more=st.floats(0.0, 1e-3))
def test_a_slower_host_is_never_faster(kernels: list[float], issue: float, more: float) -> None:
    assert simulate(kernels, issue + more).total >= simulate(kernels, issue).total * (1 - 1e-9)
