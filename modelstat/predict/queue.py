"""Two queues: the host issues kernels one after another, the GPU runs them in that order.

A kernel starts when it has been issued and the one before it is done, so that a GPU that waits for its host is a result and not a
label.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Timeline(msgspec.Struct, frozen=True):
    """Seconds (s) of one pass. ``waits`` is how long the GPU stood idle before each kernel; ``total`` ends with the last kernel."""

    total: float
    busy: float
    waits: tuple[float, ...]

    @property
    def idle(self) -> float:
        """Seconds in which the GPU waited for its host."""
        return self.total - self.busy


def simulate(kernels: Sequence[float], issue: float | Sequence[float]) -> Timeline:
    """The timeline of kernels (s) that are issued ``issue`` seconds apart (one number, or one for each kernel).

    The clock starts when the host starts; a kernel of 0 s (a view) is issued too, but nothing waits for it.

    >>> simulate([3.0, 1.0, 1.0], 2.0)
    Timeline(total=7.0, busy=5.0, waits=(2.0, 0.0, 0.0))
    """
    gaps = [issue] * len(kernels) if isinstance(issue, (int, float)) else list(issue)
    issued = done = 0.0
    waits: list[float] = []
    for kernel, gap in zip(kernels, gaps, strict=True):
        issued += gap
        wait = max(0.0, issued - done) if kernel > 0.0 else 0.0
        waits.append(wait)
        done += wait + kernel
    return Timeline(done, sum(kernels), tuple(waits))
