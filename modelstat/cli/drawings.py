"""What is drawn beside the report: a page, a figure, and the roofline in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from modelstat.cli.output import Output
from modelstat.errors import UsageError
from modelstat.report.plot import Kind
from modelstat.report.plot.theme import Theme

if TYPE_CHECKING:
    from modelstat.analysis import Analysis
    from modelstat.measure.measurement import Measurement
    from modelstat.measure.overlay import Overlay


class Drawings:
    """Context manager around the drawings of one run. Entering opens their files: a bad path fails early."""

    def __init__(self, html: Path | None, plot: Path | None, kind: Kind | None, theme: Theme | None, *, roofline: bool) -> None:
        self._html = html
        self._plot = plot
        self._kind: Kind = kind or "roofline"
        self._theme: Theme = theme or "light"
        self._roofline = roofline
        about = {"--plot-kind": kind, "--plot-theme": theme}
        self._without_plot = next((name for name, given in about.items() if given and plot is None), None)
        self._stack = ExitStack()
        self._page: Output | None = None
        self._figure: Output | None = None

    def check(self, *, gpus: int, batches: int, precisions: int, form: str, crosscheck: bool, output: Path | None) -> None:
        """Raises UsageError for drawings that lack what they need or do not go together with the report, MissingExtraError for packages."""
        asked = [name for name, given in (("--html", self._html), ("--plot", self._plot), ("--roofline", self._roofline)) if given]
        if self._without_plot:
            raise UsageError(f"{self._without_plot} is about a figure: add --plot FILE")
        if asked and not gpus:
            raise UsageError(f"{asked[0]} draws the roofline of a GPU: add --gpu NAME, such as v100")
        if asked and crosscheck:
            raise UsageError(f"{asked[0]} draws a report, which --crosscheck replaces: leave one of them out")
        if self._roofline and form != "table":
            raise UsageError(f"--roofline draws below the table, not into {form}: leave --format out, or --roofline")
        files = [path.expanduser().resolve() for path in (self._html, self._plot, output) if path is not None]
        if len(set(files)) < len(files):
            raise UsageError("--html, --plot and --output write a file each: give each its own name")
        if self._html:
            from modelstat.report.page import build

            build.require()
        if self._plot:
            from modelstat.report.plot import figure

            figure.form_of(self._plot)
            figure.check(self._kind, batches=batches, precisions=precisions, gpus=gpus)
            figure.require()

    def __enter__(self) -> Drawings:
        with ExitStack() as stack:
            self._page = stack.enter_context(Output(self._html, "--html")) if self._html else None
            self._figure = stack.enter_context(Output(self._plot, "--plot")) if self._plot else None
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, traceback)

    def draw(
        self, analyses: Sequence[Analysis], out: Output, *, ops: bool = False, compare: bool = False, overlay: Overlay | None = None,
        measurement: Measurement | None = None,
    ) -> None:  # fmt: skip
        """Draw everything that was asked for: files into their places, the terminal's roofline (its ``ops``, else layers) into ``out``.

        ``compare`` draws two analyses, before and after, with an arrow for each layer that changed; ``overlay`` what was measured on the
        only GPU of the only analysis, ``measurement`` the stopwatch's side of it.
        """
        if not (self._page or self._figure or self._roofline):
            return
        from modelstat.report.chart.view import views

        found = None
        if overlay is not None:
            from modelstat.report.chart.measured import measured

            found = measured(overlay, measurement)
        if self._page is not None:
            from modelstat.report.page.build import page

            self._page.stream.write(page(analyses, compare=compare, measured=found))
        shown = views(analyses, measured=found) if self._roofline or self._figure else ()
        if self._roofline:
            from modelstat.report.terminal import roofline

            out.stream.write("\n")
            roofline.draw(shown, out.stream, ops=ops)
        if self._figure is not None and self._plot is not None:
            from modelstat.report.plot import figure

            data = BytesIO()
            figure.save(shown, data, figure.form_of(self._plot), kind=self._kind, theme=self._theme)
            self._figure.stream.buffer.write(data.getvalue())
