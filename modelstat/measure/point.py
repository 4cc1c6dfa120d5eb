"""One measured thing beside its prediction: an op, a module, a kernel, a step or the whole model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from modelstat.measure.imports.record import MeasuredKernel, whole


class MeasuredPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One op, one module or one kernel, measured: the mean over complete steps.

    ``seconds`` (s) is measured, ``predicted_seconds`` and ``ideal_seconds`` are the model's; ``error`` is predicted / measured - 1.
    ``flops`` and ``bytes`` (B) are our counts, ``counted_*`` those of the GPU's counters. ``rate`` (FLOP/s) and ``bandwidth`` (B/s)
    are our counts over the measured time; ``roof_share`` is ideal over measured time. None: unknown, as for a kernel that no op is
    known for.
    """

    name: str
    path: str = ""
    ops: tuple[int, ...] = ()
    launches: float = 0
    seconds: float | None
    predicted_seconds: float | None = None
    ideal_seconds: float | None = None
    error: float | None = None
    flops: int | None = None
    bytes: int | None = None
    intensity: float | None = None
    rate: float | None = None
    bandwidth: float | None = None
    roof_share: float | None = None
    counted_flops: float | None = None
    counted_bytes: float | None = None
    counted_l2_bytes: float | None = None
    counted_l1_bytes: float | None = None
    counted_intensity: float | None = None
    counted_rate: float | None = None
    counted_bandwidth: float | None = None


class Ours(msgspec.Struct, frozen=True):
    """What the model says of some ops: counts, predicted and ideal time (s)."""

    flops: int
    bytes: int
    predicted_seconds: float | None
    ideal_seconds: float | None


def compared(name: str, path: str, ops: tuple[int, ...], ours: Ours, measured: MeasuredKernel | None) -> MeasuredPoint:
    """Both sides as one point; ``measured`` None is a thing that no kernel covers."""
    seconds = None if measured is None else measured.seconds
    return MeasuredPoint(
        name=name,
        path=path,
        ops=ops,
        launches=0 if measured is None else measured.launches,
        seconds=seconds,
        predicted_seconds=ours.predicted_seconds,
        ideal_seconds=ours.ideal_seconds,
        error=ours.predicted_seconds / seconds - 1.0 if ours.predicted_seconds is not None and seconds else None,
        flops=ours.flops,
        bytes=ours.bytes,
        intensity=ours.flops / ours.bytes if ours.bytes else None,
        rate=quotient(ours.flops, seconds),
        bandwidth=quotient(ours.bytes, seconds),
        roof_share=ours.ideal_seconds / seconds if ours.ideal_seconds is not None and seconds else None,
        **({} if measured is None else counted(measured)),
    )


def counted(kernel: MeasuredKernel) -> dict[str, Any]:
    """The fields of a point that the GPU's counters fill."""
    intensity = kernel.flops / kernel.dram_bytes if kernel.flops is not None and kernel.dram_bytes else None
    return {
        "counted_flops": kernel.flops,
        "counted_bytes": kernel.dram_bytes,
        "counted_l2_bytes": kernel.l2_bytes,
        "counted_l1_bytes": kernel.l1_bytes,
        "counted_intensity": intensity,
        "counted_rate": quotient(kernel.flops, kernel.seconds),
        "counted_bandwidth": quotient(kernel.dram_bytes, kernel.seconds),
    }


def mean_of(kernels: Sequence[MeasuredKernel], steps: int) -> MeasuredKernel:
    """All kernels of several steps as one of a step."""

    def mean(field: str) -> float | None:
        value = whole([getattr(kernel, field) for kernel in kernels])
        return None if value is None else value / steps

    return MeasuredKernel(
        name="",
        seconds=mean("seconds"),
        launches=round(sum(kernel.launches for kernel in kernels) / steps),
        flops=mean("flops"),
        dram_bytes=mean("dram_bytes"),
        l2_bytes=mean("l2_bytes"),
        l1_bytes=mean("l1_bytes"),
    )


def quotient(amount: float | None, seconds: float | None) -> float | None:
    """Amount per second, None where one is unknown or no time has passed."""
    return amount / seconds if amount is not None and seconds else None
