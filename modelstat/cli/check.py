"""``modelstat check``: models against their budgets, for CI."""

from __future__ import annotations

from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TextIO

from cyclopts import Group

from modelstat.cli.options import option

if TYPE_CHECKING:
    from modelstat.budget.record import Budget

HOW = Group("How to check", sort_key=1)
WHERE = Group("Where to write", sort_key=2)
Form = Literal["human", "github", "junit", "markdown", "json"]

FAILED = 1
"""Exit code where a model is over its budget."""


def check(
    file: Path | None = None,
    /,
    *,
    only: Annotated[list[str] | None, option(HOW, "GLOB")] = None,
    update_baseline: Annotated[bool, option(HOW)] = False,
    no_cache: Annotated[bool, option(HOW)] = False,
    format: Annotated[Form, option(WHERE, "FORMAT")] = "human",
    output: Annotated[Path | None, option(WHERE, "FILE")] = None,
    junit: Annotated[Path | None, option(WHERE, "FILE")] = None,
    summary: Annotated[Path | None, option(WHERE, "FILE")] = None,
) -> int:
    """Check models against their budgets.

    Exit code 0: all are within. 1: one is over. 2: a mistake in the file, or a budget that could not be checked.

    Args:
        file: modelstat.toml or pyproject.toml; by default that of this folder.
        only: The budgets whose name matches.
        update_baseline: Write the reports that max_regression is held against.
        no_cache: Trace again instead of reading the cache.
        format: human (the default), github, junit, markdown or json.
        output: Write to a file, whole or not at all.
        junit: Write JUnit XML to a file as well.
        summary: Add Markdown to the end of a file: $GITHUB_STEP_SUMMARY.
    """
    from modelstat.budget import forms
    from modelstat.budget.check import check as run
    from modelstat.budget.file import find_file, read_budgets
    from modelstat.cli.output import Output
    from modelstat.cli.progress import TraceProgress
    from modelstat.errors import BudgetError

    path = find_file(Path()) if file is None else file
    budgets = _chosen(read_budgets(path), only or ())
    with ExitStack() as stack:
        # A place that cannot be written to is found out before any model is traced.
        streams: list[tuple[TextIO, str]] = [(stack.enter_context(Output(output)).stream, format)]
        if junit is not None:
            streams.append((stack.enter_context(Output(junit, "--junit")).stream, "junit"))
        if summary is not None:
            streams.append((stack.enter_context(_end_of(summary)), "markdown"))
        with TraceProgress(f"tracing {len(budgets)} models") as progress:
            checked = run(path, budgets, update_baseline=update_baseline, cache=not no_cache, progress=progress)
        for stream, form in streams:
            forms.FORMS[form](checked, stream)
    errors = checked.of("error")
    if errors:
        names = "; ".join(f"{outcome.budget}: {outcome.error}" for outcome in errors)
        raise BudgetError(f"{len(errors)} of {len(budgets)} budgets could not be checked: {names}")
    return FAILED if checked.of("failed") else 0


def _end_of(path: Path) -> TextIO:
    """The file that CI shows as the step's summary, to which every step adds. Raises OutputError."""
    from modelstat.errors import OutputError

    try:
        return path.expanduser().open("a", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"--summary {path} cannot be written: {error.strerror or error}") from error


def _chosen(budgets: tuple[Budget, ...], globs: list[str] | tuple[()]) -> tuple[Budget, ...]:
    """The budgets whose name matches one of the globs. Raises UsageError where none does."""
    from modelstat.errors import UsageError

    chosen = tuple(budget for budget in budgets if not globs or any(fnmatchcase(budget.name, glob) for glob in globs))
    if not chosen:
        names = ", ".join(budget.name for budget in budgets)
        raise UsageError(f"--only {' '.join(globs)} matches no budget: there are {names}")
    return chosen
