"""A sweep: a grid, the cluster that works on it, and the results as they arrive."""

from __future__ import annotations

import shutil
import tempfile
import time
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from modelstat import __version__
from modelstat.errors import MissingExtraError, UsageError
from modelstat.sweeping.cluster import connected, require_distributed
from modelstat.sweeping.dispatch import Answer, Situation, Task, dispatched
from modelstat.sweeping.files import Files, rows, tables
from modelstat.sweeping.grid import Grid
from modelstat.sweeping.progress import Progress
from modelstat.sweeping.request import Request
from modelstat.sweeping.results import Results
from modelstat.sweeping.row import Layer, Outcome, Row
from modelstat.sweeping.rows import failed
from modelstat.sweeping.task import run

if TYPE_CHECKING:
    import pandas as pd

TIMEOUT_SECONDS = 600.0
"""Time that one model may take where nothing else is said (s)."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How a sweep runs: nothing of it changes a row of a model that does not fail.

    ``workers`` of a local cluster, or the ``scheduler`` of another one; ``timeout`` (s) and ``memory`` (B) per model, None: no time
    limit, and the worker's memory.
    """

    workers: int | None = None
    scheduler: str | None = None
    timeout: float | None = TIMEOUT_SECONDS
    memory: float | None = None
    cache: bool = True

    def __post_init__(self) -> None:
        for name in ("workers", "timeout", "memory"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise UsageError(f"--{name} {value}: it must be more than 0")


class Statistics(msgspec.Struct):
    """Of the jobs that ran: their number, the seconds that they kept workers and processors busy, and what passed meanwhile."""

    jobs: int = 0
    busy_seconds: float = 0.0
    processor_seconds: float = 0.0
    wall_seconds: float = 0.0
    threads: int = 0

    @property
    def efficiency(self) -> float | None:
        """Busy seconds / (workers x wall seconds)."""
        available = self.threads * self.wall_seconds
        return self.busy_seconds / available if available else None


class Sweep:
    """Iterating gives every row: those that are in the results file already, then the others as they arrive.

    What has run is on the disk: leaving the loop, Control-C or a crash lose nothing, and iterating again goes on.
    """

    def __init__(
        self, grid: Grid, output: Path | None = None, settings: Settings | None = None, *, resume: bool = False, overwrite: bool = False,
        progress: Progress | None = None,
    ) -> None:  # fmt: skip
        require_distributed()
        self.grid = grid
        self.settings = settings or Settings()
        self.statistics = Statistics()
        self.tally: Counter[str] = Counter()
        """Rows by status, of those that an iteration has seen."""
        self._progress = progress
        self.output = output if output is not None else self._own_folder() / "results.parquet"
        # Whatever forbids to write there is said before anything runs.
        Results.open(self.output, grid, resume=resume, overwrite=overwrite).close()

    def _own_folder(self) -> Path:
        """A folder that vanishes with this object."""
        folder = tempfile.mkdtemp(prefix="modelstat-sweep-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    def __iter__(self) -> Iterator[Row]:
        with closing(self._open()) as results:
            yield from results.rows()
            for outcome in self._outcomes(results):
                yield from outcome.rows

    def run(self) -> Sweep:
        """Run what is left, without giving the rows. Raises ClusterError or OutputError; what is finished is kept."""
        with closing(self._open()) as results:
            for _ in self._outcomes(results):
                pass
        return self

    @property
    def failures(self) -> tuple[Row, ...]:
        """The rows so far of models that failed, with their reasons."""
        return tuple(row for row in rows(Files(self.output.expanduser().absolute())) if row.status != "ok")

    def to_dataframe(self, *, layers: bool = False) -> pd.DataFrame:
        """All rows as a pandas frame, after running what is left; the rows of all layers instead, if the sweep asked for them.

        Integers and booleans are of pandas' own types, which know null. Raises MissingExtraError or UsageError.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("pandas", "dataframe", "to_dataframe()") from error
        import pyarrow as pa

        if layers and not self.grid.layers:
            raise UsageError("this sweep writes no layers: ask for them with layers=True")
        self.run()
        types = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype(), pa.string(): pd.StringDtype()}
        whole = pa.concat_tables(tables(Files(self.output.expanduser().absolute()), Layer if layers else Row))
        return whole.to_pandas(types_mapper=types.get)

    def _open(self) -> Results:
        results = Results.open(self.output, self.grid, resume=True)
        self.tally = results.tally
        return results

    def _outcomes(self, results: Results) -> Iterator[Outcome]:
        """Run the jobs that are not finished, writing each outcome before giving it."""
        if results.done == self.grid.size:
            return
        start = time.perf_counter()
        progress = self._progress or Progress()
        try:
            with progress.shown(self.grid.size, results.done), connected(self.settings.scheduler, self.settings.workers) as client:

                def tick(situation: Situation) -> None:
                    self.statistics.threads = max(self.statistics.threads, situation.threads)
                    progress.running(situation.running)

                for answer in dispatched(client, run, self._tasks(results), tick):
                    outcome = _outcome(answer)
                    results.add(outcome)
                    self.statistics.jobs += 1
                    self.statistics.busy_seconds += outcome.seconds
                    self.statistics.processor_seconds += outcome.processor_seconds
                    progress.finished(outcome)
                    yield outcome
        finally:
            self.statistics.wall_seconds += time.perf_counter() - start

    def _tasks(self, results: Results) -> Iterator[Task]:
        settings = self.settings
        for job in self.grid.jobs(cache=settings.cache):
            if not results.is_finished(job.index):
                request = Request(job, __version__, settings.timeout, settings.memory)
                yield Task(job.index, job.spec, msgspec.msgpack.encode(request))


def _outcome(answer: Answer) -> Outcome:
    """The outcome of a job; one that lost its workers has crashed."""
    if answer.result is not None:
        return msgspec.msgpack.decode(answer.result, type=Outcome)
    job = msgspec.msgpack.decode(answer.task.payload, type=Request).job
    reason = answer.lost or "it gave no result"
    return Outcome(job.index, tuple(row for batch in job.batches for row in failed(job, batch, "crash", reason)))
