"""The verdict on a swap for a reader: in a terminal or as Markdown, and its numbers as JSON or CSV."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import msgspec

from modelstat import units
from modelstat.report.grid import Grid, Row, printable
from modelstat.report.summary import Line
from modelstat.report.tabular import markdown_escaped, write_markdown
from modelstat.report.verdict import Run, Verdict
from modelstat.report.verdict_grid import layers_grid, peak_text, totals_grid

WIDTH = 100
"""Columns of a report that does not go to a terminal."""
UNLIMITED = 10**6
NAMED = 3
"""Layers that are named before the others are only counted."""
DROP = ("ideal", "params", "bound", "mem_bytes")
"""Columns of the layers that go first, in this order, where there is no room."""


def write_table(verdict: Verdict, file: TextIO, *, wide: bool = False) -> None:
    """Header, totals, changed layers, what was left as it was, and the sentence for each GPU."""
    from rich.console import Console

    from modelstat.report.table import lines_text, rows_table
    from modelstat.report.width import width_of

    width = width_of(file, WIDTH)
    grids = [totals_grid(verdict, run) for run in verdict.runs]
    layers = layers_grid(verdict, verdict.runs[0], wide=wide)
    layers = layers if wide else _fitted(layers, width)
    tables = [*(rows_table(grid, width, narrow=False) for grid in grids), rows_table(layers, UNLIMITED if wide else width, narrow=False)]
    console = Console(file=file, width=max(width, *(table.width or 0 for table in tables)), highlight=False)
    console.print(lines_text(header(verdict), width))
    for run, table in zip(verdict.runs, tables, strict=False):
        console.print()
        if verdict.runs[1:]:
            console.print(lines_text([("", _run_text(run))], width))
        console.print(table)
    console.print()
    console.print(tables[-1])
    console.print()
    console.print(lines_text(footer(verdict), width))


def write_markdown_tables(verdict: Verdict, file: TextIO) -> None:
    """The sentences, a table of totals for each batch and precision, and one of the changed layers, to be pasted into a pull request."""
    for run in verdict.runs:
        for gpu in run.gpus:
            file.write(f"**{markdown_escaped(gpu.name)}, {_run_text(run)}:** {markdown_escaped(gpu.sentence)}.\n\n")
        write_markdown(totals_grid(verdict, run), file)
        file.write("\n")
    write_markdown(layers_grid(verdict, verdict.runs[0], wide=True), file)
    for label, text in footer(verdict):
        if not label.startswith("Verdict") and label:
            file.write(f"\n{label}: {markdown_escaped(text)}\n")


def write_json(verdict: Verdict, file: TextIO) -> None:
    """The verdict as JSON, with a final newline."""
    file.write(msgspec.json.format(msgspec.json.encode(verdict), indent=2).decode() + "\n")


def write_csv(verdict: Verdict, file: TextIO) -> None:
    """Raw numbers: a row for the model (path ``total``) and each changed layer, at each batch, precision and GPU."""
    rows = [row for run in verdict.runs for row in _raw(run)]
    writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


WRITERS: dict[str, Callable[[Verdict, TextIO], None]] = {"markdown": write_markdown_tables, "json": write_json, "csv": write_csv}
"""Format -> how it is written, but for the table, which has a width."""


def header(verdict: Verdict) -> list[Line]:
    """Model, rules, inputs and GPUs."""
    run = verdict.runs[0]
    lines: list[Line] = [("Model", printable(verdict.model)), ("Swap", printable(", then ".join(verdict.rules)))]
    lines.append(("Input", _run_text(run, inputs=True)))
    for gpu in run.gpus:
        ridge = "" if gpu.ridge is None else f", ridge {units.ratio(gpu.ridge)} FLOP/B"
        lines.append(("GPU", f"{gpu.name}: {peak_text(gpu)}{ridge}"))
    return lines


def footer(verdict: Verdict) -> list[Line]:
    """What was swapped and what was not, notes, and the verdict on each GPU."""
    absorbed = sum(len(swap.absorbed) for swap in verdict.swapped)
    also = f", with {_plural(absorbed, 'module')} that ran right before or after" if absorbed else ""
    lines: list[Line] = [("Swapped", _plural(len(verdict.swapped), "layer") + also)]
    lines += _by_reason("Left as it was", [(swap.path or "the model", swap.reason or "") for swap in verdict.skipped])
    lines += _by_reason("Kept after", [(swap.path or "the model", swap.note) for swap in verdict.swapped if swap.note])
    lines += [("Note", printable(warning)) for warning in verdict.warnings]
    for run in verdict.runs:
        for gpu in run.gpus:
            which = f"{gpu.name}: " if len(run.gpus) * len(verdict.runs) == 1 else f"{gpu.name}, {_run_text(run)}: "
            lines.append(("Verdict", which + gpu.sentence))
    return lines


def _by_reason(label: str, entries: Sequence[tuple[str, str]]) -> list[Line]:
    """One line per reason: the first layers that it holds for, and how many others."""
    reasons: dict[str, list[str]] = {}
    for path, why in entries:
        reasons.setdefault(why, []).append(path)
    more = {why: f" and {len(paths) - NAMED} more" if paths[NAMED:] else "" for why, paths in reasons.items()}
    texts = [f"{', '.join(paths[:NAMED])}{more[why]}: {why}" for why, paths in reasons.items()]
    return [(label if index == 0 else "", printable(text)) for index, text in enumerate(texts)]


def _plural(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _run_text(run: Run, *, inputs: bool = False) -> str:
    batch = "batch as given" if run.batch is None else f"batch {run.batch}"
    given = ", ".join("x".join(map(str, each.shape)) or "scalar" for each in run.inputs)
    return f"{given}, {batch}, precision {run.precision}" if inputs else f"{batch}, {run.precision}"


def _fitted(grid: Grid, width: int) -> Grid:
    """The grid without the columns of DROP that do not fit."""
    for name in DROP:
        needed = [max(len(column.header), *(len(str(row.values[index])) for row in grid.rows)) for index, column in enumerate(grid.columns)]
        if min(needed[0], width // 3) + sum(needed[1:]) + len(needed) - 1 <= width:
            break
        keep = [index for index, column in enumerate(grid.columns) if column.name != name]
        rows = tuple(Row(tuple(row.values[index] for index in keep), row.path, row.indent, row.bound, row.total) for row in grid.rows)
        grid = Grid(tuple(grid.columns[index] for index in keep), rows, grid.caption)
    return grid


def _raw(run: Run) -> list[dict[str, Any]]:
    found = []
    for index, gpu in enumerate(run.gpus or (None,)):
        for layer in (None, *run.layers):
            row: dict[str, Any] = {"path": layer.path if layer else "total", "batch": run.batch, "precision": run.precision}
            row["gpu"] = gpu.name if gpu else None
            both: list[tuple[msgspec.Struct, msgspec.Struct]] = [(layer.before, layer.after) if layer else (run.before, run.after)]
            if gpu is not None:
                both.append((layer.gpus[index].before, layer.gpus[index].after) if layer else (gpu.before, gpu.after))
            for before, after in both:
                for name in before.__struct_fields__:
                    row |= {f"{name}_before": getattr(before, name), f"{name}_after": getattr(after, name)}
            found.append(row)
    return found
