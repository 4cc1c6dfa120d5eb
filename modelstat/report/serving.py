"""``--phase serve`` as a table, JSON, CSV, Markdown or LaTeX: the model's facts, and one row a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

import msgspec

from modelstat import units
from modelstat.report.grid import Column, Grid, Row, printable
from modelstat.report.width import width_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from modelstat.serving.serving import Serving, ServingOnGpu
    from modelstat.serving.timing import Span

COLUMNS = (
    Column("gpu", "gpu", "GPU", "text"),
    Column("batch", "batch", "batch", "integer"),
    Column("precision", "precision", "precision", "text"),
    Column("first", "first_token_ms", "first token", "ms"),
    Column("token", "token_ms", "per token", "ms"),
    Column("ideal", "token_ideal_ms", "ideal", "ms"),
    Column("decode", "decode_tokens_per_second", "tokens/s", "speed"),
    Column("rate", "tokens_per_second", "with prompts", "speed"),
    Column("needed", "needed_bytes", "memory", "bytes"),
    Column("fits", "fits", "fits", "flag"),
    Column("largest", "largest_batch", "largest batch", "integer"),
)

WIDTH = 100
"""Columns of what does not go to a terminal."""
EXACT = 100_000
"""A batch of this and more is rounded in the table."""

ASSUMED = (
    "Each prompt is read alone, then the batch writes a token a pass. tokens/s: while it writes; with prompts: with their time too. "
    "Below each predicted time: its 90 % interval, and the ideal time of the roofline."
)


def encode(found: Sequence[Serving]) -> str:
    """JSON text: an object for one batch and precision, an array for several."""
    data = msgspec.json.encode(found[0] if len(found) == 1 else list(found))
    return msgspec.json.format(data, indent=2).decode()


def write(found: Sequence[Serving], form: str, file: TextIO, *, width: int | None = None) -> None:
    """Write the report as table, json, csv, markdown or latex."""
    if form == "json":
        file.write(encode(found) + "\n")
    elif form == "table":
        _write_table(found, file, width)
    else:
        from modelstat.report.tabular import WRITERS

        WRITERS[form](grid(found), file)


def grid(found: Sequence[Serving]) -> Grid:
    """One row for each batch, precision and GPU; without a GPU there is none, and the facts of the model are the caption."""
    rows = tuple(
        Row((
            gpu.name, each.batch, each.precision, _ms(gpu.first_token), _ms(gpu.token), _ms(gpu.token, "ideal_seconds"),
            gpu.decode_tokens_per_second, gpu.tokens_per_second, gpu.needed_bytes, gpu.fits, gpu.largest_batch,
        ))
        for each in found
        for gpu in each.gpus
    )  # fmt: skip
    caption = "; ".join(part for each in found for part in (title(each), *(f"{name}: {value}" for name, value in facts(each))))
    return Grid(COLUMNS, rows, caption)


def title(each: Serving) -> str:
    """What was asked."""
    plural = "s" if each.generate != 1 else ""
    return f"{each.model}, {each.precision}, batch {each.batch}: prompts of {each.prompt} tokens, {each.generate} token{plural} written"


def facts(each: Serving) -> list[tuple[str, str]]:
    """What holds on every GPU."""
    found = [("parameters", units.count(each.params)), ("weights", units.bytes_(each.weight_bytes))]
    routed = each.experts
    if routed is not None:
        part = units.percent(routed.touched / routed.experts)
        found[0] = ("parameters", f"{units.count(each.params)}, of which a token meets {units.count(each.active_params)}")
        met = f"{routed.touched:.4g} of the {routed.experts} of each layer ({part}), {units.bytes_(routed.touched_bytes)}"
        found.append(("experts", f"a token meets {routed.choices}, a pass of the batch {met}"))
    cache = f"{units.bytes_(each.kv_token_bytes)} a token, {units.bytes_(each.kv_sequence_bytes)} a sequence at its end"
    found.append((f"keys and values ({each.kv_cache})", f"{cache}, {units.bytes_(each.kv_bytes)} for the batch"))
    if each.gpus:
        found.append(("runs", each.execution))
    return found


def _ms(span: Span | None, name: str = "predicted_seconds") -> float | None:
    value: float | None = None if span is None else getattr(span, name)
    return None if value is None else value * 1e3


def _write_table(found: Sequence[Serving], file: TextIO, width: int | None) -> None:
    from rich.console import Console

    console = Console(file=file, width=width or width_of(file, WIDTH), highlight=False, soft_wrap=False)
    for index, each in enumerate(found):
        if index:
            console.print()
        for part in _display(each):
            console.print(part)


def _display(each: Serving) -> list[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    sheet = Table.grid(padding=(0, 2))
    sheet.add_column(style="bold")
    sheet.add_column(overflow="fold")
    for name, value in facts(each):
        sheet.add_row(name, value)
    parts: list[RenderableType] = [Text(printable(title(each)), style="bold"), sheet]
    if each.gpus:
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
        table.add_column("GPU", min_width=10)
        for heading in ("first\ntoken", "per\ntoken", "tokens/s", "with\nprompts", "memory", "largest\nbatch"):
            table.add_column(heading, justify="right", no_wrap=True)
        for gpu in each.gpus:
            table.add_row(*_cells(gpu))
        parts += [Text(), table, Text(), Text(ASSUMED, style="dim")]
    reasons = [f"{gpu.name}: {gpu.missing}" for gpu in each.gpus if gpu.missing]
    for note in (*reasons, *each.notes):
        parts.append(Text(f"- {printable(note)}"))
    return parts


def _cells(gpu: ServingOnGpu) -> tuple[str, ...]:
    memory = units.bytes_(gpu.needed_bytes)
    if gpu.memory_bytes is not None:
        memory += f"\nof {units.bytes_(gpu.memory_bytes)}" + ("" if gpu.fits else "\ndoes not fit")
    rates = (units.per_second(rate) if rate is not None else "-" for rate in (gpu.decode_tokens_per_second, gpu.tokens_per_second))
    most = gpu.largest_batch
    largest = "-" if most is None else units.integer(most) if most < EXACT else units.count(most)
    return (printable(gpu.name), _times(gpu.first_token), _times(gpu.token), *rates, memory, largest)


def _times(span: Span | None) -> str:
    if span is None:
        return "-"
    values = (span.predicted_seconds, span.low_seconds, span.high_seconds, span.ideal_seconds)
    predicted, low, high, ideal = ("-" if value is None else units.seconds(value) for value in values)
    if low.split()[1:] == high.split()[1:]:
        low = low.split()[0]
    return f"{predicted}\n{low}-{high}\nideal {ideal}"
