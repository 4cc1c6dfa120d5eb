"""Matrix products of two matrices: mm, addmm, linear.

The library picks the fastest of its tiles, and splits k, so waves hardly matter. Operands come from DRAM unless the L2 cache holds them:
activations were just written and are found there if they fit; weights were last used a whole pass ago, so only tiny ones are.
One row times a matrix has a kernel of its own, which reads the matrix once.
Pascal's caches and address translation lose rows that are long (k above some thousands): tiles are then re-read from DRAM.
"""

from __future__ import annotations

from typing import NamedTuple

from modelstat.cost.operands import operand
from modelstat.cost.record import Cost
from modelstat.predict.kernels.arithmetic import Quantity, anywhere, maximum, minimum, overlapped, where
from modelstat.predict.kernels.constants import Constants
from modelstat.predict.kernels.rates import Rates
from modelstat.predict.kernels.stream import resident, traffic_seconds
from modelstat.predict.kernels.tiles import limited_by_power, product_seconds, tile_seconds
from modelstat.predict.kernels.timing import Time
from modelstat.records import Op


class Features(NamedTuple):
    """(m, k) @ (k, n). ``item_bytes`` of an operand; ``extra_bytes`` (B) beside the three matrices: a bias, a wider output.

    ``weight_share`` is what an element of the right factor takes of ``item_bytes``: less than 1 where only weights are quantised.
    """

    m: Quantity
    n: Quantity
    k: Quantity
    item_bytes: Quantity
    extra_bytes: Quantity
    weight_share: Quantity = 1.0


def features(op: Op, cost: Cost) -> Features:
    """Rows, columns and summed axis from the op's operands; MACs give the rows, so that any leading axes are folded in."""
    left = operand(op, "mat1", "self", "input", "mat", "X", "i1") if op.name != "aten::addmm" else operand(op, "mat1")
    k = float(left.shape[-1]) if left.shape else 1.0
    outputs = float(cost.activations or op.outputs[0].elements)
    n = float(op.outputs[0].shape[-1]) if len(op.outputs[0].shape) > 1 else 1.0
    m = outputs / max(n, 1.0)
    item = float(left.item_bytes)
    right = op.tensor("mat2") or op.tensor("weight") or left
    share = right.item_bytes / item
    return Features(m, n, k, item, max(0.0, cost.bytes - item * (m * k + share * k * n + m * n)), share)


def seconds(f: Features, rates: Rates, c: Constants) -> Time:
    """Time of one product."""
    m, n, k = f.m, f.n, f.k
    clocked = product_seconds(1.0, m, n, k, rates, c)
    if "vector_efficiency" in c:
        vector = 2.0 * m * n * k / rates.issue / c["vector_efficiency"]
        clocked = where(minimum(m, n) <= 1.0, minimum(clocked, vector), clocked)
    if "tile_gp100" in c:
        # GP100 runs kernels that were laid out for Maxwell's wider SMs, and the library keeps to its 32 x 128 tile there.
        gp100 = rates.capability == 6.0
        if anywhere(gp100):
            clocked = where(gp100, tile_seconds(32, 128, 1.0, m, n, k, rates, c) / c["tile_gp100"], clocked)
        per_byte = where(gp100, 2.0 * 32 * 128 / (32 + 128), 2.0 * 128 * 128 / (128 + 128)) / f.item_bytes
        clocked = clocked + 2.0 * m * n * k / per_byte / rates.memory * _missed(m, k, rates, c)
    compute = limited_by_power(clocked, 2.0 * m * n * k, rates, c)
    activations, weights = f.item_bytes * (m * k + m * n) + f.extra_bytes, f.item_bytes * f.weight_share * n * k
    dram = activations * (1.0 - resident(activations, rates.l2_bytes * c["l2_activations"]))
    dram = dram + weights * (1.0 - resident(weights, rates.l2_bytes * c["l2_weights"]))
    memory = traffic_seconds(dram, activations + weights, rates, c["port_bytes"])
    latency = (c["latency_cycles"] + c["latency_cycles_root_k"] * k**0.5) / rates.clock_hz
    return Time(compute, memory, overlapped(compute, memory, c["overlap"]) + latency)


def generated_seconds(f: Features, rates: Rates, c: Constants) -> Time:
    """Time of one row times a matrix in code that a compiler writes: products added up, one stream over the matrix."""
    memory = (f.item_bytes * (f.m * f.k + f.weight_share * f.k * f.n + f.m * f.n) + f.extra_bytes) / rates.memory
    compute = 2.0 * f.m * f.n * f.k / rates.vector
    return Time(compute, memory, maximum(compute, memory) + c["generated_latency_s"])


def _missed(m: Quantity, k: Quantity, rates: Rates, c: Constants) -> Quantity:
    """Share of the tiles' re-reads that go to DRAM although another tile just read the same rows."""
    rows = (m / (m + c["miss_half_rows"])) ** 0.5
    missed = minimum(c["miss_most"], maximum(0.0, k - c["miss_from_k"]) / c["miss_span_k"]) * rows
    return where(rates.capability < 7.0, missed, c["miss_later"] * missed)
