"""Many runs of a call on a device, and what they took."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median, quantiles

import msgspec
import torch

LEAST_RUNS, MOST_RUNS = 10, 1000
WARM_UP_RUNS = 3
WARM_UP_SHARE = 0.2
"""Share of the time given to a measurement that warms up: clocks settle, libraries choose their kernels."""


class Timing(msgspec.Struct, frozen=True):
    """Seconds (s) of ``runs`` runs: the median, and the 5th and 95th percentile."""

    median: float
    low: float
    high: float
    runs: int

    @property
    def spread(self) -> float:
        """Half of what lies between the percentiles, as a share of the median."""
        return (self.high - self.low) / 2 / self.median if self.median else 0.0


def timing(seconds: list[float]) -> Timing:
    """What a list of times amounts to.

    >>> timing([1.0, 2.0, 3.0])
    Timing(median=2.0, low=1.0, high=3.0, runs=3)
    """
    if len(seconds) < 2:
        return Timing(seconds[0], seconds[0], seconds[0], 1)
    twentieths = quantiles(seconds, n=20, method="inclusive") if len(seconds) >= 10 else [min(seconds), max(seconds)]
    return Timing(median(seconds), twentieths[0], twentieths[-1], len(seconds))


def timed(call: Callable[[], object], device: str, *, budget: float = 3.0, least: int = LEAST_RUNS) -> Timing:
    """Runs a call for about ``budget`` seconds: warm-up first, then at least ``least`` times, each on a clock of its own.

    On CUDA by events, so that the time is the GPU's with its waits for the host; elsewhere by the wall clock, after the device is done.
    """
    once = _on_cuda if device == "cuda" else _on_clock(device)
    end = time.perf_counter() + budget * WARM_UP_SHARE
    for run in range(MOST_RUNS):
        once(call)
        if run + 1 >= min(WARM_UP_RUNS, least) and time.perf_counter() >= end:
            break
    end = time.perf_counter() + budget * (1.0 - WARM_UP_SHARE)
    found: list[float] = []
    while len(found) < least or (time.perf_counter() < end and len(found) < MOST_RUNS):
        found.append(once(call))
    return timing(found)


def _on_cuda(call: Callable[[], object]) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3


def finisher(device: str) -> Callable[[], object]:
    """What waits until a device that works behind its host is done; nothing on the CPU."""
    return torch.mps.synchronize if device == "mps" else lambda: None


def _on_clock(device: str) -> Callable[[Callable[[], object]], float]:
    finish = finisher(device)

    def once(call: Callable[[], object]) -> float:
        finish()
        start = time.perf_counter()
        call()
        finish()
        return time.perf_counter() - start

    return once
