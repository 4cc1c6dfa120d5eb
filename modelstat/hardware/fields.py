"""The keys of a GPU definition: what each may be called, how its value is read, and where it goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches

import msgspec

from modelstat import quantities
from modelstat.errors import GpuDefinitionError, UsageError
from modelstat.hardware.precision import PEAK_COLUMNS

Value = str | int | float


class Field(msgspec.Struct, frozen=True):
    """Where a key's value goes (a column of Gpu, or an operand of the derivation) and how its text is read."""

    column: str
    read: Callable[[str], Value]


def _megahertz(text: str) -> float:
    return quantities.parse_hertz(text, default="MHz") / 1e6


def _gigabytes_per_second(text: str) -> float:
    return quantities.parse_bandwidth(text, default="GB/s") / 1e9


def _gigabits(text: str) -> float:
    return quantities.parse_data_rate(text, default="Gbps") / 1e9


def _capacity(text: str) -> float:
    """16GB and 16GiB are the same box: capacities are GiB, printed as GB."""
    unit = 2**30 if "i" in text.lower() else 1e9
    return quantities.parse_bytes(text, default="GB") / unit


def _mebibytes(text: str) -> float:
    unit = 2**20 if "i" in text.lower() else 1e6
    return quantities.parse_bytes(text, default="MB") / unit


def _bits(text: str) -> int:
    return quantities.parse_count(text.lower().removesuffix("bits").removesuffix("bit").removesuffix("-"))


def _watts(text: str) -> float:
    return quantities.parse_watts(text, default="W")


def _tera(text: str) -> float:
    return quantities.parse_flops_rate(text, default="TFLOP/s") / 1e12


FIELDS: Mapping[str, Field] = {
    "name": Field("name", str),
    "cores": Field("cores", quantities.parse_count),
    "sms": Field("sms", quantities.parse_count),
    "cores_per_sm": Field("cores_per_sm", quantities.parse_count),
    "fma_per_sm": Field("fma_per_sm", quantities.parse_count),
    "clock": Field("boost_mhz", _megahertz),
    "tensor_clock": Field("tensor_mhz", _megahertz),
    "arch": Field("architecture", str),
    "tensor_class": Field("tensor_class", str),
    "bandwidth": Field("bandwidth_gbs", _gigabytes_per_second),
    "data_rate": Field("memory_data_rate_gbps", _gigabits),
    "bus": Field("bus_bits", _bits),
    "memory": Field("memory_gb", _capacity),
    "l2": Field("l2_mb", _mebibytes),
    "tdp": Field("tdp_w", _watts),
    **{column: Field(column, _tera) for column in PEAK_COLUMNS},
}
"""Key -> field. Peaks are dense, in TFLOP/s where no unit is given."""


def read_fields(pairs: Mapping[str, object], origin: str) -> dict[str, Value]:
    """Column -> value of a definition's keys, whose case and dashes do not matter.

    Raises GpuDefinitionError naming the definition, the key and the nearest one, or the value and how to write it.
    """
    values: dict[str, Value] = {}
    for key, raw in pairs.items():
        field = FIELDS.get(key.strip().lower().replace("-", "_").replace(" ", "_"))
        if field is None:
            near = get_close_matches(key.strip().lower(), FIELDS, n=1, cutoff=0.0)
            raise GpuDefinitionError(f"{origin}: unknown key {key.strip()!r}, the nearest is {near[0]!r}; the keys are {', '.join(FIELDS)}")
        if field.column in values:
            raise GpuDefinitionError(f"{origin}: {key.strip()} is given twice: give it once")
        if isinstance(raw, bool) or not isinstance(raw, str | int | float):
            raise GpuDefinitionError(f"{origin}: {key.strip()} must be a number or a text, not {raw!r}")
        try:
            value = field.read(str(raw).strip())
        except UsageError as error:
            raise GpuDefinitionError(f"{origin}: {key.strip()}: {error}") from None
        if value in (0, ""):
            raise GpuDefinitionError(f"{origin}: {key.strip()} is {str(raw).strip()!r}: leave it out, or give a value")
        values[field.column] = value
    return values
