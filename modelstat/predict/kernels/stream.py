"""Bytes through the memory system: what DRAM, the L2 cache and the SMs' own ports let pass."""

from __future__ import annotations

from modelstat.predict.kernels.arithmetic import Quantity, overlapped
from modelstat.predict.kernels.rates import Rates


def resident(size: Quantity, capacity: Quantity, sharpness: float = 4.0) -> Quantity:
    """Share of ``size`` bytes that a cache of ``capacity`` still holds when they are used again: 1 far below it, 0 far above."""
    return 1.0 / (1.0 + (size / capacity) ** sharpness)


def port_seconds(size: Quantity, rates: Rates, bytes_per_clock: float) -> Quantity:
    """Seconds (s) for ``size`` bytes through the SMs' ports to the L2 cache, at ``bytes_per_clock`` (B) for each SM."""
    return size / (rates.sms * rates.clock_hz * bytes_per_clock)


def traffic_seconds(dram: Quantity, total: Quantity, rates: Rates, bytes_per_clock: float) -> Quantity:
    """Seconds (s) when ``dram`` of ``total`` bytes come from or go to DRAM and all pass the SMs' ports: two queues in a row."""
    return overlapped(dram / rates.memory, port_seconds(total, rates, bytes_per_clock), 2.0)
