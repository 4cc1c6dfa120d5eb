"""How long one kernel runs."""

from __future__ import annotations

from typing import NamedTuple

from modelstat.predict.kernels.arithmetic import Quantity


class Time(NamedTuple):
    """Seconds of the kernel alone: no host, no gap before it.

    ``compute`` is what the arithmetic units need, ``memory`` what the memory needs, ``total`` the kernel from its first block to its
    last: both, overlapped as far as such kernels overlap them, and the fixed latency of filling and draining the GPU.
    """

    compute: Quantity
    memory: Quantity
    total: Quantity


NOTHING = Time(0.0, 0.0, 0.0)
"""An op that runs no kernel."""
