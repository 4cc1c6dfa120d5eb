"""SQL over a results file, by DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelstat.errors import MissingExtraError, UsageError
from modelstat.sweeping.files import Files, require_pyarrow, tables
from modelstat.sweeping.row import Layer, Row

if TYPE_CHECKING:
    import duckdb

BATCH_ROWS = 10_000


class Query:
    """The answer to one statement: the names of its columns, and its rows as they are fetched."""

    def __init__(self, statement: str, path: Path) -> None:
        """Run a statement over ``results``, and ``layers`` if there are any.

        What a running or killed sweep has finished is there too. Raises UsageError for SQL that is wrong, in one line; OutputError
        for a file that cannot be read; MissingExtraError.
        """
        try:
            import duckdb
        except ImportError as error:
            raise MissingExtraError("duckdb", "sweep", "a query") from error
        require_pyarrow()
        self._error = duckdb.Error
        self._connection = duckdb.connect()
        files = Files(path.expanduser().absolute())
        _register(self._connection, "results", files, Row)
        if files.layers.exists():
            _register(self._connection, "layers", files, Layer)
        if not statement.strip(" ;\n"):
            raise UsageError("query: it is empty, write a statement such as 'SELECT * FROM results'")
        try:
            self._connection.execute(statement)
        except duckdb.Error as error:
            raise UsageError(_message(error)) from error
        self.columns: list[str] = [each[0] for each in self._connection.description or ()]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows of the answer. Raises UsageError where a row cannot be computed."""
        while True:
            try:
                batch = self._connection.fetchmany(BATCH_ROWS)
            except self._error as error:
                raise UsageError(_message(error)) from error
            if not batch:
                return
            yield from batch


def _register(connection: duckdb.DuckDBPyConnection, name: str, files: Files, kind: type[Row | Layer]) -> None:
    """A table of that name over all rows of a kind: DuckDB reads the Parquet file itself where it holds everything."""
    from modelstat.sweeping.files import pending, readable
    from modelstat.sweeping.schema import table

    source = readable(files, kind)
    if source.whole and next(pending(files, source.generation), None) is None:
        path = files.results if kind is Row else files.layers
        quoted = str(path).replace("'", "''")
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{quoted}')")
        return
    import pyarrow as pa

    connection.register(name, pa.concat_tables([table([], kind), *tables(files, kind)]))


def _message(error: Exception) -> str:
    """DuckDB's message without the drawing of the place."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" ^") and not line.startswith("LINE ")]
    return f"query: {' '.join(lines)}"
