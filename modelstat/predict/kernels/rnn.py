"""Recurrent layers as cuDNN runs them: one product for all inputs, then step after step.

Unfitted: a step multiplies the state by the recurrent matrix and applies the gates; it waits for the step before, so a fixed latency a
step counts. The matrix stays in the L2 cache if it fits there.
"""

from __future__ import annotations

from typing import NamedTuple

from modelstat.cost.record import Cost
from modelstat.predict.kernels.arithmetic import Quantity, maximum
from modelstat.predict.kernels.constants import Constants
from modelstat.predict.kernels.rates import Rates
from modelstat.predict.kernels.stream import resident, traffic_seconds
from modelstat.predict.kernels.timing import Time
from modelstat.records import Op


class Features(NamedTuple):
    """``steps`` one after the other; counted FLOPs of all; bytes (B) of the recurrent ``weights`` and of everything (``size``)."""

    steps: Quantity
    flops: Quantity
    weights: Quantity
    size: Quantity


def features(op: Op, cost: Cost) -> Features:
    """Steps in time: the trace counts them times the batch."""
    batch = max(1, int(op.argument("batch", 1) or 1))
    recorded = op.argument("steps")
    data = op.tensor("input") or op.inputs[0]
    steps = float(recorded) / batch if recorded is not None else float(data.shape[0]) if len(data.shape) == 3 else 1.0
    weights = sum(spec.bytes for name, spec in zip(op.names, op.inputs, strict=True) if name in ("weight_hh", "w_hh", "params", "weight"))
    return Features(max(steps, 1.0), float(cost.flops), float(weights), float(cost.bytes))


def seconds(f: Features, rates: Rates, c: Constants) -> Time:
    """Time of one layer in one direction."""
    compute = f.flops / (rates.issue * c["efficiency"])
    again = maximum(f.steps - 1.0, 0.0) * f.weights
    dram = f.size + again * (1.0 - resident(f.weights, rates.l2_bytes * c["l2_share"]))
    memory = traffic_seconds(dram, f.size + again, rates, c["port_bytes"])
    return Time(compute, memory, maximum(compute, memory) + f.steps * c["step_s"] + c["latency_s"])
