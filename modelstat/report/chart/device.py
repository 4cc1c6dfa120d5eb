"""A GPU as a chart shows it: a roof per memory, a ceiling per unit and precision, and what had to be left out."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from modelstat.cost.record import Cost, Unit
from modelstat.errors import MissingPeakError
from modelstat.hardware.gpu import Gpu, Peak
from modelstat.hardware.link import link_bytes
from modelstat.hardware.listing import Cell, view_gpu
from modelstat.hardware.precision import CONTRACTION_COLUMNS, MATRIX_COLUMNS
from modelstat.predict.roofline import Roofline, peak_name
from modelstat.records import Trace

L1_BYTES_PER_CLOCK = 128
"""Bytes that the L1 cache and the shared memory of an SM deliver per clock: 32 banks of 4 bytes (CUDA C++ Programming Guide, arithmetic
and memory of compute capability 5.x and later)."""


class Roof(msgspec.Struct, frozen=True):
    """A memory: its bandwidth (B/s), where that comes from, and whether an op of the model is bound by it."""

    name: str
    bandwidth: float
    source: str
    on: bool


class Ceiling(msgspec.Struct, frozen=True):
    """A peak (FLOP/s) with its ridge point on the main memory (FLOP/B), and whether an op of the model runs on it."""

    name: str
    precision: str
    unit: str
    flops: float
    ridge: float
    source: str
    on: bool


class PeakRow(msgspec.Struct, frozen=True):
    """One line of the device panel: a peak as text, or why there is none."""

    precision: str
    unit: str
    peak: str | None
    ridge: float | None
    source: str


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU. The first roof is its main memory; ``left_out`` says which roofs and ceilings are missing and why."""

    key: str
    name: str
    facts: tuple[tuple[str, str], ...]
    peaks: tuple[PeakRow, ...]
    roofs: tuple[Roof, ...]
    ceilings: tuple[Ceiling, ...]
    link: float | None
    """Bandwidth of the host link in one direction (B/s)."""
    memory_bytes: float | None
    left_out: tuple[str, ...]


def device(trace: Trace, costs: Sequence[Cost], roofline: Roofline) -> Device:
    """The GPU of a roofline, with the ceilings that the model runs on switched on."""
    gpu = roofline.gpu
    ceilings, left_out = _ceilings(trace, costs, gpu)
    roofs, absent = _roofs(roofline)
    view = view_gpu(gpu)
    return Device(
        key=gpu.key,
        name=gpu.name,
        facts=view.facts,
        peaks=tuple(_peak_row(gpu, cells) for cells in view.peaks),
        roofs=roofs,
        ceilings=ceilings,
        link=link_bytes(gpu),
        memory_bytes=gpu.memory_bytes,
        left_out=(*left_out, *absent),
    )


def _peak_row(gpu: Gpu, cells: Sequence[Cell]) -> PeakRow:
    precision, unit, peak, ridge, column, source = cells
    ridge = float(ridge) if ridge is not None else None
    return PeakRow(str(precision), _unit_name(gpu, column, unit), None if peak is None else str(peak), ridge, str(source))


def _roofs(roofline: Roofline) -> tuple[tuple[Roof, ...], tuple[str, ...]]:
    gpu = roofline.gpu
    memory_bound = any(time.bound == "memory" for time in roofline.ops)
    main = Roof(gpu.memory_type or "memory", gpu.bandwidth_bytes, gpu.source.partition("derived:")[0].strip(" ;"), memory_bound)
    absent = [] if gpu.vendor == "Google" else ["L2: no source states its bandwidth"]
    if gpu.vendor == "Google":
        absent.append("VMEM and CMEM: no source states their bandwidth")
    if gpu.vendor != "NVIDIA" or not gpu.sms or not gpu.boost_mhz or float(gpu.compute_capability or 0) < 5:
        if gpu.vendor != "Google":
            absent.append("L1: bytes per clock are known for NVIDIA's SMs only")
        return (main,), tuple(absent)
    told = f"{gpu.sms} SMs x {L1_BYTES_PER_CLOCK} B x {gpu.boost_mhz:g} MHz"
    # Which op is bound by L1 is not known: bytes are counted where they leave the chip.
    l1 = Roof("L1, shared memory", gpu.sms * L1_BYTES_PER_CLOCK * gpu.boost_mhz * 1e6, told, False)
    return (main, l1), tuple(absent)


def _ceilings(trace: Trace, costs: Sequence[Cost], gpu: Gpu) -> tuple[tuple[Ceiling, ...], tuple[str, ...]]:
    """The peaks that the model's arithmetic runs on, then the others that its GPU has; and the reasons of those that it lacks."""
    used: dict[tuple[str, Unit], None] = {}
    for cost in costs:
        if cost.flops and cost.unit != "none":
            used[peak_name(cost.dtype, cost.unit, tf32=trace.precision == "tf32"), cost.unit] = None
    found: dict[tuple[str, str], Ceiling] = {}
    missing: dict[str, None] = {}
    for dtype, unit in used:
        try:
            peak = gpu.peak(dtype, unit)
        except MissingPeakError as error:
            missing[f"ceiling of {dtype} {'contractions' if unit == 'matmul' else 'element-wise work'}: {error}"] = None
            continue
        found.setdefault((peak.column, unit), _ceiling(gpu, peak, unit, on=True))
    for precision in CONTRACTION_COLUMNS:
        if precision in gpu.precisions and not precision.startswith("int"):
            peak = gpu.peak(precision)
            found.setdefault((peak.column, "matmul"), _ceiling(gpu, peak, "matmul", on=False))
    ordered = sorted(found.values(), key=lambda each: (not each.on, -each.flops, each.name))
    return tuple(ordered), tuple(missing)


def _ceiling(gpu: Gpu, peak: Peak, unit: Unit, *, on: bool) -> Ceiling:
    precision = peak.column.partition("_")[0]
    where = _unit_name(gpu, peak.column, unit)
    name = f"{precision} element-wise" if unit == "vector" else f"{precision} {where}"
    return Ceiling(name, precision, where, peak.flops, peak.flops / gpu.bandwidth_bytes, peak.source, on)


def _unit_name(gpu: Gpu, column: object, unit: object) -> str:
    """What the vendor calls the unit behind a column of peaks; without a column, the kind of work."""
    nvidia = gpu.vendor == "NVIDIA"
    if column is None:
        return "contractions" if unit == "matmul" else "element-wise"
    if unit == "vector":
        return "CUDA cores, element-wise" if nvidia else "vector units, element-wise"
    if column in MATRIX_COLUMNS:
        return "tensor cores" if nvidia else "matrix units"
    return "CUDA cores" if nvidia else "vector units"
