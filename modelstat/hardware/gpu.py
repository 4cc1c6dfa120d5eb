"""One accelerator as data: peaks by dtype and unit, bandwidth, memory."""

from __future__ import annotations

import msgspec

from modelstat.cost.record import Unit
from modelstat.errors import MissingPeakError
from modelstat.hardware.calibration import Calibration
from modelstat.hardware.precision import CONTRACTION_COLUMNS, precision_of

_ACCUMULATORS = {"fp16": "dense", "fp64": "dense", "fp64_tensor": "dense", "int8_tensor": "dense, int32 accumulate",
                 "int8_dp4a": "dense, int32 accumulate", "int4_tensor": "dense, int32 accumulate"}  # fmt: skip


class Peak(msgspec.Struct, frozen=True):
    """A peak rate (FLOP/s, integer precisions OP/s; a fused multiply-add is 2), the column that it stands in, and where it comes from."""

    flops: float
    column: str
    source: str


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the database, or a definition: one field per column, in the column's own unit; None means unknown or absent.

    Peaks are dense, in TFLOP/s (integer precisions TOP/s); ``fp16_tensor`` and ``bf16_tensor`` accumulate in fp32. On parts that
    are not NVIDIA's, ``*_tensor`` are matrix cores, MMEs or MXUs, and ``sms`` are CUs, Xe-cores or GPU cores.
    """

    key: str
    name: str
    bandwidth_gbs: float
    aliases: tuple[str, ...] = ()
    vendor: str = ""
    segment: str = ""
    architecture: str = ""
    compute_capability: str = ""
    year: int | None = None
    sms: int | None = None
    cores: int | None = None
    boost_mhz: float | None = None
    base_mhz: float | None = None
    tensor_mhz: float | None = None
    """Clock of the tensor peaks where it differs from the boost clock."""
    memory_gb: float | None = None
    """Capacity as printed on the box, which counts GiB."""
    memory_type: str = ""
    bus_bits: int | None = None
    memory_data_rate_gbps: float | None = None
    """Gbit/s per pin: bandwidth = data rate x bus / 8."""
    l2_mb: float | None = None
    """Last-level cache of the chip (MiB)."""
    l1_kb_per_sm: float | None = None
    smem_kb_per_sm: float | None = None
    tdp_w: float | None = None
    pcie: str = ""
    interconnect_gbs: float | None = None
    """GB/s, the sum of both directions (Gaudi: one way); None: PCIe, or unknown."""
    fp64: float | None = None
    fp64_tensor: float | None = None
    fp32: float | None = None
    fp32_matrix: float | None = None
    tf32: float | None = None
    fp16: float | None = None
    fp16_tensor_acc16: float | None = None
    fp16_tensor: float | None = None
    bf16_tensor: float | None = None
    fp8_tensor_acc16: float | None = None
    fp8_tensor: float | None = None
    fp4_tensor: float | None = None
    int8_tensor: float | None = None
    int4_tensor: float | None = None
    int8_dp4a: float | None = None
    tensor_class: str = "full"
    """full, geforce (half rate with fp32 accumulation) or half (every tensor rate halved)."""
    exceptions: tuple[tuple[str, str], ...] = ()
    """Columns that deviate from the formulas of ``validation``, each with its reason."""
    source: str = ""
    confidence: str = ""
    checks: str = ""
    notes: str = ""
    derived: tuple[str, ...] = ()
    """What a definition left to be derived, one sentence a figure."""
    given: tuple[str, ...] = ()
    """Columns that a definition states itself."""
    calibration: Calibration | None = None
    """What `modelstat calibrate` measured on this very machine; then times are predicted from it."""

    @property
    def bandwidth_bytes(self) -> float:
        """Memory bandwidth (B/s)."""
        return self.bandwidth_gbs * 1e9

    @property
    def memory_bytes(self) -> float | None:
        """Memory (B): HBM and GDDR capacities are GiB printed as GB. None where it is the machine's."""
        return None if self.memory_gb is None else self.memory_gb * 2**30

    @property
    def precisions(self) -> tuple[str, ...]:
        """The precisions that a contraction has a peak for."""
        return tuple(precision for precision in CONTRACTION_COLUMNS if self._contraction_column(precision))

    def peak(self, dtype: str, unit: Unit = "matmul") -> Peak:
        """The peak of ``unit`` for a torch dtype's name, or for a precision's (``tf32``, ``amp-fp16``).

        Contractions take the matrix units where the dtype has them; fp16 without them takes max(fp16, fp32). The vector unit is half
        the fp32 vector peak whatever is stored (fp64: half of fp64), since few of its operations are fused multiply-adds.
        Raises MissingPeakError where the GPU has no such figure: nothing is ever taken from another precision in silence.
        """
        precision = precision_of(dtype)
        if unit == "vector":
            column = "fp64" if precision == "fp64" else "fp32"
            value = self._value(column)
            if value is None:
                raise MissingPeakError(f"{self._label} has no vector peak for {dtype}: its {column} column is empty; bytes still count")
            return Peak(value * 1e12 / 2, column, f"half the {column} vector peak; {self._origin(column)}; dense")
        if unit == "none":
            raise MissingPeakError(f"{self._label} has no peak for work on no unit: only its bandwidth counts")
        if precision is None:
            raise MissingPeakError(f"{self._label} has no peak for {dtype} contractions: no column holds one; it has {self._has}")
        found = self._contraction_column(precision)
        if found is None:
            columns = CONTRACTION_COLUMNS[precision]
            reason = dict(self.exceptions).get(columns[0])
            why = f"{columns[0]} is not known ({reason})" if reason else f"no figure in column {' or '.join(columns)}"
            raise MissingPeakError(f"{self._label} has no {dtype} peak: {why}; it has {self._has}: choose one of these precisions")
        value = self._value(found)
        assert value is not None
        return Peak(value * 1e12, found, f"{self._origin(found)}; {_ACCUMULATORS.get(found, 'dense, fp32 accumulate')}")

    def ridge(self, dtype: str, unit: Unit = "matmul") -> float:
        """Ridge point (FLOP/B): peak / bandwidth. Raises MissingPeakError."""
        return self.peak(dtype, unit).flops / self.bandwidth_bytes

    def _value(self, column: str) -> float | None:
        value: float | None = getattr(self, column)
        return value

    def _contraction_column(self, precision: str) -> str | None:
        columns = CONTRACTION_COLUMNS[precision]
        if self._value(columns[0]) is not None:
            return columns[0]
        if columns[0] in dict(self.exceptions):
            return None  # the unit is there, its rate is not published: a slower unit's rate would be a silent fall-back
        if precision == "fp16" and self.fp16 is not None:
            return "fp16" if self.fp32 is None or self.fp16 >= self.fp32 else "fp32"
        return next((column for column in columns[1:] if self._value(column) is not None), None)

    @property
    def _label(self) -> str:
        return f"{self.name} ({self.key})"

    @property
    def _has(self) -> str:
        return ", ".join(self.precisions) or "no peak at all"

    def _origin(self, column: str) -> str:
        """Where the figure of a column comes from: a definition's sentence, the clock, or the row's source."""
        if column in self.given:
            return "given by the definition"
        for sentence in self.derived:
            if sentence.startswith(f"{column} "):
                return f"derived: {sentence}"
        source, _, columns = self.source.partition("derived:")
        if column in columns.replace(" ", "").split(","):
            return "derived from clock and units"
        source = source.strip(" ;")
        return f"{self.confidence}: {source}" if self.confidence else source
