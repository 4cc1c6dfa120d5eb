"""The check in a terminal or a log: one line per budget, below a failed one what it is due to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from modelstat import units
from modelstat.budget.limits import QUANTITIES
from modelstat.budget.result import Checked, Measure, Outcome
from modelstat.report.grid import printable

HEADS = {"passed": "ok", "failed": "FAILED", "error": "ERROR"}
STYLES = {"passed": "green", "failed": "bold red", "error": "bold red"}


def write(checked: Checked, file: TextIO) -> None:
    """Write the check to ``file``, coloured on a terminal. Lines are as long as they are, so that one budget stays one line."""
    from rich.console import Console
    from rich.text import Text

    console = Console(file=file, highlight=False, soft_wrap=True)
    for outcome in checked.outcomes:
        head, *below = lines(outcome)
        console.print(Text.assemble((f"{HEADS[outcome.status]:<6}", STYLES[outcome.status]), f"  {head}"))
        for line in below:
            console.print(Text(f"        {line}"))
    console.print(Text(checked.verdict, style="bold"))


def lines(outcome: Outcome) -> list[str]:
    """The line of a budget, and those below it."""
    if outcome.error is not None:
        return [printable(f"{outcome.budget}: {outcome.error}")]
    return [printable(f"{outcome.budget}: {'; '.join(summary(outcome.measures))}"), *details(outcome)]


def details(outcome: Outcome) -> list[str]:
    """The layers that a failed budget is due to, and what else is to be known."""
    found = []
    if outcome.culprits:
        found.append(f"grown most over {printable(outcome.against)}:" if outcome.against else "heaviest, with no baseline to compare:")
        found += [f"  {culprit.text}" for culprit in outcome.culprits]
    return [*found, *(printable(f"note: {note}") for note in outcome.notes)]


def summary(measures: Sequence[Measure]) -> list[str]:
    """What was measured, failed limits first; regressions with the same limit are one part, and so is what did not regress."""
    limits = [each for each in measures if each.baseline is None]
    parts = [each.message for each in limits if not each.passed]
    grown = [each for each in measures if each.baseline is not None]
    for allowed in dict.fromkeys(each.limit_text for each in grown):
        texts = [each.text for each in grown if not each.passed and each.limit_text == allowed]
        parts += [f"{', '.join(texts)}, {allowed}"] if texts else []
    parts += [each.message for each in limits if each.passed]
    kept = [each for each in grown if each.passed]
    if kept and all(each.measured == each.baseline for each in kept):
        parts.append(f"{', '.join(QUANTITIES[each.quantity].label for each in kept)} as in the baseline")
    elif kept:
        closest = min(kept, key=lambda each: 0.0 if each.margin is None else each.margin)
        others = "" if len(kept) == 1 else f"{len(kept)} quantities within their regression, the closest "
        parts.append(f"{others}{closest.message}")
    return parts


def margin_text(measure: Measure) -> str:
    """The margin in percent of the limit, negative where it is passed."""
    return "-" if measure.margin is None else units.change(measure.margin)
