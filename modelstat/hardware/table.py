"""The CSV files of the package as validated records, read once."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from modelstat.errors import GpuDefinitionError
from modelstat.hardware.gpu import Gpu
from modelstat.hardware.names import compact
from modelstat.hardware.rates import ArchitectureRates
from modelstat.hardware.validation import validate

DATA = Path(__file__).with_name("data")

RatesTable = dict[tuple[str, str], ArchitectureRates]
"""(architecture name, tensor class) -> rates."""

GPU_COLUMNS = tuple(field for field in Gpu.__struct_fields__ if field not in {"derived", "given", "calibration"})

_TEXT = {
    "key", "name", "vendor", "segment", "architecture", "compute_capability", "memory_type", "pcie", "tensor_class", "source",
    "confidence", "checks", "notes", "arch",
}  # fmt: skip
_INTEGERS = {"year", "sms", "cores", "bus_bits", "cores_per_sm"}


def _names(cell: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in cell.split(","))


def _pairs(cell: str) -> tuple[tuple[str, str], ...]:
    """``column: reason; column: reason``."""
    pairs = []
    for part in cell.split(";"):
        column, colon, reason = part.partition(":")
        if not colon or not reason.strip() or column.strip() not in GPU_COLUMNS:
            raise ValueError(f"{part.strip()!r} is not `column: reason`")
        pairs.append((column.strip(), reason.strip()))
    return tuple(pairs)


def _number(cell: str) -> float:
    value = float(cell)
    if not 0 <= value < float("inf"):
        raise ValueError(f"{cell} is not a finite number >= 0")
    return value


def _converter(column: str) -> Callable[[str], Any]:
    if column in _TEXT:
        return str
    if column in _INTEGERS:
        return int
    return {"aliases": _names, "exceptions": _pairs}.get(column, _number)


def _records(lines: Iterable[str], fields: tuple[str, ...], table: str) -> Iterator[dict[str, Any]]:
    """Each row as keyword arguments, empty cells left out. Raises GpuDefinitionError naming the row and the column."""
    rows = csv.reader(lines)
    header = next(rows, [])
    for column in header:
        if column not in fields:
            raise GpuDefinitionError(f"{table}: unknown column {column!r}; the columns are {', '.join(fields)}")
    converters = [(column, _converter(column)) for column in header]
    for row in rows:
        if len(row) != len(header):
            raise GpuDefinitionError(f"{table}: row {row[0] if row else ''!r} has {len(row)} cells, the header has {len(header)}")
        record: dict[str, Any] = {}
        for (column, convert), cell in zip(converters, row, strict=True):
            if cell:
                try:
                    record[column] = convert(cell)
                except ValueError as error:
                    raise GpuDefinitionError(f"{table}: row {row[0]!r}, column {column!r}: cannot read {cell!r} ({error})") from None
        yield record


def read_rates(lines: Iterable[str]) -> RatesTable:
    """Rates from the lines of an arch_rates.csv. Raises GpuDefinitionError for an unknown column, a bad cell or a double row."""
    table: RatesTable = {}
    for record in _records(lines, ArchitectureRates.__struct_fields__, "arch_rates.csv"):
        rates = _construct(ArchitectureRates, record, "arch_rates.csv")
        if (rates.name, rates.tensor_class) in table:
            raise GpuDefinitionError(f"arch_rates.csv: {rates.name} with tensor class {rates.tensor_class} stands there twice")
        table[rates.name, rates.tensor_class] = rates
    return table


def read_gpus(lines: Iterable[str], rates: RatesTable) -> tuple[Gpu, ...]:
    """GPUs from the lines of a gpus.csv, each row validated.

    Raises GpuDefinitionError for an unknown column, a cell that is not a number, a name given twice, or numbers that contradict.
    """
    gpus = []
    owners: dict[str, str] = {}
    for record in _records(lines, GPU_COLUMNS, "gpus.csv"):
        gpu: Gpu = _construct(Gpu, record, "gpus.csv")
        for name in {compact(gpu.key), *map(compact, gpu.aliases)}:
            if name in owners:
                raise GpuDefinitionError(f"gpus.csv: row {gpu.key!r}: the key or alias {name!r} belongs to row {owners[name]!r} already")
            owners[name] = gpu.key
        validate(gpu, rates.get((gpu.architecture, gpu.tensor_class)))
        gpus.append(gpu)
    return tuple(gpus)


def _construct(struct: Callable[..., Any], record: dict[str, Any], table: str) -> Any:
    try:
        return struct(**record)
    except TypeError as error:
        raise GpuDefinitionError(f"{table}: row {next(iter(record.values()), '')!r}: {error}") from None


@cache
def load_rates() -> RatesTable:
    """The rates that come with the package."""
    with open(DATA / "arch_rates.csv", encoding="utf-8", newline="") as file:
        return read_rates(file)


@cache
def load_gpus() -> tuple[Gpu, ...]:
    """The GPUs that come with the package, in the order of the file."""
    with open(DATA / "gpus.csv", encoding="utf-8", newline="") as file:
        return read_gpus(file, load_rates())
