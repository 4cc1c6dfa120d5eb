"""A progress bar for traces that take long: on stderr, only where a person watches."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE_SECONDS = 2.0
"""A trace that is done before this shows nothing."""


class TraceProgress:
    """Context manager around a trace. Call it with the number of ops that have run, as the trace goes on.

    The bar appears after :data:`PATIENCE_SECONDS` and is wiped at the end. One run pulses, since nobody knows how many ops will
    come; several ``runs`` fill it, with an estimate of the time that is left. Where stderr is not a terminal, nothing is ever shown.
    """

    def __init__(self, title: str, runs: int = 1) -> None:
        self._title = title
        self._runs = runs
        self._done = 0
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._ops = 0
        self._closed = False

    def __enter__(self) -> TraceProgress:
        if sys.stderr.isatty():
            self._timer = threading.Timer(PATIENCE_SECONDS, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._bar is not None:
                self._bar.stop()

    def __call__(self, ops: int) -> None:
        """``ops`` operators have run."""
        self._ops = ops
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, ops=ops)

    @contextmanager
    def run(self) -> Iterator[None]:
        """Around each of the runs."""
        yield
        self._done += 1
        if self._bar is not None and self._task is not None and self._runs > 1:
            self._bar.update(self._task, completed=self._done)

    def _show(self) -> None:
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        with self._lock:
            if self._closed:
                return
            columns: list[ProgressColumn] = [TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[ops]} ops")]
            if self._runs > 1:
                columns += [TextColumn("{task.completed} of {task.total} runs,"), TimeRemainingColumn(), TextColumn("left")]
            bar = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
            total = self._runs if self._runs > 1 else None
            self._task = bar.add_task(escape(self._title), total=total, completed=self._done, ops=self._ops)
            self._bar = bar
            bar.start()
