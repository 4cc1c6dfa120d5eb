"""What a definition leaves out, from what it gives: one formula a step, one sentence a figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelstat.errors import GpuDefinitionError
from modelstat.hardware.fields import Value
from modelstat.hardware.gpu import Gpu
from modelstat.hardware.precision import PEAK_COLUMNS
from modelstat.hardware.rates import ArchitectureRates, peak_clock
from modelstat.hardware.validation import TOLERANCE


class Derivation:
    """Fills ``columns`` of a GPU from the given values and a row that they override, and tells in ``sentences`` how.

    ``rates`` are those of an architecture that was given; an override without one scales the row's own peaks.
    """

    def __init__(self, given: Mapping[str, Value], row: Gpu | None, rates: ArchitectureRates | None, origin: str) -> None:
        self.given = given
        self.row = row
        self.rates = rates
        self.origin = origin
        self.columns: dict[str, Any] = dict(given)
        self.sentences: list[str] = []

    def run(self) -> None:
        """All steps. Raises GpuDefinitionError for numbers that contradict each other."""
        self._scalable()
        self._architecture()
        self._units()
        self._tensor_clock()
        self._bandwidth()
        self._peaks()

    def _known(self, column: str) -> Any:
        """A column's value, given or derived or else the row's."""
        if column in self.columns:
            return self.columns[column]
        return getattr(self.row, column, None) if self.row else None

    def _derive(self, column: str, value: float, sentence: str) -> None:
        self.columns[column] = value
        self.sentences.append(sentence)

    def _agree(self, column: str, expected: float, formula: str) -> None:
        stated = float(self.given[column])
        if abs(stated - expected) > TOLERANCE * expected:
            raise GpuDefinitionError(f"{self.origin}: {column} is {stated:g}, but {formula}: give one of the two")

    def _scalable(self) -> None:
        """An override of the clock or of the units needs a row that has them: its peaks scale by the quotient."""
        for column in ("boost_mhz", "sms", "cores"):
            if column in self.given and self.rates is None and self.row is not None and getattr(self.row, column) is None:
                told = f"{self.origin}: {self.row.name} has no {column} for its peaks to scale with"
                raise GpuDefinitionError(f"{told}: give the peaks themselves, such as bf16_tensor=200")

    def _architecture(self) -> None:
        if self.rates is None:
            return
        self.columns["architecture"], self.columns["tensor_class"] = self.rates.name, self.rates.tensor_class
        self.columns["compute_capability"] = self.rates.compute_capability
        self.sentences.append(f"architecture {self.rates.name} ({self.rates.arch}), tensor class {self.rates.tensor_class}")

    def _units(self) -> None:
        """Cores from SMs, and SMs from cores."""
        per_sm = self.given.get("cores_per_sm") or (self.rates.cores_per_sm if self.rates else None)
        if per_sm is None and self.row and self.row.cores and self.row.sms:
            per_sm = self.row.cores / self.row.sms
        if per_sm is None:
            return
        per_sm = float(per_sm)
        if "sms" in self.given:
            cores = round(float(self.given["sms"]) * per_sm)
            formula = f"{self.given['sms']} SMs x {per_sm:g} cores = {cores}"
            if "cores" in self.given:
                self._agree("cores", cores, formula)
            else:
                self._derive("cores", cores, f"cores {cores} = {self.given['sms']} SMs x {per_sm:g} cores")
        elif "cores" in self.given:
            cores = int(self.given["cores"])
            if cores % per_sm:
                raise GpuDefinitionError(f"{self.origin}: {cores} cores are no whole number of SMs of {per_sm:g} cores")
            self._derive("sms", round(cores / per_sm), f"sms {cores / per_sm:g} = {cores} cores / {per_sm:g} cores per SM")

    def _tensor_clock(self) -> None:
        """A row's tensor clock keeps its ratio to the boost clock."""
        row = self.row
        if row and row.tensor_mhz and row.boost_mhz and "boost_mhz" in self.given and "tensor_mhz" not in self.given:
            clock = row.tensor_mhz * float(self.given["boost_mhz"]) / row.boost_mhz
            factors = f"{row.tensor_mhz:g} MHz x {self.given['boost_mhz']:g} / {row.boost_mhz:g}"
            self._derive("tensor_mhz", clock, f"tensor_mhz {clock:.5g} MHz = {factors}")

    def _bandwidth(self) -> None:
        given = self.given
        rate, bus = self._known("memory_data_rate_gbps"), self._known("bus_bits")
        if "bandwidth_gbs" in given:
            if "memory_data_rate_gbps" in given and bus:
                self._agree("bandwidth_gbs", rate * bus / 8, f"{rate:g} Gbit/s x {bus} bit / 8 = {rate * bus / 8:g} GB/s")
            elif self.row:
                self.columns["memory_data_rate_gbps"] = None  # the row's rate gave the row's bandwidth
        elif rate and bus and ("memory_data_rate_gbps" in given or "bus_bits" in given):
            value = rate * bus / 8
            self._derive("bandwidth_gbs", value, f"bandwidth {value:g} GB/s = {rate:g} Gbit/s x {bus} bit / 8")

    def _peaks(self) -> None:
        """fp32 first, then every other column; a row's own peaks scale with units and clock."""
        for column in PEAK_COLUMNS:
            if column in self.given:
                continue
            if column == "fp32" and self._fp32():
                continue
            if self.rates is not None:
                self._from_rates(column, self.rates)
            elif self.row is not None:
                self._scaled(column, self.row)

    def _fp32(self) -> bool:
        """fp32 = 2 x cores x clock, or 2 x FMAs per SM and clock x SMs x clock; False where another rule must give it."""
        clock, cores, sms, fma = self._known("boost_mhz"), self._known("cores"), self._known("sms"), self.given.get("fma_per_sm")
        if not clock or not (self.row is None or self.given.keys() & {"boost_mhz", "cores", "sms", "cores_per_sm", "fma_per_sm"}):
            return False
        if fma and sms:
            value = 2 * float(fma) * sms * clock / 1e6
            self._derive("fp32", value, f"fp32 {value:.4g} TFLOP/s = 2 x {fma} FMA x {sms} SMs x {clock:g} MHz")
            return True
        twice = self.rates is not None and self.rates.fp32 != 2 * (self.rates.cores_per_sm or 0)  # dual issue: the rate knows better
        if not cores or twice or (self.row and "fp32" in dict(self.row.exceptions)):
            return False
        value = 2 * cores * clock / 1e6
        self._derive("fp32", value, f"fp32 {value:.4g} TFLOP/s = 2 x {cores} cores x {clock:g} MHz")
        return True

    def _from_rates(self, column: str, rates: ArchitectureRates) -> None:
        rate, sms = rates.rate(column), self._known("sms")
        clock = peak_clock(column, self._known("boost_mhz"), self._known("tensor_mhz"))
        if rate is not None and sms and clock:
            value = rate * sms * clock / 1e6
            self._derive(column, value, f"{column} {value:.4g} TFLOP/s = {rate:g} x {sms} SMs x {clock:g} MHz")
        elif self.row is not None:
            self.columns[column] = None

    def _scaled(self, column: str, row: Gpu) -> None:
        value: float | None = getattr(row, column)
        if value is None:
            return
        at_tensor = peak_clock(column, 0, 1) == 1 and row.tensor_mhz is not None
        clock = "tensor_mhz" if at_tensor else "boost_mhz"
        factors = [(self.columns[name], getattr(row, name)) for name in (clock, "sms") if name in self.columns]
        changes = [(new, old) for new, old in factors if new and old and new != old]
        for new, old in changes:
            value *= new / old
        if changes:
            told = "".join(f" x {new:g} / {old:g}" for new, old in changes)
            self._derive(column, value, f"{column} {value:.4g} TFLOP/s = {getattr(row, column):g}{told}")
