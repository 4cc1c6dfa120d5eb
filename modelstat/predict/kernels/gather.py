"""Indexing: elements or rows picked by an index, sorted, scattered.

Unfitted: memory moves whole sectors of 32 bytes, so short rows waste most of one; the rest is the stream's rate with a loss for jumps.
"""

from __future__ import annotations

from typing import NamedTuple

from modelstat.cost.record import Cost
from modelstat.predict.kernels.arithmetic import Quantity, ceil
from modelstat.predict.kernels.constants import Constants
from modelstat.predict.kernels.rates import Rates
from modelstat.predict.kernels.timing import Time
from modelstat.records import Op

SECTOR = 32.0
"""Bytes (B) that memory moves at least."""


class Features(NamedTuple):
    """Bytes (B) read and written, and ``row``: the bytes that one index fetches in a piece."""

    read: Quantity
    written: Quantity
    row: Quantity


def features(op: Op, cost: Cost) -> Features:
    """Rows run along the last axis, unless the op picks along it."""
    spec = (op.outputs or op.inputs)[0]
    axis = op.argument("dim")
    last = isinstance(axis, int) and bool(spec.shape) and axis % len(spec.shape) == len(spec.shape) - 1
    row = spec.item_bytes if last or not spec.shape else spec.item_bytes * spec.shape[-1]
    return Features(float(cost.read), float(cost.write), max(float(row), 1.0))


def seconds(f: Features, rates: Rates, c: Constants) -> Time:
    """Time of one gather or scatter."""
    wasted = SECTOR * ceil(f.row / SECTOR) / f.row
    memory = (f.read * wasted + f.written) / (rates.memory * c["memory_share"])
    return Time(0.0 * memory, memory, memory + c["latency_s"])
