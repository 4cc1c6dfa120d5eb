"""The verb: many models at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from modelstat.given import given_gpus, several
from modelstat.predict.execution import parse_execution
from modelstat.sweeping.grid import Grid
from modelstat.sweeping.patterns import expand
from modelstat.sweeping.progress import progress as shown
from modelstat.sweeping.sweep import Settings, Sweep

if TYPE_CHECKING:
    from modelstat.hardware.gpu import Gpu


def sweep(
    specs: str | Sequence[str],
    *,
    inputs: str | Sequence[str] | None = None,
    batch: int | Sequence[int | None] | None = None,
    precision: str | Sequence[str | None] | None = None,
    gpu: str | Gpu | Sequence[str | Gpu] | None = None,
    mode: str = "eager",
    host: str | float = "typical",
    channels_last: bool = False,
    cuda_graph: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    output: str | Path | None = None,
    layers: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    timeout: float | None = 600.0,
    memory: float | None = None,
    cache: bool = True,
    progress: bool = False,
) -> Sweep:
    """Analyzes many models: every one at each input, batch and precision, on each GPU. Nothing runs until it is iterated.

    A script that calls this starts processes: it must do so under ``if __name__ == "__main__":``.

    Args:
        specs: model specs, and globs such as ``"timm:*"``, ``"torchvision:resnet*"`` and ``"zoo_configs/*.yaml"``.
        inputs: a shape as on the command line, or several; the models' own by default.
        batch: one batch or several, prepended to inputs that are given by shape.
        precision: as for :func:`modelstat.analyze`, one or several.
        gpu: as for :func:`modelstat.analyze`, one or several.
        mode: eager or compile, for the predicted times.
        host: fast, typical, slow, or the microseconds that the host needs to issue an op.
        channels_last: images with their channels innermost.
        cuda_graph: one launch for all kernels.
        workers: processes on this machine, by default one per core.
        scheduler: the address of a Dask cluster to use instead, ``"tcp://HOST:PORT"``.
        output: the Parquet file to write; by default one that vanishes with the sweep.
        layers: also write all layers, beside it.
        resume: go on with an ``output`` that exists.
        overwrite: start an ``output`` that exists anew.
        timeout: time that one model may take (s); None: no limit.
        memory: memory that the process of one model may take (B); by default what its worker has.
        cache: read traces that are there already, and keep new ones.
        progress: show on stderr how it goes: a bar on a terminal, lines elsewhere.

    Raises SourceError for a spec that cannot be read and a glob that matches nothing, UnknownGpuError, UsageError, OutputError and
    MissingExtraError at once; ClusterError or OutputError while it runs. What a model raises is a row.
    """
    execution = parse_execution(mode, str(host), channels_last=channels_last, cuda_graph=cuda_graph)
    models = expand([specs] if isinstance(specs, str) else list(specs))
    grid = Grid(models, several(inputs), several(batch), several(precision), given_gpus(gpu), layers, execution)
    settings = Settings(workers=workers, scheduler=scheduler, timeout=timeout, memory=memory, cache=cache)
    path = None if output is None else Path(output)
    return Sweep(grid, path, settings, resume=resume, overwrite=overwrite, progress=shown() if progress else None)
