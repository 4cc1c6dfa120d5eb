"""The time of an op on a calibrated machine: measured rates at the op's size, and what any op costs there."""

from __future__ import annotations

from modelstat.cost.record import Cost
from modelstat.hardware.calibration import Calibration, Curve, rate_at
from modelstat.predict.kernels.timing import Time
from modelstat.records import Op


def seconds(op: Op, cost: Cost, found: Calibration) -> Time:
    """launch + max(FLOPs / rate(FLOPs), bytes / rate(bytes)) (s). A contraction of a dtype that was not measured runs at fp32's rate."""
    memory = cost.bytes / rate_at(found.memory, cost.bytes) if cost.bytes else 0.0
    compute = cost.flops / _rate(op, cost, found) if cost.flops else 0.0
    return Time(compute, memory, found.launch_us / 1e6 + max(compute, memory))


def _rate(op: Op, cost: Cost, found: Calibration) -> float:
    if cost.unit != "matmul":
        return found.vector
    products: Curve = found.matmul.get(cost.dtype) or found.matmul.get("float32") or next(iter(found.matmul.values()))
    if cost.family != "convolution":
        return rate_at(products, cost.flops)
    single = rate_at(found.depthwise if _is_depthwise(op) else found.convolution, cost.flops)
    # Convolutions were measured in fp32: another dtype is as much faster or slower as its products are.
    base = found.matmul.get("float32")
    return single if base is None else single * rate_at(products, cost.flops) / rate_at(base, cost.flops)


def _is_depthwise(op: Op) -> bool:
    weight = op.tensor("weight")
    return weight is not None and len(weight.shape) > 2 and weight.shape[1] == 1 and int(op.argument("groups", 1)) > 1
