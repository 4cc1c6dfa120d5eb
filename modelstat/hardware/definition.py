"""GPUs that a user defines: from nothing, or by overriding a row. Whatever is not given is derived, and said."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import msgspec

from modelstat.errors import GpuDefinitionError
from modelstat.hardware import names
from modelstat.hardware.architecture import architecture
from modelstat.hardware.calibration import read_calibration
from modelstat.hardware.derivation import Derivation
from modelstat.hardware.fields import read_fields
from modelstat.hardware.gpu import Gpu
from modelstat.hardware.precision import PEAK_COLUMNS
from modelstat.hardware.table import load_gpus


def parse(text: str) -> Gpu:
    """A GPU from ``cores=2560,clock=1815MHz,bandwidth=448GB/s`` or ``2070 super,clock=1815MHz``.

    Raises GpuDefinitionError, or UnknownGpuError for the row that is overridden.
    """
    base, pairs = None, {}
    for position, part in enumerate(text.split(",")):
        key, equals, value = part.partition("=")
        if equals:
            if key.strip() in pairs:
                raise GpuDefinitionError(f"GPU {text!r}: {key.strip()} is given twice: give it once")
            pairs[key.strip()] = value
        elif position == 0:
            base = part
        else:
            raise GpuDefinitionError(f"GPU {text!r}: {part.strip()!r} is not key=value; a list of GPUs takes one --gpu per definition")
    return define(pairs, base=base, origin=f"GPU {text!r}")


def load(path: str) -> Gpu:
    """A GPU from a TOML file with the same keys, and ``base`` for the row that is overridden.

    A table ``[calibration]`` holds what `modelstat calibrate` measured. Raises GpuDefinitionError.
    """
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        with open(path, "rb") as file:
            pairs: dict[str, Any] = toml.load(file)
    except OSError as error:
        raise GpuDefinitionError(f"GPU file {path!r} cannot be read: {error.strerror or error}") from None
    except (toml.TOMLDecodeError, UnicodeDecodeError) as error:
        raise GpuDefinitionError(f"GPU file {path!r} is not TOML: {error}") from None
    base = pairs.pop("base", None)
    if base is not None and not isinstance(base, str):
        raise GpuDefinitionError(f"GPU file {path!r}: base must be the name of a GPU, not {base!r}")
    table = pairs.pop("calibration", None)
    gpu = define(pairs, base=base, origin=f"GPU file {path!r}")
    return gpu if table is None else msgspec.structs.replace(gpu, calibration=read_calibration(table, f"GPU file {path!r}"))


def define(pairs: Mapping[str, object], *, base: str | None = None, origin: str = "GPU definition") -> Gpu:
    """A GPU from keys and values (numbers, or texts with units), over the row called ``base`` if there is one.

    Raises GpuDefinitionError for an unknown key or unit, numbers that contradict each other, and a missing bandwidth or peak.
    """
    row = names.lookup(base, load_gpus()) if base is not None else None
    given = read_fields(pairs, origin)
    rates = None
    if "architecture" in given or "tensor_class" in given:
        arch = str(given.get("architecture") or (row.architecture if row else ""))
        if not arch:
            raise GpuDefinitionError(f"{origin}: tensor_class needs arch, such as arch=turing")
        try:
            rates = architecture(arch, str(given["tensor_class"]) if "tensor_class" in given else None)
        except GpuDefinitionError as error:
            raise GpuDefinitionError(f"{origin}: {error}") from None
    derivation = Derivation(given, row, rates, origin)
    derivation.run()
    columns = {name: value for name, value in derivation.columns.items() if name in Gpu.__struct_fields__}
    if row is None and "bandwidth_gbs" not in columns:
        raise GpuDefinitionError(f"{origin}: no bandwidth: give bandwidth=448GB/s, or data_rate=14Gbps and bus=256")
    if row is None and not any(column in columns for column in PEAK_COLUMNS):
        raise GpuDefinitionError(f"{origin}: no peak: give cores and clock, or sms, arch and clock, or a peak such as fp32=9.1")
    told = ",".join(f"{key}={value}".replace(" ", "") for key, value in pairs.items() if key != "name")
    name = str(given.get("name") or (f"{row.name} ({told})" if row else "custom GPU"))
    columns |= {"name": name, "key": f"{row.key},{told}" if row else str(given.get("name", told))}
    columns |= {"derived": tuple(derivation.sentences), "given": tuple(column for column in given if column in Gpu.__struct_fields__)}
    if row is None:
        return Gpu(**columns, confidence="definition")
    kept = tuple((column, reason) for column, reason in row.exceptions if column not in given)
    return msgspec.structs.replace(row, **columns, aliases=(), checks="", exceptions=kept)
