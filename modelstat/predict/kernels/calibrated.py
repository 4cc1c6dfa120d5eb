"""The time of an op on a calibrated machine: the law of its kind of layer, or measured rates and what any op costs there."""

from __future__ import annotations

from modelstat.cost.record import Cost
from modelstat.hardware.calibration import BASE, Calibration, rate_at
from modelstat.hardware.law import Law
from modelstat.predict.kernels.timing import Time
from modelstat.records import Op, TensorSpec

FAMILIES = ("pooling", "norm", "reduction", "softmax")
"""Families of ops that have a law under their own name."""
COMPUTED = ("gelu", "sigmoid", "silu", "tanh", "exp", "log", "erf", "softplus", "mish", "elu", "pow", "sin", "cos")
"""Functions that no instruction has: beyond moving the numbers, they have to be worked out."""
WHOLE = 16
"""Channels that libraries work on at once: other numbers take slower ways (measured on x86 with oneDNN, 2026-11)."""
IMAGE = 4
"""An input with so few channels is an image, for which there are ways of its own."""


def seconds(op: Op, cost: Cost, found: Calibration) -> Time:
    """By its kind's law, else launch + max(FLOPs / rate, bytes / rate(bytes)) (s). What was not measured runs like an fp32 product."""
    kind = _kind(op, cost)
    if kind is None or (kind in FAMILIES and kind not in found.laws):
        compute = cost.flops / found.vector if _computed(op) else 0.0
        memory = cost.bytes / rate_at(found.memory, cost.bytes) if cost.bytes else 0.0
        return Time(compute, memory, found.launch_us / 1e6 + max(compute, memory))
    law = _law(kind, cost, found)
    weight = _weight(op, cost)
    weights = 0 if weight is None else weight.bytes
    compute = cost.flops / law.flops if law.flops else 0.0
    total = law.seconds(cost.flops, weights, max(0, cost.bytes - weights))
    return Time(compute, total - compute - law.launch_us / 1e6, total)


def _kind(op: Op, cost: Cost) -> str | None:
    if cost.family == "convolution" and (weight := op.tensor("weight")) is not None and len(weight.shape) > 2:
        outputs = op.outputs[0].shape[1] if len(op.outputs[0].shape) > 1 else weight.shape[0]
        inputs = op.inputs[0].shape[1] if len(op.inputs[0].shape) > 1 else weight.shape[1]
        if inputs == int(op.argument("groups", 1)) > 1:
            name = "depthwise"
        else:
            name = "pointwise" if all(size == 1 for size in weight.shape[2:]) else "convolution"
        ragged = outputs % WHOLE or (inputs % WHOLE and inputs > IMAGE)
        return f"{name}-ragged" if ragged else name
    if cost.unit == "matmul":
        return f"matmul-{cost.dtype}"
    return cost.family if cost.family in FAMILIES else None


def _law(kind: str, cost: Cost, found: Calibration) -> Law:
    law = found.laws.get(kind) or found.laws.get(kind.removesuffix("-ragged")) or found.laws[BASE]
    base, own = found.laws[BASE].flops, found.laws.get(f"matmul-{cost.dtype}")
    if kind.startswith("matmul-") or law.flops is None or own is None or base is None or own.flops is None:
        return law
    # Convolutions were measured in fp32: another dtype is as much faster or slower as its products are.
    return Law(law.launch_us, law.flops * own.flops / base, law.weights, law.bytes)


def _weight(op: Op, cost: Cost) -> TensorSpec | None:
    """The weight of a convolution, and the matrix that a product's rows are multiplied with."""
    if cost.family == "convolution":
        return op.tensor("weight")
    matrix = op.tensor("mat2") or op.tensor("weight") if cost.family == "matmul" else None
    return matrix if matrix is not None and len(matrix.shape) == 2 else None


def _computed(op: Op) -> bool:
    return op.name.removeprefix("aten::").rstrip("_") in COMPUTED
