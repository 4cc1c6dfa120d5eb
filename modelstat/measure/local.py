"""The GPU of this machine as a record of the database, and its clocks and temperature where NVML tells them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import torch

from modelstat.errors import ModelstatError, UsageError
from modelstat.hardware.database import find
from modelstat.hardware.definition import define
from modelstat.hardware.gpu import Gpu
from modelstat.measure.calibrate import device_name, memory_bytes

ARCHITECTURES = {
    (6, 1): "gp10x", (7, 0): "volta", (7, 5): "turing", (8, 0): "ga100", (8, 6): "ampere", (8, 9): "ada", (9, 0): "hopper",
    (12, 0): "gb20x",
}  # fmt: skip
"""Compute capability -> a name that the database knows."""

PROPERTIES = (
    "name", "multi_processor_count", "major", "minor", "clock_rate", "memory_clock_rate", "memory_bus_width", "total_memory",
    "L2_cache_size",
)  # fmt: skip
"""What torch tells of a device; which of it depends on torch's version."""

DIFFERENT = 0.02
"""A clock that differs by less from the database's is the database's."""


class Sensors(msgspec.Struct, frozen=True):
    """What NVML says while a GPU works: clocks (MHz), temperature (degrees C), power and its limit (W); None where it does not."""

    sm_mhz: int | None = None
    max_sm_mhz: int | None = None
    memory_mhz: int | None = None
    temperature: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None

    @property
    def text(self) -> str:
        """For a report: ``1410 MHz, 54 C, 212 W of 400 W``; empty where nothing is known."""
        power = "" if self.power_limit_w is None else f" of {self.power_limit_w:.0f} W"
        parts = (
            "" if self.sm_mhz is None else f"{self.sm_mhz} MHz",
            "" if self.temperature is None else f"{self.temperature} C",
            "" if self.power_w is None else f"{self.power_w:.0f} W{power}",
        )
        return ", ".join(part for part in parts if part)


def sensors() -> Sensors:
    """The state of the current CUDA device, as far as NVML (nvidia-ml-py) tells it; all None without it."""
    try:
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}")
    except Exception:  # no library, no driver, or a device that NVML does not see: there is no time to lose over a clock
        return Sensors()

    def ask(question: Any, *given: Any, scale: float = 1) -> Any:
        try:
            value = question(handle, *given)
        except pynvml.NVMLError:
            return None
        return value if scale == 1 else value / scale

    return Sensors(
        ask(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_SM),
        ask(pynvml.nvmlDeviceGetMaxClockInfo, pynvml.NVML_CLOCK_SM),
        ask(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_MEM),
        ask(pynvml.nvmlDeviceGetTemperature, pynvml.NVML_TEMPERATURE_GPU),
        ask(pynvml.nvmlDeviceGetPowerUsage, scale=1e3),
        ask(pynvml.nvmlDeviceGetPowerManagementLimit, scale=1e3),
    )


class LocalGpu(msgspec.Struct, frozen=True):
    """The record of a device here, the definition that gives the same record anywhere, and whether the database knows its name."""

    name: str
    gpu: Gpu
    definition: str
    known: bool


def is_there() -> bool:
    """Whether torch finds a CUDA device."""
    return torch.cuda.is_available()


def local_gpu() -> LocalGpu:
    """The current CUDA device. Raises UsageError where it is not in the database and too little is known of it."""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return recognised({name: getattr(properties, name, None) for name in PROPERTIES}, sensors())


def recognised(properties: Mapping[str, Any], known: Sensors) -> LocalGpu:
    """The record of a device, by its name in the database with its real clock and power limit, else derived from its properties.

    ``properties`` are those of ``torch.cuda.get_device_properties``: clocks in kHz, bus width in bits, memory in bytes.
    """
    name = str(properties["name"])
    try:
        row = find(name)
    except ModelstatError:
        pairs = _derived(properties, name)
        return LocalGpu(name, define(pairs, origin=f"the local {name}"), _definition(pairs), known=False)
    limits: dict[str, object] = {}
    if known.max_sm_mhz and row.boost_mhz and row.sms and known.max_sm_mhz < row.boost_mhz * (1 - DIFFERENT):
        limits["clock"] = f"{known.max_sm_mhz} MHz"
    if known.power_limit_w and row.tdp_w and abs(known.power_limit_w / row.tdp_w - 1) > DIFFERENT:
        limits["tdp"] = f"{known.power_limit_w:.0f} W"
    gpu = define(limits, base=row.key, origin=f"the local {name}") if limits else row
    return LocalGpu(name, gpu, ",".join([row.key, *([_definition(limits)] if limits else [])]), known=True)


def _definition(pairs: Mapping[str, object]) -> str:
    """What ``--gpu`` takes: ``name=...,sms=10,clock=2000MHz``; commas part the keys, so that no name may hold one."""
    texts = {key: str(value).replace(",", " ") if key == "name" else str(value).replace(" ", "") for key, value in pairs.items()}
    return ",".join(f"{key}={text}" for key, text in texts.items())


def _derived(properties: Mapping[str, Any], name: str) -> dict[str, object]:
    """The keys of a definition. Raises UsageError where too little is known."""
    capability = (properties["major"], properties["minor"])
    needed = ("multi_processor_count", "clock_rate", "memory_clock_rate", "memory_bus_width")
    missing = [each for each in needed if not properties.get(each)]
    if capability not in ARCHITECTURES or missing:
        unknown = f"compute capability {capability[0]}.{capability[1]} is unknown"
        why = f"this torch does not tell its {', '.join(missing)}" if missing else unknown
        raise UsageError(f"{name} is not in the database and {why}: add --gpu with a definition, see `modelstat gpus`")
    # Two transfers a clock: double data rate.
    bandwidth = 2 * properties["memory_clock_rate"] * 1e3 * properties["memory_bus_width"] / 8
    return {
        "name": name,
        "arch": ARCHITECTURES[capability],
        "sms": properties["multi_processor_count"],
        "clock": f"{properties['clock_rate'] / 1e3:g} MHz",
        "bandwidth": f"{bandwidth / 1e9:g} GB/s",
        **({"memory": f"{properties['total_memory'] / 2**30:.1f} GiB"} if properties.get("total_memory") else {}),
        **({"l2": f"{properties['L2_cache_size'] / 2**20:g} MiB"} if properties.get("L2_cache_size") else {}),
    }


def without_gpu() -> str:
    """One line on a machine without a CUDA device: what torch finds instead, and how its figures can be measured."""
    device = "mps" if torch.backends.mps.is_available() else "cpu"
    built = "finds no CUDA GPU" if torch.backends.cuda.is_built() else "was built without CUDA"
    memory = memory_bytes(device)
    told = f"{device_name(device)}{f', {memory / 2**30:.1f} GiB' if memory else ''}"
    command = f"modelstat calibrate --device {device} --output my-machine.toml"
    return f"torch {torch.__version__} {built} here. {device}: {told}; `{command}` measures it, and --gpu my-machine.toml takes that."
