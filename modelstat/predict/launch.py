"""Which kernels a way to run a model launches, and how each sees its tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from modelstat.cost.record import Cost
from modelstat.predict.execution import Execution
from modelstat.predict.fusion import Kernel, fuse, library_call
from modelstat.predict.layout import channels_last
from modelstat.records import Op, TensorSpec, Trace, natural_strides


class Launch(NamedTuple):
    """One kernel: the ops that it holds, the op whose formula times it, and whether a compiler wrote it (else it is a library's)."""

    kernel: Kernel
    op: Op
    generated: bool


def launches(trace: Trace, costs: Sequence[Cost], execution: Execution) -> tuple[Launch, ...]:
    """The kernels in order. Eager, one for each op, views included.

    A compiler lays images out channels-last by itself; what it writes reads any layout, so nothing is copied for it. Run eagerly, a trace
    that was walked channels-last is nearer to the truth than a natural one that is laid out afterwards.
    """
    compiled = execution.mode == "compile"
    laid_out = trace
    if trace.layout == "natural" and (execution.channels_last or compiled):
        laid_out = channels_last(trace, tuple(cost.family for cost in costs))
    if not compiled:
        return tuple(Launch(Kernel((index,), index, cost), laid_out.ops[index], False) for index, cost in enumerate(costs))
    found = []
    for kernel in fuse(laid_out, costs):
        generated = kernel.cost.unit != "matmul" and kernel.cost.known != "unknown"
        op = _any_layout(trace.ops[kernel.lead]) if generated else library_call(laid_out.ops[kernel.lead])
        found.append(Launch(kernel, op, generated))
    return tuple(found)


def _any_layout(op: Op) -> Op:
    """The op on contiguous tensors: generated code follows the layout that is there at the same speed."""
    return msgspec.structs.replace(op, inputs=tuple(map(_dense, op.inputs)))


def _dense(spec: TensorSpec) -> TensorSpec:
    if 0 in spec.strides:
        return spec
    return TensorSpec(spec.shape, spec.dtype, natural_strides(spec.shape), spec.value, spec.offset)
