"""``modelstat gpus``: the GPU database, and one GPU with its peaks and ridge points."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from modelstat.cost.record import Unit
    from modelstat.hardware.gpu import Gpu, Peak

DTYPES: tuple[tuple[str, Unit], ...] = (
    ("float64", "matmul"), ("float32", "matmul"), ("tf32", "matmul"), ("float16", "matmul"), ("bfloat16", "matmul"),
    ("float8_e4m3fn", "matmul"), ("int8", "matmul"), ("float32", "vector"), ("float64", "vector"),
)  # fmt: skip
"""The (dtype, unit) pairs that one GPU's page shows."""


def gpus(
    name: str | None = None,
    /,
    *,
    local: bool = False,
    format: Annotated[Literal["table", "json", "csv"], Parameter(show_default=False)] = "table",
) -> None:
    """List the GPUs, or show one.

    Args:
        name: A GPU (4090, "a100 80gb"), a definition or a TOML file; all without it.
        local: The GPU of this machine, and the definition that --gpu takes.
        format: table (the default), json or csv.
    """
    from modelstat.hardware.database import all_gpus, find

    single = local or name is not None
    if local:
        here = _local(name, format)
        if here is None:
            return
        chosen: Sequence[Gpu] = (here,)
    else:
        chosen = all_gpus() if name is None else (find(name),)
    if format == "json":
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(chosen[0] if single else chosen), indent=2).decode())
    elif format == "csv":
        _print_csv(chosen)
    else:
        from rich.console import Console

        console = Console() if sys.stdout.isatty() else Console(width=100)
        console.print(_card(chosen[0]) if single else _list(chosen))


def _local(name: str | None, form: str) -> Gpu | None:
    """This machine's GPU, told in one line before its card; None where there is none, which one line says too.

    Raises UsageError where a name was given as well, where there is no GPU to write as JSON or CSV, and where too little is known of it.
    """
    from modelstat.errors import UsageError

    if name is not None:
        raise UsageError(f"gpus {name} --local: give a name, or --local for the GPU of this machine")
    from modelstat.measure.local import is_there, local_gpu, without_gpu

    if not is_there():
        if form != "table":
            raise UsageError(f"gpus --local --format {form}: {without_gpu()}")
        print(without_gpu())
        return None
    found = local_gpu()
    if form == "table":
        how = "in the database" if found.known else "not in the database: derived from what torch tells of it"
        print(f'This machine: {found.name}, {how}. The same anywhere: --gpu "{found.definition}"\n')
    return found.gpu


def _print_csv(chosen: Sequence[Gpu]) -> None:
    import csv

    import msgspec

    rows = [{name: value for name, value in msgspec.to_builtins(gpu).items() if name != "calibration"} for gpu in chosen]
    writer = csv.writer(sys.stdout)
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow("; ".join(map(str, cell)) if isinstance(cell, (list, tuple)) else cell for cell in row.values())


def _list(chosen: Iterable[Gpu]) -> Table:
    """One line a GPU: peaks of contractions, and the ridge points that they give."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", caption="fp32 and fp16 in TFLOP/s, ridge points in FLOP/B")
    table.add_column("key", no_wrap=True)
    table.add_column("name", overflow="fold")  # the one column that gives way
    for heading in ("year", "GB", "GB/s", "fp32", "fp16", "ridge\nfp32", "ridge\nfp16"):
        table.add_column(heading, justify="right", no_wrap=True)
    for gpu in chosen:
        peaks = [_peak(gpu, dtype, "matmul") for dtype in ("float32", "float16")]
        table.add_row(
            gpu.key,
            gpu.name,
            _number(gpu.year),
            _number(gpu.memory_gb),
            _number(gpu.bandwidth_gbs),
            *(_number(round(peak.flops / 1e12, 1) if peak else None) for peak in peaks),
            *(_number(round(peak.flops / gpu.bandwidth_bytes, 1) if peak else None) for peak in peaks),
        )
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def _card(gpu: Gpu) -> Group:
    """Everything about one GPU: what it is, its peaks and ridge points, and where the numbers come from."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from modelstat import units

    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    facts.add_column(overflow="fold")
    for label, value in (
        ("key", ", ".join((gpu.key, *gpu.aliases))),
        ("architecture", " ".join(str(part) for part in (gpu.vendor, gpu.architecture, gpu.compute_capability, gpu.year) if part)),
        ("cores", f"{_number(gpu.sms)} SMs, {_number(gpu.cores)} cores, boost {_number(gpu.boost_mhz)} MHz"),
        ("memory", f"{_number(gpu.memory_gb)} GB {gpu.memory_type}, {units.bandwidth(gpu.bandwidth_bytes)}"),
        ("derived", "\n".join(gpu.derived)),
        ("source", gpu.source),
        ("confidence", gpu.confidence),
        ("checks", gpu.checks),
        ("exceptions", "\n".join(f"{column}: {reason}" for column, reason in gpu.exceptions)),
        ("notes", gpu.notes),
    ):
        if value:
            facts.add_row(label, Text(value))
    peaks = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2))
    for heading in ("dtype", "unit"):
        peaks.add_column(heading)
    for heading in ("peak", "ridge point (FLOP/B)"):
        peaks.add_column(heading, justify="right")
    peaks.add_column("from")
    for dtype, unit in DTYPES:
        peak = _peak(gpu, dtype, unit)
        if peak is not None:
            peaks.add_row(dtype, unit, units.flops_rate(peak.flops), units.ratio(peak.flops / gpu.bandwidth_bytes), peak.column)
    return Group(Text(gpu.name, style="bold"), facts, Text(), peaks)


def _peak(gpu: Gpu, dtype: str, unit: Unit) -> Peak | None:
    from modelstat.errors import MissingPeakError

    try:
        return gpu.peak(dtype, unit)
    except MissingPeakError:
        return None
