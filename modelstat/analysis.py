"""What :func:`modelstat.analyze` returns: one trace, its costs, its rooflines, and every view of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from io import StringIO
from typing import TYPE_CHECKING, Any

import msgspec

from modelstat import units
from modelstat.cost import registry
from modelstat.cost.record import Cost
from modelstat.deploy.parallel import Layout, Parallel, parallel
from modelstat.errors import MissingExtraError, MissingPeakError
from modelstat.predict.execution import Execution
from modelstat.predict.measured import Correction, corrected
from modelstat.predict.prediction import Prediction, predict
from modelstat.predict.roofline import Roofline, roofline
from modelstat.records import Trace
from modelstat.report.columns import MODULE_COLUMNS
from modelstat.report.document import Document, Level, Totals, build
from modelstat.report.layers import layer_grid
from modelstat.report.layouts import LayoutEntry, layout_entry
from modelstat.report.options import Options
from modelstat.report.rows import LayerRow
from modelstat.report.timing import GpuEntry
from modelstat.report.training import TrainingEntry, training_entry

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go
    from rich.console import Console, ConsoleOptions, RenderResult

    from modelstat.hardware.gpu import Gpu


HALF = "causal attention counts the query-key pairs below its mask only (half), as a flash kernel runs it"


class Analysis:
    """One model, analyzed. Costs and times are computed when they are first asked for, and once.

    Counts are for the whole batch; bytes are B, times of the document are ms.
    """

    def __init__(
        self,
        trace: Trace,
        gpus: Sequence[Gpu] = (),
        *,
        level: Level = "module",
        causal: registry.Causal = "full",
        training: tuple[Trace, str] | None = None,
        execution: Execution = Execution(),  # noqa: B008
        measured: Correction | None = None,
        layout: Layout | None = None,
    ) -> None:
        self.trace = trace if causal == "full" else msgspec.structs.replace(trace, notes=(*trace.notes, HALF))
        self._causal: registry.Causal = causal
        self._gpus = tuple(gpus)
        self._level: Level = level
        self._training = training
        self._execution = execution
        self._measured = measured
        self._layout = layout

    @classmethod
    def from_trace(
        cls,
        trace: Trace,
        gpus: Sequence[Gpu] = (),
        *,
        level: Level = "module",
        causal: registry.Causal = "full",
        training: tuple[Trace, str] | None = None,
        execution: Execution = Execution(),  # noqa: B008
        measured: Correction | None = None,
        layout: Layout | None = None,
    ) -> Analysis:
        """The analysis of a trace on any number of GPUs.

        ``level="op"`` puts the ops into the document; ``causal="half"`` counts of causal attention only what a flash kernel runs.
        ``training`` is a trace of the same model that was walked forward and back, and an optimizer: sgd, momentum or adam.
        ``execution`` is how the model runs, and ``measured`` corrects the predicted times by a measurement. ``layout`` is of several GPUs.
        """
        return cls(trace, gpus, level=level, causal=causal, training=training, execution=execution, measured=measured, layout=layout)

    @cached_property
    def costs(self) -> tuple[Cost, ...]:
        """The cost of each op of the trace, in order."""
        return registry.costs(self.trace, causal=self._causal)

    @cached_property
    def rooflines(self) -> tuple[Roofline, ...]:
        """One roofline per GPU."""
        return tuple(roofline(self.trace, self.costs, gpu) for gpu in self._gpus)

    @cached_property
    def predictions(self) -> tuple[Prediction, ...]:
        """One prediction per GPU: what a stopwatch should show, with its 90 % interval."""
        found = (predict(self.trace, self.costs, gpu, self._execution) for gpu in self._gpus)
        return tuple(each if self._measured is None else corrected(each, self._measured) for each in found)

    def require_peak(self) -> None:
        """Raises MissingPeakError if the only GPU lacks the peak that the model needs; among several it is a row of nulls."""
        if len(self.rooflines) == 1 and self.rooflines[0].missing:
            raise MissingPeakError(self.rooflines[0].missing)

    @cached_property
    def parallels(self) -> tuple[Parallel | None, ...]:
        """The layout on each GPU, None where that has no peak for the model; empty without a layout.

        Raises UsageError for a layout that the model cannot take or a GPU whose link is unknown.
        """
        if self._layout is None:
            return ()
        step = self._training is not None
        return tuple(
            None
            if roof.missing
            else parallel(self.trace, self.costs, roof.gpu, self._layout, self._execution, training=step, measured=self._measured)
            for roof in self.rooflines
        )

    @cached_property
    def training(self) -> TrainingEntry | None:
        """What one step of training computes and holds, None where it was not asked for."""
        if self._training is None:
            return None
        trace, optimizer = self._training
        return training_entry(trace, registry.costs(trace, causal=self._causal), optimizer)

    @cached_property
    def document(self) -> Document:
        """The JSON contract as structs."""
        return self._document(self._level)

    def _document(self, level: Level) -> Document:
        layouts = None
        if self._layout is not None:
            layouts = tuple(
                layout_entry(self.trace, roof.gpu, self._layout, found, roof.missing)
                for roof, found in zip(self.rooflines, self.parallels, strict=True)
            )
        return build(
            self.trace, self.costs, self.rooflines, level=level, predictions=self.predictions, training=self.training, layouts=layouts
        )

    @property
    def totals(self) -> Totals:
        """Params, MACs, FLOPs, MAdd, activations, bytes, intensity and weight bytes of the model."""
        return self.document.totals

    @property
    def layers(self) -> tuple[LayerRow, ...]:
        """One row per module, the root (path ``""``) first; each includes what is below it."""
        return self.document.layers

    @property
    def gpus(self) -> tuple[GpuEntry, ...]:
        """Peak, ridge point, bound and ideal times on each GPU."""
        return self.document.gpus

    @property
    def layouts(self) -> tuple[LayoutEntry, ...]:
        """What each GPU of the layout computes, moves, holds and sends, an entry a kind of GPU; empty without a layout."""
        return self.document.layouts or ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the numbers must know."""
        return self.document.warnings

    def to_json(self, *, level: Level | None = None) -> str:
        """The document as JSON text (schema ``modelstat/1``). ``level`` is by default the one of the analysis."""
        from modelstat.report.json import encode

        wanted = level or self._level
        document = self.document if wanted == self._level else self._document(wanted)
        return encode([document])

    def to_dataframe(self) -> pd.DataFrame:
        """One row per module with raw numbers, columns named as in the JSON; times (ms) are those on the first GPU.

        Raises MissingExtraError if pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("pandas", "dataframe", "to_dataframe()") from error
        timed = bool(self.gpus)
        columns = [column for column in MODULE_COLUMNS if column.name != "layer" and (timed or not column.timed)]
        depth = max(layer.depth for layer in self.layers)
        grid = layer_grid(self.document, Options(columns=tuple(column.name for column in columns), depth=depth))
        rows: list[dict[str, Any]] = [dict(zip((each.field for each in columns), row.values, strict=True)) for row in grid.rows]
        # The total is the root's row: it comes first here, as in the JSON.
        rows = [{**rows[-1], "path": ""}, *rows[:-1]] if len(self.layers) > 1 else rows[:1]
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        totals = self.totals
        gpus = "".join(f", {gpu.name}: {'unknown' if gpu.ideal_ms is None else units.seconds(gpu.ideal_ms / 1e3)}" for gpu in self.gpus)
        counts = f"{units.count(totals.params)} params, {units.count(totals.macs)} MACs, {units.count(totals.flops)} FLOPs"
        return f"<Analysis of {self.trace.model}: {counts}{gpus}>"

    def __str__(self) -> str:
        from modelstat.report.table import render

        file = StringIO()
        render([self.document], file)
        return file.getvalue()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The report, as wide as the console."""
        from modelstat.report.table import display

        for part in display([self.document], width=options.max_width):
            yield part
            yield ""

    def to_html(self) -> str:
        """The interactive report: one HTML page with its scripts and data inside, as ``--html`` writes it.

        Raises UsageError without a GPU, MissingExtraError if plotly or jinja2 is not installed.
        """
        from modelstat.report.page.build import page

        return page([self])

    def plot(self, *, level: Level = "op") -> go.Figure:
        """The roofline on the first GPU as a plotly figure: one point per op, or per layer with ``level="module"``.

        Raises UsageError without a GPU, MissingExtraError if plotly is not installed.
        """
        from modelstat.report.chart.view import views
        from modelstat.report.interactive import figure

        return figure(views([self])[0], layers=level == "module")

    def _repr_html_(self) -> str:
        """The rows as an HTML table, for a notebook; with a GPU, and where plotly is installed, the interactive chart below it."""
        from modelstat.report.tabular import render

        file = StringIO()
        render([self.document], "html", file)
        if self.gpus and find_spec("plotly"):
            # The library goes along, so that the chart needs no network.
            file.write(self.plot().to_html(full_html=False, include_plotlyjs=True))
        return file.getvalue()
