"""From views to a file: one figure of a kind, in a theme, as PNG, SVG or PDF."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from modelstat.errors import MissingExtraError, UsageError
from modelstat.report.chart.view import View
from modelstat.report.plot import Kind
from modelstat.report.plot.theme import THEMES, Theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMS = ("png", "svg", "pdf")

METADATA: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""What would make two files of the same figure differ is left out."""


def form_of(path: Path) -> str:
    """The format that a file's name asks for. Raises UsageError for one that is not drawn."""
    form = path.suffix.lower().removeprefix(".")
    if form not in FORMS:
        raise UsageError(f"--plot {path}: the name must end in {', '.join(f'.{each}' for each in FORMS)}")
    return form


def require() -> None:
    """Raises MissingExtraError if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot", "--plot") from error


def check(kind: Kind, *, batches: int, precisions: int, gpus: int) -> None:
    """Raises UsageError where a kind of figure has nothing to draw from so many batches, precisions and GPUs."""
    if kind == "batch" and batches < 2:
        raise UsageError("--plot-kind batch draws several batches: give a list, such as --batch 1,2,4,8,16,32")
    if kind == "gpus" and (batches > 1 or precisions > 1):
        raise UsageError("--plot-kind gpus draws one model over GPUs: give one batch and one precision")
    if kind == "gpus" and gpus < 2:
        raise UsageError("--plot-kind gpus compares GPUs: give several, such as --gpu t4,v100,a100")


def save(views: Sequence[View], file: IO[bytes], form: str, *, kind: Kind = "roofline", theme: Theme = "light") -> None:
    """Draw a figure into a binary file as png, svg or pdf. The same views give the same bytes. Raises MissingExtraError."""
    require()
    with _settings(theme):  # some of them are read when the file is written
        draw(views, kind=kind, theme=theme).savefig(file, format=form, metadata=METADATA[form])


def draw(views: Sequence[View], *, kind: Kind = "roofline", theme: Theme = "light") -> Figure:
    """The figure itself, for a caller who goes on with it. A view with measurements shows those on its roofs."""
    from matplotlib.figure import Figure

    from modelstat.report.plot import batch, gpus, measured, roofline

    painters: dict[Kind, Callable[..., None]] = {"roofline": roofline.paint, "batch": batch.paint, "gpus": gpus.paint}
    with _settings(theme):
        figure = Figure(layout="constrained")
        if views[0].measured is not None:
            measured.paint(figure, views[0], views[0].measured, THEMES[theme])
        else:
            painters[kind](figure, views, THEMES[theme])
    return figure


def _settings(theme: Theme) -> AbstractContextManager[None]:
    from matplotlib import rc_context

    settings: Any = THEMES[theme].settings
    return rc_context(settings)
