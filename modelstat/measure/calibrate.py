"""A device profile: what micro-benchmarks found, as the TOML that ``--gpu my-machine.toml`` takes."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import msgspec
import torch

from modelstat.hardware.calibration import Calibration, Curve
from modelstat.hardware.law import Law
from modelstat.measure.benchmarks import Benchmarks

COLUMNS = {"cpu": {"float32": "fp32", "bfloat16": "bf16_tensor"}}
"""Torch dtype -> the peak column of the profile, where it is not that of a GPU."""
GPU_COLUMNS = {"float32": "fp32", "float16": "fp16_tensor", "bfloat16": "bf16_tensor"}

NOISY = 0.1
"""A spread of repeated runs that no quiet machine has."""


def calibrate(device: str, *, budget: float = 0.2) -> str:
    """Measures this machine and returns the profile's text. ``budget`` (s) is the time of one of some ninety benchmarks."""
    benchmarks = Benchmarks(device, budget)
    found = benchmarks.run()
    return profile_text(found, benchmarks.peaks, benchmarks.bandwidth, device_name(device), memory_bytes(device), benchmarks.spread)


def device_name(device: str) -> str:
    """What the machine calls itself; of a CPU also the threads that torch uses, without which no figure holds."""
    if device == "cuda":
        return str(torch.cuda.get_device_name())
    return f"{_processor()}, {torch.get_num_threads()} threads" if device == "cpu" else f"{_processor()} GPU"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def memory_bytes(device: str) -> int | None:
    """The device's memory (B); None where the system does not tell."""
    if device == "cuda":
        return int(torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def profile_text(
    found: Calibration, attained: Mapping[str, float], bandwidth: float, name: str, memory: int | None, spread: float
) -> str:
    """The TOML. Peaks are the highest rates that were ``attained`` (FLOP/s by dtype), ``bandwidth`` B/s."""
    columns = COLUMNS.get(found.device, GPU_COLUMNS)
    peaks = {columns[dtype]: rate for dtype, rate in attained.items() if dtype in columns}
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    lines = [
        f"# modelstat calibrate --device {found.device}, {date.today().isoformat()}, torch {torch.__version__}",
        f"# What this machine attains; half of what lies between the 5th and 95th percentile of repeated runs: {spread * 100:.0f} %.",
        *(["# Something else ran at the same time: calibrate again when the machine is quiet."] if spread > NOISY else []),
        f'name = "{quoted}"',
        *(f"{column} = {rate / 1e12:.6g}  # TFLOP/s" for column, rate in peaks.items()),
        f"bandwidth = {bandwidth / 1e9:.6g}  # GB/s",
        *([f'memory = "{memory / 2**30:.1f} GiB"'] if memory else []),
        "",
        "[calibration]  # bytes and B/s; FLOP/s",
        f'device = "{found.device}"',
        f"launch_us = {found.launch_us:.4g}",
        f"host_us = {found.host_us:.4g}",
        f"memory = {_curve(found.memory)}",
        f"vector = {found.vector:.4g}",
        "",
        "[calibration.laws]  # seconds = launch + FLOPs / flops + bytes of weights / weights + other bytes / bytes",
        *(f"{kind} = {_law(law)}" for kind, law in found.laws.items()),
    ]
    return "\n".join(lines) + "\n"


def _curve(curve: Curve) -> str:
    return "[" + ", ".join(f"[{size:.6g}, {rate:.4g}]" for size, rate in curve) + "]"


def _law(law: Law) -> str:
    return "{" + ", ".join(f"{field} = {value:.4g}" for field, value in msgspec.to_builtins(law).items()) + "}"
