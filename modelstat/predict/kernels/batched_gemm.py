"""Batches of matrix products: bmm, baddbmm, attention that is not fused, and the products of routed experts.

In fp32 the library keeps to one tile, which belongs to its generation: 64 rows by 128 columns before Ampere (Volta 64 by 64), 128 by 128
since. So a product with 64 columns wastes half of it, and nothing fills the last wave. On tensor cores it chooses among tiles.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from modelstat.cost.operands import GROUPED, groups_met, operand
from modelstat.cost.record import Cost
from modelstat.predict.kernels.arithmetic import Quantity, ceil, overlapped, where
from modelstat.predict.kernels.constants import Constants
from modelstat.predict.kernels.rates import Rates
from modelstat.predict.kernels.stream import resident, traffic_seconds
from modelstat.predict.kernels.tiles import limited_by_power, product_seconds, waves
from modelstat.predict.kernels.timing import Time
from modelstat.records import Op


class Features(NamedTuple):
    """``batch`` products (m, k) @ (k, n); ``size`` is all that is read and written (B)."""

    batch: Quantity
    m: Quantity
    n: Quantity
    k: Quantity
    size: Quantity


def features(op: Op, cost: Cost) -> Features:
    """From the left factor (..., m, k) and the output (..., m, n).

    Rows (T, k) of groups with a matrix each are as many products as matrices are met, of as many rows each.
    """
    output = op.outputs[0]
    if op.name in GROUPED:
        left = operand(op, "self", "input")
        batch = groups_met(op) if len(output.shape) == 2 and len(left.shape) == 2 else float(prod(output.shape[:-2]))
        # No rows meet no matrix: one product of nothing.
        batch = batch or 1.0
        rows = left.shape[0] / batch if len(output.shape) == 2 else float(output.shape[-2])
        # Columns that groups share out are summed over, an equal part in each.
        summed = cost.macs / max(batch * rows * output.shape[-1], 1.0)
        return Features(batch, rows, float(output.shape[-1]), summed, float(cost.bytes))
    left = operand(op, "batch1") if op.name == "aten::baddbmm" else operand(op, "batch1", "self", "input", "mat1")
    batch = float(prod(output.shape[:-2]))
    return Features(batch, float(output.shape[-2]), float(output.shape[-1]), float(left.shape[-1]), float(cost.bytes))


def seconds(f: Features, rates: Rates, c: Constants) -> Time:
    """Time of one batch of products."""
    flops = 2.0 * f.batch * f.m * f.n * f.k
    clocked = product_seconds(f.batch, f.m, f.n, f.k, rates, c) if "split_k" in c else _one_tile(f, rates, c)
    if "misaligned" in c:
        # Tensor cores are fed 16 bytes at a time: rows of another length are fetched piece by piece.
        clocked = clocked * where((f.n % 8.0 > 0.0) | (f.k % 8.0 > 0.0), c["misaligned"], 1.0)
    compute = limited_by_power(clocked, flops, rates, c)
    dram = f.size * (1.0 - resident(f.size, rates.l2_bytes * c["l2_activations"]))
    memory = traffic_seconds(dram, f.size, rates, c["port_bytes"])
    latency = (c["latency_cycles"] + c["latency_cycles_root_k"] * f.k**0.5) / rates.clock_hz
    return Time(compute, memory, overlapped(compute, memory, c["overlap"]) + latency)


def _one_tile(f: Features, rates: Rates, c: Constants) -> Quantity:
    """Seconds (s) on the tile of the GPU's generation, two blocks to an SM; k goes in steps of 8."""
    volta = rates.capability == 7.0
    x, y = where(rates.capability >= 8.0, 128.0, 64.0), where(volta, 64.0, 128.0)
    blocks = f.batch * ceil(f.m / x) * ceil(f.n / y)
    turns = 2.0 * waves(blocks, 2.0 * rates.sms, c["tail"]) + c["ramp"]
    work = 2.0 * x * y * (8.0 * ceil(f.k / 8.0) + c["prologue"])
    return turns * work * rates.sms / rates.issue / where(volta, c["efficiency_64x64"], c["efficiency"])
