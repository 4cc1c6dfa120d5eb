"""What is remembered of a trace has a bound: whatever its events are, however many, in whatever order."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelstat.measure.imports import chrome
from modelstat.measure.imports.nesting import Events, kernels
from modelstat.measure.imports.record import MeasuredKernel, OpCall
from modelstat.measure.imports.tree import by_start
from modelstat.measure.matching import align_passes
from modelstat.records import Op

MOST_OPS, MOST_KERNELS = 8, 4
PER_STEP = 3


def filled(places: list[int], bounded: Events) -> Events:
    """A step of 10 us holds three ops one after another; each launches a kernel. Op ``place`` starts at its place in us."""
    for place in places:
        step, inside = divmod(place, PER_STEP)
        start = 10.0 * step + 3 * inside
        if inside == 0:
            bounded.add_step(start, 10.0, step)
        bounded.add_op("aten::relu", start, 2.0, place, "t", None, is_range=False)
        bounded.add_kernel("k", start + 1, 1.0 + place, place)
    return bounded


def unbounded(places: list[int]) -> Events:
    return filled(places, Events())


@given(st.integers(1, 60).flatmap(lambda count: st.permutations(range(count))))
def test_columns_stay_short_in_whatever_order_events_come(places: list[int]) -> None:
    events = filled(places, Events(MOST_OPS, MOST_KERNELS))
    assert len(events.start) < 2 * MOST_OPS
    assert len(events.kernel_start) < 2 * MOST_KERNELS
    assert len(events.steps) <= MOST_KERNELS
    assert len(events.start) == len(events.key) == len(events.thread) == len(events.external) == len(events.is_range)
    # The first by time are there, all of them up to the moment from which on none is.
    every = sorted(unbounded(places).start)
    assert sorted(events.start) == [start for start in every if start <= events.until]


def told(found: tuple[MeasuredKernel, ...]) -> list[tuple[float | None, int | None, tuple[str, ...]]]:
    return [(each.seconds, each.step, tuple(call.name for call in each.calls)) for each in found]


@given(st.integers(1, 60))
def test_what_is_kept_are_the_first_whole_steps(count: int) -> None:
    places = list(range(count))
    all_of_them, _ = kernels(unbounded(places))
    events = filled(places, Events(MOST_OPS, MOST_KERNELS))
    found, _ = kernels(events)
    assert told(found) == told(all_of_them[: len(found)])
    assert (events.until == float("inf")) == (len(found) == count)
    if count > MOST_KERNELS:
        assert len(found) == MOST_KERNELS // PER_STEP * PER_STEP  # the step that was cut off is left out


@given(st.integers(1, 12), st.floats(0.1, 30.0), st.integers(4, 12))
def test_steps_are_whole_where_the_device_runs_behind(steps: int, seconds: float, most: int) -> None:
    """A kernel belongs to the step that launched it, however much later it runs."""
    events = Events(1_000, most)
    end = 0.0
    for place in range(PER_STEP * steps):
        step, inside = divmod(place, PER_STEP)
        start = 10.0 * step + 3 * inside
        if inside == 0:
            events.add_step(start, 10.0, step)
        events.add_op("aten::relu", start, 2.0, place, "t", None, is_range=False)
        begin = max(end, start + 1)
        events.add_kernel("k", begin, seconds, place)
        end = begin + seconds
    found, _ = kernels(events)
    assert [each.step for each in found] == [step for step in range(len(found) // PER_STEP) for _ in range(PER_STEP)]
    assert found


def test_a_kernel_never_loses_its_op_to_the_bound() -> None:
    """Many ops to a kernel: those of the host are cut off first, and with them the kernels that later ones launched."""
    events = Events(MOST_OPS, 1_000)
    for place in range(100):
        events.add_op("aten::relu", float(place), 0.5, place, "t", None, is_range=False)
    for place in range(0, 100, 10):
        events.add_kernel("k", place + 0.25, 1.0, place)
    found, _ = kernels(events)
    assert found
    assert all(kernel.calls for kernel in found)
    assert len(found) < 10


def test_ops_of_two_threads_nest_each_in_its_own() -> None:
    events = Events()
    for thread, start in (("a", 0.0), ("b", 1.0)):
        events.add_op("outer", start, 10.0, -1, thread, None, is_range=False)
    for thread, start in (("a", 2.0), ("b", 3.0)):
        events.add_op("inner", start, 4.0, -1, thread, None, is_range=False)
    found, _ = kernels(events)
    assert [each.seconds for each in found] == pytest.approx([6e-6, 6e-6, 4e-6, 4e-6])
    assert [[call.name for call in each.calls] for each in found] == [["outer"]] * 2 + [["outer", "inner"]] * 2


@given(st.lists(st.tuples(st.floats(0, 9), st.floats(0, 9))))
def test_order_by_start_then_by_length(spans: list[tuple[float, float]]) -> None:
    order = by_start([start for start, _ in spans], [duration for _, duration in spans])
    assert [spans[each] for each in order] == sorted(spans, key=lambda span: (span[0], -span[1]))


def written(path: Path, ignored: int, bad: int = 0) -> Path:
    """One op among events of kinds that nobody asked for, and kernels without a time."""
    frame = {"ph": "X", "cat": "python_function", "name": "frame", "ts": 1.0, "dur": 1.0, "args": {"Call stack": "x" * 80}}
    broken = {"ph": "X", "cat": "kernel", "name": "bad", "ts": 1.0, "dur": None}
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::relu", "pid": 1, "tid": 1, "ts": 1.0, "dur": 1.0}
    path.write_text(json.dumps({"traceEvents": [op, *[frame] * ignored, *[broken] * bad]}), encoding="utf-8")
    return path


def peak(path: Path) -> int:
    """The most bytes that reading a file holds at once."""
    tracemalloc.start()
    try:
        chrome.read(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_events_that_say_nothing(tmp_path: Path) -> None:
    chrome.read(written(tmp_path / "warm.json", 10))  # what is imported and cached once
    few, many = written(tmp_path / "few.json", 500), written(tmp_path / "many.json", 5_000)
    assert many.stat().st_size > few.stat().st_size + 500_000
    assert peak(many) < peak(few) + 50_000
    assert len(chrome.read(many).kernels) == 1


def test_a_million_bad_events_are_a_few_sentences(tmp_path: Path) -> None:
    profile = chrome.read(written(tmp_path / "bad.json", 0, bad=500))
    assert len(profile.problems) == chrome.SHOWN + 2
    assert profile.problems[chrome.SHOWN] == f"{500 - chrome.SHOWN} more events were left out"


def test_passes_without_marks_are_found_one_by_one() -> None:
    names = ["aten::mm", "aten::relu", "aten::mm", "aten::tanh"]
    ops = [Op(name, "default", (), (), (), module=0) for name in names]
    lengths = [4, 4, 3, 4]  # the third pass lacks its last call
    calls = [OpCall(name, index) for index, name in enumerate(name for length in lengths for name in names[:length])]
    found = align_passes(calls, ops)
    assert [found[place] for place in range(len(calls))] == [(number, at) for number, length in enumerate(lengths) for at in range(length)]
