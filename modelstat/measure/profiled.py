"""A call under torch.profiler, as a profile of measured kernels: the same records that imported files give."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from modelstat.measure.imports.nesting import Events, kernels
from modelstat.measure.imports.ranges import shapes_of
from modelstat.measure.imports.record import Profile

STEPS = 5
"""Runs that are profiled; the figures of an op are means over them."""


def profiled(call: Callable[[], object], device: str, steps: int = STEPS) -> Profile:
    """The kernels of ``steps`` runs (on a CPU its ops without the ops inside them), with the ops that launched each.

    The profiler costs a few microseconds an op, which a CPU's times contain.
    """
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device == "cuda" else [])]
    events = Events()
    with _quiet(), profile(activities=activities, record_shapes=True) as recorded:
        for step in range(steps):
            with torch.profiler.record_function(f"ProfilerStep#{step}"):
                call()
            if device == "cuda":
                torch.cuda.synchronize()
    for each in recorded.events() or ():
        _take(events, each)
    found, ordered = kernels(events)
    return Profile(file=f"{steps} runs here", format="torch.profiler", kernels=found, ordered=ordered)


def _take(events: Events, event: Any) -> None:
    if event.device_type.name != "CPU":
        return  # a kernel stands with the op that launched it
    start, end = event.time_range.start, event.time_range.end
    if event.name.startswith("ProfilerStep#"):
        events.steps.append((start, end, int(event.name.rpartition("#")[2])))
        return
    if "::" not in event.name:
        return  # the profiler's own work and calls of the driver
    events.add_op(event.name, start, end - start, event.id, str(event.thread), shapes_of(event.input_shapes), is_range=False)
    for kernel in event.kernels:
        events.add_kernel(kernel.name, start, kernel.duration, event.id)


@contextmanager
def _quiet() -> Iterator[None]:
    """The profiler's library writes to stderr what it does not find (a driver, on a machine without a GPU): nobody asked."""
    before = os.dup(2)
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(sink, 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(sink)
        os.close(before)
