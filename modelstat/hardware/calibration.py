"""What micro-benchmarks found on one machine, in place of formulas that were fitted on GPUs."""

from __future__ import annotations

from bisect import bisect_left
from math import exp, log

import msgspec

from modelstat.errors import GpuDefinitionError
from modelstat.hardware.law import Law

Curve = tuple[tuple[float, float], ...]
"""(size, rate) by rising size: bytes (B) and B/s."""
BASE = "matmul-float32"
"""The law that stands in for any contraction without one of its own."""


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Measured rates of a device.

    ``launch_us`` (us) is what an op costs beyond its work, ``host_us`` what its host takes to issue one beside a device that works on
    its own (0 on a CPU, where the host is the device). ``memory`` is the curve of an element-wise op over the bytes read and written,
    ``vector`` the FLOP/s of functions that no instruction has (exp, erf). ``laws`` are those of kinds of layers by name: ``matmul-DTYPE``
    (``matmul-float32`` at least), ``convolution``, ``pointwise`` and ``depthwise``, each also ``-ragged``, ``pooling``, ``norm``,
    ``reduction`` and ``softmax``.
    """

    device: str
    launch_us: float
    memory: Curve
    vector: float
    laws: dict[str, Law]
    host_us: float = 0.0

    def __hash__(self) -> int:
        return hash((self.device, self.launch_us, self.memory))


def rate_at(curve: Curve, size: float) -> float:
    """The rate at a size, between the measured ones straight in logarithms; beyond them that of the nearest.

    >>> rate_at(((1.0, 10.0), (100.0, 1000.0)), 10.0), rate_at(((1.0, 10.0),), 5.0)
    (100.0, 10.0)
    """
    place = bisect_left(curve, (size, 0.0))
    if place == 0 or place == len(curve):
        return curve[min(place, len(curve) - 1)][1]
    (x0, y0), (x1, y1) = curve[place - 1], curve[place]
    share = (log(size) - log(x0)) / (log(x1) - log(x0))
    return round(exp(log(y0) + share * (log(y1) - log(y0))), 9)


def read_calibration(table: object, origin: str) -> Calibration:
    """The table ``[calibration]`` of a device profile. Raises GpuDefinitionError for anything else."""
    try:
        found = msgspec.convert(table, Calibration, strict=False)
    except msgspec.ValidationError as error:
        raise GpuDefinitionError(f"{origin}: calibration: {error}: let `modelstat calibrate` write the file") from None
    sizes = [size for size, _ in found.memory]
    if not sizes or sizes != sorted(set(sizes)) or any(not 0 < each < float("inf") for pair in found.memory for each in pair):
        raise GpuDefinitionError(f"{origin}: calibration: memory must be pairs above 0 of rising size")
    spoilt = next((name for name, law in found.laws.items() if not law.plausible), None)
    if spoilt is not None:
        raise GpuDefinitionError(f"{origin}: calibration: {spoilt}: rates are above 0, and no time is below 0")
    times = (found.launch_us, found.host_us)
    if BASE not in found.laws or not all(0 <= each < float("inf") for each in times) or not 0 < found.vector < float("inf"):
        raise GpuDefinitionError(f"{origin}: calibration: {BASE} and vector are needed, and no time is below 0")
    return found
