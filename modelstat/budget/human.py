"""The check in a terminal or a log: one line per budget, below a failed one what it is due to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from modelstat import units
from modelstat.budget.result import Checked, Measure, Outcome, by_quantity
from modelstat.report.grid import printable

HEADS = {"passed": "ok", "failed": "FAILED", "error": "ERROR"}
STYLES = {"passed": "green", "failed": "bold red", "error": "bold red"}


def write(checked: Checked, file: TextIO) -> None:
    """Write the check to ``file``, coloured on a terminal. Lines are as long as they are, so that one budget stays one line."""
    from rich.console import Console
    from rich.text import Text

    console = Console(file=file, highlight=False, soft_wrap=True)
    for outcome in checked.outcomes:
        head, *details = lines(outcome)
        word = HEADS[outcome.status]
        console.print(Text.assemble((f"{word:<6}", STYLES[outcome.status]), f"  {head}"))
        for detail in details:
            console.print(Text(f"        {detail}"))
    console.print(Text(checked.verdict, style="bold"))


def lines(outcome: Outcome) -> list[str]:
    """The line of a budget, and those below it."""
    if outcome.error is not None:
        return [printable(f"{outcome.budget}: {outcome.error}")]
    found = [printable(f"{outcome.budget}: {'; '.join(summary(outcome.measures))}")]
    for quantity, mine in by_quantity(outcome.culprits).items():
        found.append(f"{quantity.replace('_', ' ')}: {', '.join(each.text for each in mine)} ({printable(outcome.against)})")
    return [*found, *(printable(f"note: {note}") for note in outcome.notes)]


def summary(measures: Sequence[Measure]) -> list[str]:
    """What was measured, failed limits first; quantities that did not regress are one part, which tells the worst of them."""
    regressed = [each for each in measures if each.limit == "max_regression"]
    parts = [each.text for each in measures if not each.passed]
    parts += [each.text for each in measures if each.passed and each not in regressed]
    passed = [each for each in regressed if each.passed]
    if len(passed) == 1:
        parts.append(passed[0].text)
    elif passed:
        worst = min(passed, key=lambda each: 1.0 if each.margin is None else each.margin)
        what = "all" if len(passed) == len(regressed) else "the other"
        parts.append(f"{what} {len(passed)} quantities within their regression, closest: {worst.text}")
    return parts


def margin_text(measure: Measure) -> str:
    """The margin in percent of the limit, negative where it is passed."""
    return "-" if measure.margin is None else units.change(measure.margin)
