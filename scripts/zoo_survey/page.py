"""docs/coverage.md."""

from __future__ import annotations

from typing import NamedTuple

from modelstat.sweeping.row import Row
from zoo_survey.published import Verdict
from zoo_survey.sets import read

HEAD = """# Coverage of model zoos

`scripts/survey` sweeps whole zoos and writes this page. Date: {date}. Versions: {versions}.

| zoo | models | traced | without a real run | exact | compared | ops without formula | seconds |
|---|---|---|---|---|---|---|---|
"""

NOTES = """
* traced: walked to the end at the model's default input, batch 1, without weights and without a GPU. seconds: of all models together,
  one after another, on one core.
* without a real run: the model was walked on tensors without values. The others ran for real, with random weights from a fixed seed.
* exact: the counts are the published ones. torchvision: parameters equal `num_params` (but for frozen BatchNorm, which is buffers),
  MACs equal `_ops` to 0.5 % or 0.0005 G. timm: parameters equal the published ones to 2 %, and MACs + 2 x BatchNorm elements its
  gmacs to 5 %, for the models and sizes of which a published number was at hand.
* Detection models of torchvision have a fixed number of boxes (`proposals`, `detections`, see [models.md](models.md)); the published
  numbers are those of 0, 1 or 100 detections.
* Mixtures of experts that choose experts by a loop are traced with an even choice, and the report says so.
* transformers: default configurations in bf16; what does not run in bf16 anywhere, since its own code mixes dtypes, in its own precision.
"""


class Result(NamedTuple):
    """What became of one set: its rows, the last one of each model, the verdicts on those that could be compared, and unreached parts."""

    name: str
    rows: list[Row]
    verdicts: dict[str, Verdict]
    unreached: dict[str, str]


def page(results: list[Result], groups: dict[str, dict[str, list[Row]]], date: str, versions: str) -> str:
    """The page as Markdown. ``groups`` splits the rows of a set, by its name, into kinds of models."""
    lines = [HEAD.format(date=date, versions=versions).rstrip("\n")]
    lines += [_line(result.name, result.rows, result.verdicts) for result in results]
    for name, kinds in groups.items():
        lines += [_line(f"{name}: {kind}", rows, {}) for kind, rows in kinds.items()]
    lines.append(NOTES.rstrip("\n"))
    for result in results:
        lines += _failures(result) + _real_runs(result) + _unreached(result) + _differences(result)
    return "\n".join(lines) + "\n"


def _line(name: str, rows: list[Row], verdicts: dict[str, Verdict]) -> str:
    traced = [row for row in rows if row.status == "ok"]
    fake = sum(row.run == "fake" for row in traced)
    unknown = sorted({op for row in traced for op in (row.unknown_ops or "").split(", ") if op})
    exact = str(sum(verdict.exact for verdict in verdicts.values())) if verdicts else "-"
    share = f" ({100 * len(traced) / len(rows):.1f} %)" if rows and len(traced) < len(rows) else ""
    seconds = round(sum(row.seconds for row in rows))
    compared = len(verdicts) or "-"
    return f"| {name} | {len(rows)} | {len(traced)}{share} | {fake} | {exact} | {compared} | {', '.join(unknown) or 'none'} | {seconds} |"


def _failures(result: Result) -> list[str]:
    failed = [row for row in result.rows if row.status != "ok"]
    if not failed:
        return []
    known = {row["model"]: row["reason"] for row in read(f"{result.name}_failures.csv")}
    table = [f"| `{row.name}` | {known.get(row.name) or _short(row.reason or row.status)} |" for row in failed]
    return ["", f"## {result.name}: models that are not traced", "", "| model | reason |", "|---|---|", *table]


def _real_runs(result: Result) -> list[str]:
    real = [row for row in result.rows if row.status == "ok" and row.run == "real"]
    if not real:
        return []
    table = [f"| `{row.name}` | {_said_of_the_run(row)} |" for row in real]
    return ["", f"## {result.name}: models that ran for real", "", "| model | why, and what was changed for it |", "|---|---|", *table]


def _unreached(result: Result) -> list[str]:
    if not result.unreached:
        return []
    table = [f"| `{name}` | {text} |" for name, text in result.unreached.items()]
    return ["", f"## {result.name}: parts that the example does not reach", "", "| model | part |", "|---|---|", *table]


def _said_of_the_run(row: Row) -> str:
    notes = (row.notes or "").split("; ")
    said = [note.partition(": ")[2] if "ran for real" in note else note for note in notes if "real" in note]
    return _short("; ".join(said))


def _differences(result: Result) -> list[str]:
    different = {spec: verdict for spec, verdict in result.verdicts.items() if not verdict.exact}
    if not different:
        return []
    known = {row["model"]: row["reason"] for row in read(f"{result.name}_differences.csv")}
    table = []
    for spec, verdict in different.items():
        name = spec.partition(":")[2]
        reason = known.get(name.partition(" ")[0], "")
        table.append(f"| {name} | {verdict.reason} | {reason} |")
    return ["", f"## {result.name}: counts that differ", "", "| model | difference | reason |", "|---|---|---|", *table]


def _short(reason: str) -> str:
    line = " ".join(reason.split()).replace("|", "/")
    return line if len(line) <= 200 else line[:197] + "..."
