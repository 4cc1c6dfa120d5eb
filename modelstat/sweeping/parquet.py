"""One Parquet file that grows by row groups, and stays a whole Parquet file at every moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from modelstat.sweeping.disk import replaced
from modelstat.sweeping.schema import arrow_schema, table

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ROW_GROUP_ROWS = 8192
"""Rows of a row group at most: what is in memory at once."""

_GENERATION = b"modelstat.generation"


class ParquetLog:
    """A Parquet file of one kind of row, with the generation that it is of in its footer.

    Growing writes a new file beside the old one (its row groups, then the new ones) and puts it in its place, since Parquet has its
    only index at the end. Who adds in proportion to what is there already writes each row a bounded number of times.
    """

    def __init__(self, path: Path, kind: type[msgspec.Struct]) -> None:
        self.path = path
        self.kind = kind

    def create(self) -> None:
        """An empty file of generation 0, in the place of whatever is there. Raises OSError."""
        self._write((), (), 0)

    def open(self, footer: pq.FileMetaData | None = None) -> pq.ParquetFile:
        """The file to read from; ``footer`` stands in for one that was cut off. Raises OSError, ArrowInvalid for a damaged file."""
        import pyarrow.parquet as pq

        return pq.ParquetFile(self.path, metadata=footer)

    def generation(self) -> int:
        """The generation that it is of. Raises OSError."""
        with self.open() as file:
            return generation(file.metadata)

    def append(self, rows: Iterable[msgspec.Struct], generation: int) -> None:
        """Add rows and set the generation, in one step. Raises OSError."""
        with self.open() as old:
            self._write(_groups(old, old.metadata.num_row_groups), rows, generation)

    def cut(self, footer: pq.FileMetaData, groups: int, generation: int) -> None:
        """Keep only so many row groups, found by a footer that the file had before. Raises OSError."""
        with self.open(footer) as old:
            self._write(_groups(old, groups), (), generation)

    def _write(self, groups: Iterable[pa.Table], rows: Iterable[msgspec.Struct], generation: int) -> None:
        import pyarrow.parquet as pq

        schema = arrow_schema(self.kind).with_metadata({_GENERATION: str(generation)})
        with replaced(self.path) as temporary, pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
            for group in chain(groups, (table(chunk, self.kind) for chunk in _chunks(rows))):
                writer.write_table(group.replace_schema_metadata(schema.metadata))


def generation(footer: pq.FileMetaData) -> int:
    """The generation of a file, by its footer. 0 for one that says none."""
    return int((footer.metadata or {}).get(_GENERATION, b"0"))


def _groups(file: pq.ParquetFile, groups: int) -> Iterator[pa.Table]:
    return (file.read_row_group(index) for index in range(groups))


def _chunks(rows: Iterable[msgspec.Struct]) -> Iterator[list[msgspec.Struct]]:
    remaining = iter(rows)
    while chunk := list(islice(remaining, ROW_GROUP_ROWS)):
        yield chunk


def whole_groups(footer: pq.FileMetaData, size: int) -> int:
    """How many leading row groups a file of that size (B) holds to their end."""
    for index in range(footer.num_row_groups):
        group = footer.row_group(index)
        for number in range(group.num_columns):
            column = group.column(number)
            start = column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset
            if min(start or 0, column.data_page_offset) + column.total_compressed_size > size or not start:
                return index
    return int(footer.num_row_groups)
