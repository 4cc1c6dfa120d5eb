"""The results of one sweep on the disk, as they grow: durable from the moment that a job is added."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from modelstat.errors import OutputError, UsageError
from modelstat.sweeping.files import Files, pending, readable, require_pyarrow, rows
from modelstat.sweeping.grid import Grid
from modelstat.sweeping.journal import Entry, Journal, entries
from modelstat.sweeping.manifest import Manifest, read_manifest
from modelstat.sweeping.parquet import ParquetLog
from modelstat.sweeping.row import Layer, Outcome, Row

FEWEST_ROWS = 16
"""Rows that the journal gathers at least before they become a row group; later it gathers a quarter of what there is."""


class Results:
    """An open results file. Only one process has it open at a time; closing it moves everything into Parquet."""

    def __init__(self, files: Files, manifest: Manifest, journal: Journal) -> None:
        self._logs = [ParquetLog(files.results, Row)]
        if manifest.grid["--layers"]:
            self._logs.append(ParquetLog(files.layers, Layer))
        self.files, self._manifest, self._journal = files, manifest, journal
        self._finished = bytearray(manifest.jobs)
        self._waiting = 0
        self.tally: Counter[str] = Counter()
        """Rows by status."""

    @classmethod
    def open(cls, path: Path, grid: Grid, *, resume: bool = False, overwrite: bool = False) -> Results:
        """Open a new file, or an old one to go on with it.

        Raises OutputError if there is one already and neither ``resume`` nor ``overwrite`` says what to do with it, if the one to
        resume is of another version or grid, if another sweep is writing it, or if it cannot be written. UsageError for both.
        """
        require_pyarrow()
        if resume and overwrite:
            raise UsageError("--resume and --overwrite exclude each other")
        files = Files(path.expanduser().absolute())
        if not files.results.parent.is_dir():
            raise OutputError(f"--output {path} cannot be written: there is no directory {files.results.parent}, create it first")
        there = files.results.exists()
        if there and not resume and not overwrite:
            raise OutputError(f"{path} exists already: --resume goes on with it, --overwrite starts anew")
        try:
            if there and resume:
                return cls._resumed(path, files, grid)
            return cls._new(files, grid)
        except OSError as error:
            raise OutputError(f"--output {path} cannot be written: {error.strerror or error}") from error

    @classmethod
    def _new(cls, files: Files, grid: Grid) -> Results:
        journal = Journal(files.journal)
        files.manifest.unlink(missing_ok=True)
        journal.clear()
        files.layers.unlink(missing_ok=True)
        self = cls(files, Manifest.of(grid), journal)
        for log in self._logs:
            log.create()
        self._commit_manifest(0)
        return self

    @classmethod
    def _resumed(cls, path: Path, files: Files, grid: Grid) -> Results:
        manifest = read_manifest(files.manifest)
        if manifest is None:
            raise OutputError(f"{path} has no manifest ({files.manifest.name}) beside it, so it cannot be resumed: --overwrite starts anew")
        manifest.require(path, grid)
        self = cls(files, manifest, Journal(files.journal))
        self._recover()
        self._fold()
        for part in readable(files, Row).tables(["job", "status"]):
            self.tally.update(part.column("status").to_pylist())
            for job in part.column("job").to_pylist():
                self._finished[job] = 1
        return self

    def _recover(self) -> None:
        """Cut the files back to the last commit that both still hold, if one was cut off."""
        found = [readable(self.files, log.kind) for log in self._logs]
        if all(each.whole for each in found):
            return
        commits, last = self._manifest.commits, self._manifest.generation
        kept = max(number for number, groups in enumerate(commits) if all(n <= each.groups for n, each in zip(groups, found, strict=True)))
        for index, log in enumerate(self._logs):
            log.cut(self._manifest.footer(index), commits[kept][index], last)
        self._manifest = msgspec.structs.replace(self._manifest, commits=commits[:kept] + (commits[kept],) * (last - kept + 1))
        self._commit_manifest(last)

    def _fold(self) -> None:
        """Move the journal into the Parquet files, into each of them that does not hold it yet."""
        first = next(entries(self.files.journal), None)
        if first is not None:
            self._journal.sync()
            for log in self._logs:
                if log.generation() == first.generation:
                    log.append(self._pending(log.kind, first.generation), first.generation + 1)
            self._commit_manifest(first.generation + 1)
        self._journal.clear()
        self._waiting = 0

    def _pending(self, kind: type[msgspec.Struct], generation: int) -> Iterator[msgspec.Struct]:
        for outcome in pending(self.files, generation):
            yield from outcome.rows if kind is Row else outcome.layers

    def _commit_manifest(self, generation: int) -> None:
        with contextlib.ExitStack() as stack:
            footers = tuple(stack.enter_context(log.open()).metadata for log in self._logs)
            self._manifest = self._manifest.committed(generation, footers)
        self._manifest.write(self.files.manifest)

    @property
    def done(self) -> int:
        """Jobs that are finished."""
        return sum(self._finished)

    def is_finished(self, job: int) -> bool:
        """Whether the job of that index has its rows."""
        return bool(self._finished[job])

    def add(self, outcome: Outcome) -> None:
        """Write the rows of a job that is not finished. Raises OutputError."""
        try:
            self._journal.add(Entry(self._manifest.generation, outcome))
            self._finished[outcome.job] = 1
            before = self.tally.total()
            self.tally.update(row.status for row in outcome.rows)
            self._waiting += len(outcome.rows)
            if self._waiting >= max(FEWEST_ROWS, before // 4):
                self._fold()
        except OSError as error:
            raise OutputError(f"{self.files.results} cannot be written any more, --resume goes on later: {error.strerror}") from error

    def rows(self) -> Iterator[Row]:
        """All rows, in the order in which they were added."""
        return rows(self.files)

    def close(self) -> None:
        """Move the last rows into Parquet, and let other processes write. Raises OutputError."""
        try:
            self._fold()
        except OSError as error:
            raise OutputError(f"{self.files.results} cannot be written any more: {error.strerror}") from error
        finally:
            self._journal.close()
