"""The roofline and nothing else: per op the larger of FLOPs / peak and bytes / bandwidth, with no overhead and no overlap of ops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from modelstat.cost.record import Cost, Unit
from modelstat.errors import MissingPeakError
from modelstat.hardware.gpu import Gpu, Peak
from modelstat.memory.peak import peak_memory
from modelstat.records import Trace

Bound = Literal["compute", "memory"]

FITS_SHARE = 0.95
"""Share of a GPU's memory that a model may take: the rest is the driver's, the context's and the fragmentation's."""


def bound(compute_seconds: float | None, memory_seconds: float | None) -> Bound | None:
    """Which of two times sets the larger one; None where one is unknown or both are zero.

    >>> bound(2e-6, 1e-6), bound(0.0, 0.0)
    ('compute', None)
    """
    if compute_seconds is None or memory_seconds is None or compute_seconds == memory_seconds == 0:
        return None
    return "compute" if compute_seconds >= memory_seconds else "memory"


class OpTime(msgspec.Struct, frozen=True):
    """Both sides of one op's roofline, or of many ops' together (s).

    ``compute_seconds`` is None where a contraction has no peak on the GPU, and 0 where only bytes are held against it (copies, ops
    without a formula, vector work on a GPU without a vector peak: the roofline's notes say so).
    """

    compute_seconds: float | None
    memory_seconds: float

    @property
    def ideal_seconds(self) -> float | None:
        """The larger side (s); None where the compute side is unknown."""
        return None if self.compute_seconds is None else max(self.compute_seconds, self.memory_seconds)

    @property
    def upper_seconds(self) -> float | None:
        """Both sides one after the other (s): never more than twice the ideal time."""
        return None if self.compute_seconds is None else self.compute_seconds + self.memory_seconds

    @property
    def bound(self) -> Bound | None:
        """The side that sets the time; None where it is unknown or nothing happens."""
        return bound(self.compute_seconds, self.memory_seconds)


class LayerTime(msgspec.Struct, frozen=True):
    """What the ops of a module and of all below it take together (s): sums over ops, None where an op has no peak."""

    compute_seconds: float | None
    memory_seconds: float
    ideal_seconds: float | None

    @property
    def bound(self) -> Bound | None:
        """The sum of the one side against the sum of the other."""
        return bound(self.compute_seconds, self.memory_seconds)


class Roofline(msgspec.Struct, frozen=True):
    """A trace's costs against one GPU. Every total is None where ``missing`` says that a contraction has no peak there."""

    gpu: Gpu
    peak: Peak | None
    """Peak of the model's contractions at the dtype of most MACs (a model without any: at its precision)."""
    missing: str | None
    """Why there are no times."""
    ops: tuple[OpTime, ...]
    compute_seconds: float | None
    memory_seconds: float | None
    ideal_seconds: float | None
    """Sum over ops of the larger side."""
    upper_seconds: float | None
    """Sum over ops of both sides."""
    whole_model_seconds: float | None
    """max(total FLOPs / peak, total bytes / bandwidth)."""
    bound: Bound | None
    """Sum of the compute sides against the sum of the memory sides."""
    attainable_flops: float | None
    """min(intensity x bandwidth, peak) of the whole model (FLOP/s)."""
    ridge: float | None
    """Peak / bandwidth (FLOP/B)."""
    fits: bool | None
    """The peak memory at inference is at most 95 % of the GPU's memory; None where that is not the GPU's own."""
    fits_basis: Literal["peak memory"] = "peak memory"
    notes: tuple[str, ...] = ()


def roofline(trace: Trace, costs: Sequence[Cost], gpu: Gpu) -> Roofline:
    """Hold the cost of every op against a GPU.

    ``costs`` are those of ``trace.ops``, in order. A precision of tf32 runs float32 contractions at the tf32 peak. Raises nothing for
    a missing peak: ``missing`` has the reason, so that one of several GPUs may lack it.
    """
    peaks = _PeakTable(gpu, tf32=trace.precision == "tf32")
    ops = tuple(peaks.time(cost) for cost in costs)
    main, main_reason = peaks.peak(_main_dtype(costs, trace.precision))
    known = None not in (op.compute_seconds for op in ops)
    missing = None if known else next(reason for reason in peaks.missing if reason)
    flops, size = sum(cost.flops for cost in costs), sum(cost.bytes for cost in costs)
    whole = max(flops / main.flops, size / gpu.bandwidth_bytes) if main and known else None
    compute = sum(op.compute_seconds or 0.0 for op in ops) if known else None
    memory = sum(op.memory_seconds for op in ops) if known else None
    notes = [*peaks.notes]
    if known and main_reason:
        notes.append(f"no whole-model time: {main_reason}")
    return Roofline(
        gpu=gpu,
        peak=main,
        missing=missing,
        ops=ops,
        compute_seconds=compute,
        memory_seconds=memory,
        ideal_seconds=sum(op.ideal_seconds or 0.0 for op in ops) if known else None,
        upper_seconds=sum(op.upper_seconds or 0.0 for op in ops) if known else None,
        whole_model_seconds=whole,
        bound=bound(compute, memory),
        attainable_flops=min(flops / size * gpu.bandwidth_bytes, main.flops) if main and size and known else None,
        ridge=main.flops / gpu.bandwidth_bytes if main else None,
        fits=_fits(trace, gpu),
        notes=tuple(notes),
    )


def peak_name(dtype: str, unit: Unit, *, tf32: bool) -> str:
    """What to ask a GPU's peak by for arithmetic in ``dtype``: a model in tf32 runs its float32 contractions so.

    >>> peak_name("float32", "matmul", tf32=True), peak_name("float32", "vector", tf32=True)
    ('tf32', 'float32')
    """
    return "tf32" if tf32 and unit == "matmul" and dtype in {"float32", "complex64"} else dtype


def layer_times(trace: Trace, result: Roofline) -> tuple[LayerTime, ...]:
    """The time of every module with all below it, in the order of ``trace.modules``."""
    compute: list[float | None] = [0.0] * len(trace.modules)
    memory = [0.0] * len(trace.modules)
    ideal = [0.0] * len(trace.modules)
    for op, time in zip(trace.ops, result.ops, strict=True):
        for index in _ancestors(trace, op.module):
            memory[index] += time.memory_seconds
            so_far = compute[index]
            if so_far is None or time.compute_seconds is None:
                compute[index] = None
            else:
                compute[index] = so_far + time.compute_seconds
                ideal[index] += max(time.compute_seconds, time.memory_seconds)
    return tuple(
        LayerTime(seconds, moved, None if seconds is None else best) for seconds, moved, best in zip(compute, memory, ideal, strict=True)
    )


def _ancestors(trace: Trace, index: int) -> Iterator[int]:
    while index >= 0:
        yield index
        index = trace.modules[index].parent


def _main_dtype(costs: Sequence[Cost], precision: str) -> str:
    """The dtype of most MACs; without MACs, the model's precision."""
    macs: dict[str, int] = {}
    for cost in costs:
        if cost.unit == "matmul" and cost.macs:
            macs[cost.dtype] = macs.get(cost.dtype, 0) + cost.macs
    return max(macs, key=lambda dtype: macs[dtype]) if macs else precision


def _fits(trace: Trace, gpu: Gpu) -> bool | None:
    if gpu.memory_bytes is None:
        return None
    return peak_memory(trace).peak_bytes <= FITS_SHARE * gpu.memory_bytes


class _PeakTable:
    """Peaks of one GPU, looked up once per unit and dtype, and what was missing on the way."""

    def __init__(self, gpu: Gpu, *, tf32: bool) -> None:
        self.gpu = gpu
        self.tf32 = tf32
        self.notes: dict[str, None] = {}
        self.missing: dict[str, None] = {}
        self._found: dict[tuple[str, str], tuple[Peak | None, str | None]] = {}

    def peak(self, dtype: str, unit: Literal["matmul", "vector"] = "matmul") -> tuple[Peak | None, str | None]:
        """The peak, or None and the reason."""
        dtype = peak_name(dtype, unit, tf32=self.tf32)
        if (dtype, unit) not in self._found:
            try:
                self._found[dtype, unit] = (self.gpu.peak(dtype, unit), None)
            except MissingPeakError as error:
                self._found[dtype, unit] = (None, str(error))
        return self._found[dtype, unit]

    def time(self, cost: Cost) -> OpTime:
        """Both sides of one op (s)."""
        memory = cost.bytes / self.gpu.bandwidth_bytes
        if cost.known == "free":
            return OpTime(0.0, 0.0)
        if cost.unit == "none" or cost.flops == 0:
            return OpTime(0.0, memory)
        peak, reason = self.peak(cost.dtype, cost.unit)
        if peak is not None:
            return OpTime(cost.flops / peak.flops, memory)
        if cost.unit == "vector":
            self.notes[f"element-wise work counts bytes only: {reason}"] = None
            return OpTime(0.0, memory)
        self.missing[str(reason)] = None
        return OpTime(None, memory)
