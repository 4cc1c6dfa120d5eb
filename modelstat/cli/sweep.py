"""``modelstat sweep SPEC... --output RESULTS.parquet``: many models, each on its own, into one file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from modelstat.cli.options import RUN, WHAT, option
from modelstat.cli.run import Mode, execution

if TYPE_CHECKING:
    from collections.abc import Sequence

HOW = Group("How to work", sort_key=3)
WHERE = Group("Where to write", sort_key=4)


def sweep(
    *specs: str,
    output: Annotated[Path, option(WHERE, "FILE")],
    from_: Annotated[str | None, Parameter(name="--from", group=WHAT, allow_leading_hyphen=True)] = None,
    input: Annotated[list[str] | None, option(WHAT, "SHAPE")] = None,
    batch: Annotated[list[str] | None, option(WHAT, "N")] = None,
    precision: Annotated[list[str] | None, option(WHAT, "P")] = None,
    gpu: Annotated[list[str] | None, option(WHAT, "NAME")] = None,
    mode: Annotated[Mode, option(RUN, "MODE")] = "eager",
    cuda_graph: Annotated[bool, option(RUN)] = False,
    channels_last: Annotated[bool, option(RUN)] = False,
    host: Annotated[str, option(RUN, "HOST")] = "typical",
    workers: Annotated[int | None, option(HOW, "N")] = None,
    scheduler: Annotated[str | None, option(HOW, "ADDRESS")] = None,
    timeout: Annotated[str, option(HOW, "SECONDS")] = "600",
    memory: Annotated[str | None, option(HOW, "SIZE")] = None,
    no_cache: Annotated[bool, option(HOW)] = False,
    layers: Annotated[bool, option(WHERE)] = False,
    resume: Annotated[bool, option(WHERE)] = False,
    overwrite: Annotated[bool, option(WHERE)] = False,
) -> int:
    """Analyze many models, into a Parquet file.

    Args:
        specs: Models and globs: timm:*, torchvision:resnet*, nets/*.py:build.
        output: Parquet file: a row per point of the grid.
        from_: A file with one SPEC a line, or - for stdin.
        input: One sample: 3x224x224. Repeat it for several inputs.
        batch: Batch sizes: 1,8,64.
        precision: fp32, tf32, fp16, bf16, amp-fp16, amp-bf16; several too.
        gpu: v100,t4 or "2070 super,clock=1815MHz" (see modelstat gpus).
        mode: eager (the default) or compile: kernels fused.
        cuda_graph: One launch for all kernels: no host cost per op.
        channels_last: Images with their channels innermost.
        host: fast, typical, slow, or microseconds to issue an op.
        workers: Processes on this machine, one per core by default.
        scheduler: A Dask cluster to use instead: tcp://HOST:PORT.
        timeout: Time limit of one model: 600 by default, 0: none.
        memory: Memory limit of one model: 8GB; else its worker's.
        no_cache: Trace again instead of reading the cache.
        layers: Also write all layers, into FILE.layers.parquet.
        resume: Go on with the file where it ended.
        overwrite: Start the file anew.
    """
    from rich.console import Console

    from modelstat.cli.lists import batches, check_input, precisions, seconds
    from modelstat.errors import UsageError
    from modelstat.quantities import parse_bytes
    from modelstat.report.width import width_of
    from modelstat.sweeping.cluster import check_address
    from modelstat.sweeping.start import sweep as run
    from modelstat.sweeping.summary import summary

    execution(mode, host, None, cuda_graph=cuda_graph, channels_last=channels_last, timed=bool(gpu), runs=1)
    if output.suffix.lower() not in (".parquet", ".pq"):
        raise UsageError(f"--output {output}: a sweep writes Parquet, give it a name such as {output.with_suffix('.parquet')}")
    if scheduler is not None:
        check_address(scheduler)
    sizes = batches(batch or ())
    for each in input or ():
        check_input(each, sizes)
    swept = run(
        [*specs, *_listed(from_)],
        inputs=input,
        batch=sizes,
        precision=precisions(precision or ()),
        gpu=gpu,
        mode=mode,
        host=host,
        channels_last=channels_last,
        cuda_graph=cuda_graph,
        workers=workers,
        scheduler=scheduler,
        output=output,
        layers=layers,
        resume=resume,
        overwrite=overwrite,
        timeout=seconds("--timeout", timeout, "s") or None,
        memory=None if memory is None else parse_bytes(memory, default="B"),
        cache=not no_cache,
        progress=True,
    )
    try:
        swept.run()
    except KeyboardInterrupt:
        finished = f"{swept.tally.total()} of {swept.grid.points} rows are in {output}"
        print(f"modelstat: {finished}: the same command with --resume goes on", file=sys.stderr)
        raise
    console = Console(width=width_of(sys.stdout, 120))
    for part in summary(swept):
        console.print(part)
    return int(swept.tally.total() > swept.tally["ok"])


def _listed(path: str | None) -> Sequence[str]:
    """The specs of ``--from``. Raises UsageError for a file that cannot be read."""
    from modelstat.errors import UsageError
    from modelstat.sweeping.patterns import read_lines

    if path is None:
        return ()
    try:
        if path == "-":
            return list(read_lines(sys.stdin))
        with open(path, encoding="utf-8") as file:
            return list(read_lines(file))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--from {path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
