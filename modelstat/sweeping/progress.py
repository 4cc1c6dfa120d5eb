"""What a person sees while a sweep runs, on stderr: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from modelstat.sweeping.row import Outcome

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress as RichProgress

LINE_SECONDS = 5.0
"""Time between two plain lines."""
SHOWN = 4
"""Running models and latest failures that are named."""
WINDOW = 200
"""Jobs that the rate is taken over."""


class Progress:
    """Shows nothing; the others show what it knows. A job is one model at one input, with all its batches and GPUs."""

    def __init__(self) -> None:
        self._total = self._done = 0
        self._running: Sequence[str] = ()
        self._failed: Counter[str] = Counter()
        self._latest: deque[tuple[str, str]] = deque(maxlen=SHOWN)
        self._times: deque[float] = deque(maxlen=WINDOW)

    @contextlib.contextmanager
    def shown(self, total: int, done: int) -> Iterator[None]:
        """Show it around the work on so many jobs, of which so many are finished before."""
        self._total, self._done = total, done
        self._times.append(time.monotonic())
        yield

    def running(self, names: Sequence[str]) -> None:
        """These models run now."""
        self._running = names

    def finished(self, outcome: Outcome) -> None:
        """A job is finished."""
        self._done += 1
        self._times.append(time.monotonic())
        failed = next((row for row in outcome.rows if row.status != "ok"), None)
        if failed is not None:
            self._failed[failed.status] += 1
            self._latest.append((failed.spec, f"{failed.status}: {failed.reason}"))

    @property
    def _rate(self) -> float | None:
        """Jobs per second, of late."""
        passed = time.monotonic() - self._times[0] if self._times else 0.0
        return (len(self._times) - 1) / passed if len(self._times) > 1 and passed else None

    @property
    def _counts(self) -> str:
        """Rate, estimate and failures, in words."""
        failures = ", ".join(f"{number} {status}" for status, number in sorted(self._failed.items()))
        words = [f"{self._rate:.1f}/s"] if self._rate else []
        if self._rate and self._done < self._total:
            words.append(f"{duration((self._total - self._done) / self._rate)} left")
        return ", ".join([*words, f"failed: {failures}" if failures else "none failed"])


def duration(seconds: float) -> str:
    """A time to wait, as a clock shows it.

    >>> duration(62), duration(7200)
    ('1:02', '2:00:00')
    """
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


class Lines(Progress):
    """A line every :data:`LINE_SECONDS`, and one at the end."""

    def __init__(self, file: TextIO) -> None:
        super().__init__()
        self._file = file
        self._printed = 0.0

    @contextlib.contextmanager
    def shown(self, total: int, done: int) -> Iterator[None]:
        """Print lines meanwhile."""
        with super().shown(total, done):
            self._printed = time.monotonic()
            try:
                yield
            finally:
                self._print()

    def running(self, names: Sequence[str]) -> None:
        """Print what runs, if it is time."""
        super().running(names)
        if time.monotonic() - self._printed >= LINE_SECONDS:
            self._print()

    def _print(self) -> None:
        self._printed = time.monotonic()
        now = f"; running {', '.join(self._running[:SHOWN])}" if self._running and self._done < self._total else ""
        print(f"sweep: {self._done}/{self._total} models; {self._counts}{now}", file=self._file, flush=True)


class Bar(Progress):
    """A bar, and below it what runs and what failed last. It is wiped at the end."""

    def __init__(self) -> None:
        super().__init__()
        self._bar: RichProgress | None = None

    @contextlib.contextmanager
    def shown(self, total: int, done: int) -> Iterator[None]:
        """Show the bar meanwhile."""
        from rich.console import Console
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

        with super().shown(total, done):
            self._bar = Progress(BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar.add_task("models", total=total, completed=done)
            with Live(get_renderable=self._picture, console=Console(stderr=True), refresh_per_second=4, transient=True):
                yield

    def _picture(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        assert self._bar is not None
        self._bar.update(self._bar.task_ids[0], completed=self._done)
        more = f" and {len(self._running) - SHOWN} more" if len(self._running) > SHOWN else ""
        running = f"running {', '.join(self._running[:SHOWN]) or 'nothing yet: waiting for workers'}{more}"
        lines = [Text(self._counts), Text(running, style="dim"), *(Text(f"{spec}  {reason}", style="red") for spec, reason in self._latest)]
        for line in lines:
            line.no_wrap, line.overflow = True, "ellipsis"
        return Group(self._bar, *lines)


def progress() -> Progress:
    """A bar where a person watches stderr, lines elsewhere."""
    return Bar() if sys.stderr.isatty() else Lines(sys.stderr)
