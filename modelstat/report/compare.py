"""What :func:`modelstat.compare` returns: several documents, and the tables that set them against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from io import StringIO
from typing import TYPE_CHECKING, Any, Literal, TextIO

import msgspec

from modelstat.errors import UsageError
from modelstat.report import compare_layers
from modelstat.report.compare_align import Change
from modelstat.report.comparison import comparison_grid
from modelstat.report.document import Document
from modelstat.report.grid import Grid, raw
from modelstat.report.options import DEFAULT, Options

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table
    from rich.text import Text

By = Literal["model", "layer"]


class Subject(msgspec.Struct, frozen=True):
    """One model that is compared: all its documents, and what tells it from another of the same name (a file, or nothing)."""

    documents: tuple[Document, ...]
    mark: str = ""


def labelled(subjects: Sequence[Subject]) -> tuple[Document, ...]:
    """The documents of all subjects, each model under a name of its own: a name that two subjects have gets its file or a number."""
    owners = Counter(spec for subject in subjects for spec in {document.model.spec for document in subject.documents})
    found: list[Document] = []
    used: set[str] = set()
    for subject in subjects:
        names: dict[str, str] = {}
        for document in subject.documents:
            spec = document.model.spec
            if spec not in names:
                name = f"{spec} ({subject.mark})" if owners[spec] > 1 and subject.mark else spec
                number = 2
                while name in used:
                    name, number = f"{spec} ({number})", number + 1
                names[spec] = name
                used.add(name)
            model = msgspec.structs.replace(document.model, spec=names[spec])
            found.append(msgspec.structs.replace(document, model=model))
    return tuple(found)


class Comparison:
    """Several models against each other, from documents of the JSON contract. Bytes are B, times ms.

    ``documents`` are those of all models, each under a name of its own. Raises UsageError for fewer than two models.
    """

    def __init__(self, subjects: Sequence[Subject]) -> None:
        self.documents = labelled(subjects)
        models = list(dict.fromkeys(document.model.spec for document in self.documents))
        if len(models) < 2:
            raise UsageError(f"{' '.join(models) or 'nothing'} alone is no comparison: give two models or more, or saved reports")

    def grid(self, options: Options = DEFAULT, *, by: By = "model", program: bool = False) -> Grid:
        """The rows before they are drawn. Raises UsageError for options that this comparison does not have."""
        if by == "layer":
            return compare_layers.changes_grid(self.documents, options, program=program)
        return comparison_grid(self.documents, options)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One dict per model, batch, precision and GPU: every column, with raw numbers under the names of a CSV."""
        grid = self.grid(Options(wide=True))
        return [{column.field: raw(column, value) for column, value in zip(grid.columns, row.values, strict=True)} for row in grid.rows]

    @cached_property
    def layers(self) -> tuple[Change, ...]:
        """Two variants aligned layer by layer, those that are the same included. Raises UsageError unless there are two, on one GPU."""
        return compare_layers.layer_changes(self.documents).layers

    def write(self, form: str, file: TextIO, options: Options = DEFAULT, *, by: By = "model", width: int | None = None) -> None:
        """Write the comparison as table, json, csv, tsv, markdown, latex or html. Raises UsageError as :meth:`grid` does."""
        if form == "table":
            from modelstat.report.table import page_width, show

            width = page_width(file) if width is None else width
            show(self._page(options, by, width), file, width)
        elif form == "json":
            from modelstat.report import json

            if options.relative or options.columns or options.sort or options.top:
                raise UsageError("--format json is the whole comparison: leave out --relative, --columns, --sort and --top")
            if by == "layer":
                compare_layers.write_json(self.documents, file)
            else:
                json.write(self.documents, file)
        else:
            from modelstat.report.tabular import WRITERS

            WRITERS[form](self.grid(options, by=by, program=form in ("csv", "tsv")), file)

    def _page(self, options: Options, by: By, width: int) -> tuple[Text, Table, Text]:
        from modelstat.report.summary import header, remarks
        from modelstat.report.table import page

        above = header(self.documents)
        if by == "layer":
            # The first two lines name the two models.
            above[:2] = [(label, text) for label, (_, text) in zip(("Before", "After"), above, strict=False)]
        return page(above, self.grid(options, by=by), remarks(self.documents), options, width=width)

    def text(self, form: str = "markdown", *, by: By = "model", relative: bool = False, columns: Sequence[str] = ()) -> str:
        """The comparison as text, see :meth:`write`."""
        file = StringIO()
        self.write(form, file, Options(columns=tuple(columns), relative=relative), by=by)
        return file.getvalue()

    def __repr__(self) -> str:
        models = dict.fromkeys(document.model.spec for document in self.documents)
        return f"<Comparison of {', '.join(models)}: {len(self.rows)} rows>"

    def __str__(self) -> str:
        return self.text("table")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table, as wide as the console."""
        for part in self._page(DEFAULT, "model", options.max_width):
            yield part
            yield ""

    def _repr_html_(self) -> str:
        """The table, for a notebook."""
        return self.text("html")
