"""The database as plain rows, for any renderer: one list of all GPUs, one view of one."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from modelstat.cost.record import Unit
from modelstat.errors import MissingPeakError, UnknownGpuError
from modelstat.hardware import names
from modelstat.hardware.gpu import Gpu, Peak
from modelstat.hardware.precision import CONTRACTION_COLUMNS
from modelstat.hardware.table import load_gpus
from modelstat.units import bandwidth, flops_rate, hertz, integer

LIST_COLUMNS = (
    "key", "name", "architecture", "memory (GB)", "bandwidth (GB/s)", "fp32 (TFLOP/s)", "fp16 (TFLOP/s)", "ridge fp32", "ridge fp16",
    "confidence",
)  # fmt: skip
PEAK_COLUMNS = ("precision", "unit", "peak", "ridge (FLOP/B)", "column", "source")

Cell = str | float | int | None
"""None: unknown, or not there."""


class GpuView(msgspec.Struct, frozen=True):
    """One GPU for a reader. ``facts`` are (label, text); ``peaks`` are rows of PEAK_COLUMNS, a missing figure with its reason as source."""

    gpu: Gpu
    facts: tuple[tuple[str, str], ...]
    peaks: tuple[tuple[Cell, ...], ...]


def list_gpus(filter_text: str | None = None) -> tuple[tuple[Cell, ...], ...]:
    """Rows of LIST_COLUMNS, contraction peaks and their ridge points, for the GPUs that have every word of the filter in a name.

    Raises UnknownGpuError where none has.
    """
    gpus = load_gpus()
    if filter_text and filter_text.strip():
        gpus = tuple(gpu for gpu in gpus if _matches(gpu, filter_text))
        if not gpus:
            near = ", ".join(names.nearest(filter_text, load_gpus()))
            raise UnknownGpuError(f"no GPU matches {filter_text!r}; the nearest are {near}")
    return tuple(_list_row(gpu) for gpu in gpus)


def view_gpu(gpu: Gpu) -> GpuView:
    """Everything that is known of one GPU."""
    peaks = [_peak_row(gpu, precision, "matmul") for precision in CONTRACTION_COLUMNS]
    peaks += [_peak_row(gpu, precision, "vector") for precision in ("fp32", "fp64")]
    return GpuView(gpu, tuple((label, text) for label, text in _facts(gpu) if text), tuple(peaks))


def _matches(gpu: Gpu, text: str) -> bool:
    haystack = " ".join((gpu.key, gpu.name, *gpu.aliases, gpu.vendor, gpu.segment, gpu.architecture)).lower()
    return all(word in haystack or names.compact(word) in names.compact(haystack) for word in text.lower().split())


def _list_row(gpu: Gpu) -> tuple[Cell, ...]:
    fp32, fp16 = _peak(gpu, "fp32"), _peak(gpu, "fp16")
    return (
        gpu.key,
        gpu.name,
        gpu.architecture,
        gpu.memory_gb,
        gpu.bandwidth_gbs,
        fp32.flops / 1e12 if fp32 else None,
        fp16.flops / 1e12 if fp16 else None,
        fp32.flops / gpu.bandwidth_bytes if fp32 else None,
        fp16.flops / gpu.bandwidth_bytes if fp16 else None,
        gpu.confidence,
    )


def _peak(gpu: Gpu, precision: str) -> Peak | None:
    try:
        return gpu.peak(precision)
    except MissingPeakError:
        return None


def _peak_row(gpu: Gpu, precision: str, unit: Unit) -> tuple[Cell, ...]:
    try:
        peak = gpu.peak(precision, unit)
    except MissingPeakError as error:
        return (precision, unit, None, None, None, str(error).partition(": ")[2].partition(";")[0])
    told = flops_rate(peak.flops)
    if precision.startswith("int"):
        told = told.replace("FLOP/s", "OP/s")
    return (precision, unit, told, peak.flops / gpu.bandwidth_bytes, peak.column, peak.source)


def _facts(gpu: Gpu) -> Sequence[tuple[str, str]]:
    return (
        ("name", gpu.name),
        ("key", gpu.key),
        ("also called", ", ".join(gpu.aliases)),
        ("other boards", ", ".join(other.key for other in names.siblings(gpu, load_gpus()))),
        ("architecture", " ".join(part for part in (gpu.vendor, gpu.architecture, f"({gpu.tensor_class} tensor rate)") if part)),
        ("compute capability", gpu.compute_capability),
        ("year", str(gpu.year or "")),
        ("units", _units(gpu)),
        ("clocks", _clocks(gpu)),
        ("bandwidth", _bandwidth(gpu)),
        ("memory", f"{gpu.memory_gb:g} GB {gpu.memory_type}" if gpu.memory_gb else ""),
        ("L2", f"{gpu.l2_mb:g} MiB" if gpu.l2_mb else ""),
        ("power", f"{gpu.tdp_w:g} W" if gpu.tdp_w else ""),
        ("host link", f"PCIe {gpu.pcie}" if gpu.pcie else ""),
        ("interconnect", _interconnect(gpu)),
        ("source", gpu.source),
        ("confidence", gpu.confidence),
        ("checks", gpu.checks),
        ("exceptions", "; ".join(f"{column}: {reason}" for column, reason in gpu.exceptions)),
        ("notes", gpu.notes),
        ("derived", "; ".join(gpu.derived)),
    )


def _units(gpu: Gpu) -> str:
    parts = [f"{gpu.sms} SMs" if gpu.vendor == "NVIDIA" else f"{gpu.sms} units"] if gpu.sms else []
    parts += [f"{integer(gpu.cores)} cores"] if gpu.cores else []
    return ", ".join(parts)


def _clocks(gpu: Gpu) -> str:
    clocks = (("boost", gpu.boost_mhz), ("base", gpu.base_mhz), ("tensor", gpu.tensor_mhz))
    return ", ".join(f"{label} {hertz(value * 1e6)}" for label, value in clocks if value)


def _bandwidth(gpu: Gpu) -> str:
    told = bandwidth(gpu.bandwidth_bytes)
    if not gpu.memory_data_rate_gbps or not gpu.bus_bits:
        return told
    product = bandwidth(gpu.memory_data_rate_gbps * gpu.bus_bits / 8 * 1e9)
    return f"{told} ({gpu.memory_data_rate_gbps:g} Gbit/s x {gpu.bus_bits} bit / 8 = {product})"


def _interconnect(gpu: Gpu) -> str:
    if not gpu.interconnect_gbs:
        return ""
    directions = "one way" if gpu.architecture.startswith("Gaudi") else "both directions together"
    return f"{bandwidth(gpu.interconnect_gbs * 1e9)}, {directions}"
