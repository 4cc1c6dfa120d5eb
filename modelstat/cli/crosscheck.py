"""``modelstat MODEL --crosscheck``: fvcore and torch's FlopCounterMode beside our count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from modelstat.errors import UsageError

if TYPE_CHECKING:
    from modelstat.cli.output import Output
    from modelstat.cli.render import Format
    from modelstat.records import Trace
    from modelstat.report.options import Options

UNEXPLAINED = 1
"""Exit code where a counter differs and the table of explanations does not say why."""


def check_report(form: Format, options: Options, others: Mapping[str, bool]) -> None:
    """Raises UsageError for a format that a crosscheck does not have, and for options of the report that it replaces."""
    from modelstat.cli.render import refuse_shown

    if form not in ("table", "json"):
        raise UsageError(f"--crosscheck has no {form}: choose --format table or json")
    refuse_shown("--crosscheck replaces the report", options, others, way="leave one of them out")


def second_opinion(
    model: str, input: str | None, batches: Sequence[int | None], traces: Sequence[Trace], eval_mode: bool, form: Format, out: Output
) -> int:
    """Run the other counters at each batch, write where they differ, and return the exit code. The precision changes no MAC."""
    from modelstat.cost.registry import costs
    from modelstat.measure.crosscheck import crosscheck, too_large
    from modelstat.report import crosscheck as report
    from modelstat.sources import parse

    checks = []
    for batch, trace in dict(zip(batches, traces, strict=True)).items():
        cost = costs(trace)
        built = parse(model).build(input, batch, weights=too_large(trace, cost) is None)
        if eval_mode:
            built.model.eval()
        checks.append(crosscheck(built.model, built.args, built.kwargs, trace, cost))
    write = report.write_json if form == "json" else report.write_table
    write(checks, out.stream)
    return UNEXPLAINED if any(check.unexplained for check in checks) else 0
