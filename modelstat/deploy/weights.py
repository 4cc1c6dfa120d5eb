"""Which operand of an op is a weight."""

from __future__ import annotations

from modelstat.cost.record import Cost
from modelstat.records import Op, TensorSpec, Trace

FAMILIES = ("matmul", "convolution")
"""Contractions with kernels for quantised and for split weights; attention in one op and recurrent layers keep theirs."""


def weight_of(op: Op, cost: Cost, trace: Trace) -> TensorSpec | None:
    """The weight that a convolution or a matrix product multiplies with, None for every other op."""
    if cost.family not in FAMILIES or not cost.macs or op.view or cost.known != "formula":
        return None
    found = [
        spec
        for name, spec in zip(op.names, op.inputs, strict=True)
        if trace.values[spec.value].kind == "parameter" and len(spec.shape) > 1 and name not in ("bias", "scales")
    ]
    return found[-1] if found else None
