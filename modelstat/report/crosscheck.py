"""Our MACs beside those of other counters, and where they differ: records, the table and the JSON of ``--crosscheck``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TextIO

import msgspec

from modelstat import units
from modelstat.report.grid import printable

COUNTERS = ("fvcore", "FlopCounterMode")
"""fvcore counts MACs and calls them flops; torch's FlopCounterMode counts 2 a MAC, and is shown halved."""


class Difference(msgspec.Struct, frozen=True):
    """One module whose own MACs, without those of its submodules, another counter sees differently.

    ``counted`` is what each counter says (None: it did not run) and ``difference`` by how much it is more than ours; ``explanations``
    says why, for each counter and each op that accounts for a part; ``unexplained`` are the counters of which a part is left.
    """

    path: str
    type: str
    macs: int
    counted: dict[str, int | None]
    difference: dict[str, int | None]
    explanations: tuple[str, ...] = ()
    unexplained: tuple[str, ...] = ()


class Crosscheck(msgspec.Struct, frozen=True, kw_only=True):
    """One model, counted by all. ``failures`` says of each counter that did not run why."""

    schema: Literal["modelstat-crosscheck/1"] = "modelstat-crosscheck/1"
    model: str
    batch: int | None
    macs: int
    counted: dict[str, int | None]
    modules: int
    """Modules that ran something; those that are no difference agree exactly."""
    differences: tuple[Difference, ...] = ()
    unexplained: int = 0
    """How many modules differ without an explanation."""
    failures: dict[str, str] = {}


def encode(checks: Sequence[Crosscheck]) -> str:
    """JSON text: an object for one check, an array for several."""
    data = msgspec.json.encode(checks[0] if len(checks) == 1 else list(checks))
    return msgspec.json.format(data, indent=2).decode()


def write_json(checks: Sequence[Crosscheck], file: TextIO) -> None:
    """Write the checks to ``file`` as JSON, with a final newline."""
    file.write(encode(checks) + "\n")


def write_table(checks: Sequence[Crosscheck], file: TextIO) -> None:
    """Write a table of each check: the totals, one line for each module that differs, and the verdict."""
    for index, check in enumerate(checks):
        file.write(("\n" if index else "") + "\n".join(_lines(check)) + "\n")


def verdict(check: Crosscheck) -> str:
    """One sentence: how many modules differ, and whether that is explained."""
    ran = [name for name in COUNTERS if check.counted[name] is not None]
    if not ran:
        return "no other counter ran"
    beside = " and ".join(ran)
    if not check.differences:
        return f"{beside}: all {check.modules} modules that run something agree exactly"
    explained = len(check.differences) - check.unexplained
    rest = f", {check.unexplained} UNEXPLAINED" if check.unexplained else ""
    return f"{beside}: {len(check.differences)} of {check.modules} modules differ, {explained} explained{rest}"


def _lines(check: Crosscheck) -> list[str]:
    batch = "batch as given" if check.batch is None else f"batch {check.batch}"
    lines = [f"{printable(check.model)}, {batch}: MACs of each module's own ops, without those of its submodules", ""]
    notes: dict[str, int] = {}
    rows: list[list[str]] = [["module", "modelstat", *(head for name in COUNTERS for head in (name, "difference")), "why"]]
    for each in check.differences:
        why = [f"[{notes.setdefault(text, len(notes) + 1)}]" for text in each.explanations]
        why += [f"UNEXPLAINED ({name})" for name in each.unexplained]
        rows.append([printable(f"{each.path or check.model} ({each.type})"), *_numbers(each.macs, each.counted), " ".join(why)])
    rows.append(["total", *_numbers(check.macs, check.counted), ""])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        numbers = "  ".join(cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:], strict=False))
        lines.append(f"{row[0]:<{widths[0]}}  {numbers}  {row[-1]}".rstrip())
    lines += ["", *(f"[{number}] {text}" for text, number in notes.items()), *([""] if notes else []), verdict(check)]
    return lines + [f"{name} did not run: {reason}" for name, reason in check.failures.items()]


def _numbers(macs: int, counted: dict[str, int | None]) -> list[str]:
    cells = [units.count(macs)]
    for name in COUNTERS:
        theirs = counted[name]
        more = 0 if theirs is None else theirs - macs
        sign = "+" if more > 0 else "-" if more < 0 else ""
        cells += ["-", ""] if theirs is None else [units.count(theirs), f"{sign}{units.count(abs(more))}" if more else "0"]
    return cells
