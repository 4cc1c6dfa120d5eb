"""Embedding tables: rows looked up by an index.

Unfitted: rows are long, so memory streams them with little loss.
"""

from __future__ import annotations

from typing import NamedTuple

from modelstat.cost.record import Cost
from modelstat.predict.kernels.arithmetic import Quantity, ceil
from modelstat.predict.kernels.constants import Constants
from modelstat.predict.kernels.gather import SECTOR
from modelstat.predict.kernels.rates import Rates
from modelstat.predict.kernels.timing import Time
from modelstat.records import Op


class Features(NamedTuple):
    """Bytes (B) read and written, and the bytes of one ``row`` of the table."""

    read: Quantity
    written: Quantity
    row: Quantity


def features(op: Op, cost: Cost) -> Features:
    """The table is ``weight``."""
    table = op.tensor("weight")
    row = table.bytes / max(table.shape[0], 1) if table is not None and table.shape else SECTOR
    return Features(float(cost.read), float(cost.write), max(float(row), 1.0))


def seconds(f: Features, rates: Rates, c: Constants) -> Time:
    """Time of one look-up."""
    wasted = SECTOR * ceil(f.row / SECTOR) / f.row
    memory = (f.read * wasted + f.written) / (rates.memory * c["memory_share"])
    return Time(0.0 * memory, memory, memory + c["latency_s"])
