"""The files of one results file, and reading them whatever state a crash left them in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from modelstat.errors import MissingExtraError, OutputError
from modelstat.sweeping.journal import entries
from modelstat.sweeping.manifest import read_manifest
from modelstat.sweeping.parquet import ParquetLog, generation, whole_groups
from modelstat.sweeping.row import Layer, Outcome, Row
from modelstat.sweeping.schema import table

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


class Files(NamedTuple):
    """``RESULTS.parquet`` and what is beside it."""

    results: Path

    @property
    def layers(self) -> Path:
        """``RESULTS.layers.parquet``."""
        return self.results.with_name(f"{self.results.stem}.layers{self.results.suffix}")

    @property
    def manifest(self) -> Path:
        """``RESULTS.parquet.manifest``."""
        return self.results.with_name(f"{self.results.name}.manifest")

    @property
    def journal(self) -> Path:
        """``RESULTS.parquet.journal``."""
        return self.results.with_name(f"{self.results.name}.journal")


def require_pyarrow() -> None:
    """Raises MissingExtraError if pyarrow is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("pyarrow", "sweep", "a results file") from error


class Readable(NamedTuple):
    """A Parquet file as far as it can be read."""

    file: pq.ParquetFile
    groups: int
    generation: int
    whole: bool
    """False: it was cut off, and is read up to its last whole row group."""

    def tables(self, columns: list[str] | None = None) -> Iterator[pa.Table]:
        """One table per row group."""
        return (self.file.read_row_group(index, columns=columns) for index in range(self.groups))


def readable(files: Files, kind: type[msgspec.Struct]) -> Readable:
    """Open the file of that kind of row. Raises OutputError if it is not there, or is damaged and its manifest does not help."""
    import pyarrow as pa

    path = files.results if kind is Row else files.layers
    log = ParquetLog(path, kind)
    try:
        file = log.open()
        return Readable(file, file.metadata.num_row_groups, generation(file.metadata), True)
    except FileNotFoundError:
        raise OutputError(f"{path} does not exist: `modelstat sweep ... --output {path}` writes it") from None
    except (OSError, pa.ArrowInvalid) as error:
        manifest = read_manifest(files.manifest)
        index = (Row, Layer).index(kind)
        if manifest is None or len(manifest.footers) <= index:
            raise OutputError(f"{path} is not a Parquet file that can be read: {str(error).splitlines()[0]}") from error
        footer = manifest.footer(index)
        return Readable(log.open(footer), whole_groups(footer, path.stat().st_size), manifest.generation, False)


def pending(files: Files, generation: int) -> Iterator[Outcome]:
    """The outcomes that a file of that generation does not hold yet."""
    return (entry.outcome for entry in entries(files.journal) if entry.generation == generation)


def tables(files: Files, kind: type[msgspec.Struct]) -> Iterator[pa.Table]:
    """All rows of one kind: those in Parquet, then those of the journal. Raises OutputError."""
    source = readable(files, kind)
    yield from source.tables()
    for outcome in pending(files, source.generation):
        rows = outcome.rows if kind is Row else outcome.layers
        if rows:
            yield table(rows, kind)


def rows(files: Files) -> Iterator[Row]:
    """All rows of the results. Raises OutputError."""
    for part in tables(files, Row):
        for fields in part.to_pylist():
            yield msgspec.convert(fields, Row)
