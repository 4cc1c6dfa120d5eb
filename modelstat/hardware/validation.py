"""The arithmetic that every row of the database must satisfy, and the deviations that it owns up to."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from modelstat.errors import GpuDefinitionError
from modelstat.hardware.gpu import Gpu
from modelstat.hardware.precision import PEAK_COLUMNS
from modelstat.hardware.rates import ArchitectureRates, peak_clock

TOLERANCE = 0.02


class Deviation(msgspec.Struct, frozen=True):
    """One column that a formula does not confirm, in words with the numbers."""

    column: str
    message: str


def deviations(gpu: Gpu, rates: ArchitectureRates | None) -> Iterator[Deviation]:
    """Every column of a row that its formula contradicts by more than 2 %, or cannot be checked for lack of an operand.

    * tensor_mhz = boost_mhz
    * cores = SMs x cores per SM of the architecture
    * fp32 = 2 x cores x boost clock
    * bandwidth = data rate per pin x bus width / 8
    * every peak = rate of the architecture and tensor class x SMs x clock (see ``peak_clock``)
    * fp16_tensor is there where the architecture has tensor cores, since a contraction would otherwise fall to the vector lanes
    """
    if gpu.tensor_mhz is not None and _differs(gpu.tensor_mhz, gpu.boost_mhz):
        yield Deviation("tensor_mhz", f"{gpu.tensor_mhz:g} MHz, but the boost clock is {gpu.boost_mhz} MHz")
    if gpu.memory_data_rate_gbps is None or gpu.bus_bits is None:
        yield Deviation("bandwidth_gbs", "no data rate and bus width to check it with")
    else:
        expected = gpu.memory_data_rate_gbps * gpu.bus_bits / 8
        if _differs(gpu.bandwidth_gbs, expected):
            formula = f"{gpu.memory_data_rate_gbps:g} Gbit/s x {gpu.bus_bits} bit / 8 = {expected:.5g}"
            yield Deviation("bandwidth_gbs", f"{gpu.bandwidth_gbs:g} GB/s, but {formula} GB/s")
    if gpu.fp32 is not None:
        if gpu.cores is None or gpu.boost_mhz is None:
            yield Deviation("fp32", "no cores and boost clock to check it with")
        elif _differs(gpu.fp32, expected := 2 * gpu.cores * gpu.boost_mhz / 1e6):
            yield Deviation("fp32", f"{gpu.fp32:g} TFLOP/s, but 2 x {gpu.cores} cores x {gpu.boost_mhz:g} MHz = {expected:.5g} TFLOP/s")
    if rates is None:
        yield Deviation("architecture", f"{gpu.architecture!r} with tensor class {gpu.tensor_class!r} has no row in arch_rates.csv")
        return
    if gpu.cores is not None and gpu.sms is not None and gpu.cores != gpu.sms * (rates.cores_per_sm or 0):
        yield Deviation("cores", f"{gpu.cores}, but {gpu.sms} SMs x {rates.cores_per_sm} = {gpu.sms * (rates.cores_per_sm or 0)}")
    yield from _peaks(gpu, rates)


def _peaks(gpu: Gpu, rates: ArchitectureRates) -> Iterator[Deviation]:
    if gpu.fp16_tensor is None and rates.fp16_tensor is not None:
        yield Deviation("fp16_tensor", f"empty, but {gpu.architecture} does {rates.fp16_tensor:g} per SM and clock")
    for column in PEAK_COLUMNS:
        value: float | None = getattr(gpu, column)
        if value is None:
            continue
        rate, clock = rates.rate(column), peak_clock(column, gpu.boost_mhz, gpu.tensor_mhz)
        if rate is None or gpu.sms is None or clock is None:
            yield Deviation(column, f"{value:g}, but {gpu.architecture} has no rate, SMs or clock to check it with")
        elif _differs(value, expected := rate * gpu.sms * clock / 1e6):
            yield Deviation(column, f"{value:g}, but {rate:g} x {gpu.sms} SMs x {clock:g} MHz = {expected:.5g} TFLOP/s")


def validate(gpu: Gpu, rates: ArchitectureRates | None) -> None:
    """Check a row. Raises GpuDefinitionError naming the row, the columns and the numbers that fail, unless ``exceptions`` lists them."""
    excepted = dict(gpu.exceptions)
    found = [deviation for deviation in deviations(gpu, rates) if deviation.column not in excepted]
    if found:
        told = "; ".join(f"{deviation.column} is {deviation.message}" for deviation in found)
        raise GpuDefinitionError(f"GPU row {gpu.key}: {told}: correct the row or list the column in its exceptions")


def superfluous(gpu: Gpu, rates: ArchitectureRates | None) -> tuple[str, ...]:
    """Columns listed as exceptions that do not deviate."""
    deviating = {deviation.column for deviation in deviations(gpu, rates)}
    return tuple(column for column, _ in gpu.exceptions if column not in deviating)


def _differs(stated: float, expected: float | None) -> bool:
    return expected is None or abs(stated - expected) > TOLERANCE * expected
