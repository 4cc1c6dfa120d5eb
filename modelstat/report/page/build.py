"""From analyses to the page: one HTML text with its scripts, styles and data inside, and a policy that lets nothing else run."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from modelstat.errors import MissingExtraError, UsageError
from modelstat.report.chart.change import documents_changes
from modelstat.report.chart.point import HEAVIEST
from modelstat.report.chart.view import views
from modelstat.report.page.encode import encode

if TYPE_CHECKING:
    from modelstat.analysis import Analysis
    from modelstat.report.chart.measured import Measured

SCRIPTS = (
    "units", "state", "tooltip", "roofs", "program", "points", "filters", "table", "tree", "memory", "changes", "measured", "device",
    "main",
)  # fmt: skip
"""The page's own scripts, in the order in which they run."""

MOST_POINTS = 5_000
"""Points of all views together: many views show fewer points each, so that the page stays small."""
FEWEST = 100
"""Points that each of very many views keeps."""


def require() -> None:
    """Raises MissingExtraError if plotly or jinja2 is not installed."""
    for package in ("plotly", "jinja2"):
        try:
            __import__(package)
        except ImportError as error:
            raise MissingExtraError(package, "html", "--html") from error


def page(analyses: Sequence[Analysis], *, compare: bool = False, measured: Measured | None = None) -> str:
    """The page of one analysis or several: every batch, precision and GPU is a point of its chart and can be chosen.

    ``compare`` takes two analyses, before and after, and draws an arrow for each layer that changed; ``measured`` is what was measured on
    the first GPU of the first analysis. Raises UsageError where no GPU was given or ``compare`` has not two analyses, MissingExtraError
    without plotly or jinja2.
    """
    require()
    from jinja2 import Environment, StrictUndefined

    if compare and len(analyses) != 2:
        raise UsageError(f"a comparison takes two analyses, before and after: {len(analyses)} were given")
    several = sum(len(analysis.rooflines) for analysis in analyses)
    limit = max(FEWEST, min(HEAVIEST, MOST_POINTS // max(several, 1)))
    shown = views(analyses, limit, ("before", "after") if compare else (), measured)
    changed = documents_changes([analysis.document for analysis in analyses]) if compare else ()
    scripts = [_plotly(), "\n".join(_own(f"{name}.js") for name in SCRIPTS)]
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(_own("page.html.j2"))
    models = list(dict.fromkeys(view.model for view in shown))
    boards = list(dict.fromkeys(view.device.name for view in shown))
    title = f"{', '.join(models)} on {', '.join(boards)}"
    return template.render(
        title=title if len(title) <= 120 else f"{len(shown)} rooflines of {models[0]}",
        policy=policy(scripts),
        style=_own("page.css"),
        scripts=scripts,
        data=encode(shown, changed),
    )


def policy(scripts: Sequence[str]) -> str:
    """The Content-Security-Policy that allows these inline scripts, styles and images inside of the page, and nothing else.

    >>> policy(["1"])[:60]
    "default-src 'none'; script-src 'sha256-a4ayc/80/OGda4BO/1o/V"
    """
    hashes = " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in scripts)
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    text: str = get_plotlyjs()
    return text


def _own(name: str) -> str:
    return files("modelstat.report.page").joinpath(name).read_text(encoding="utf-8")
