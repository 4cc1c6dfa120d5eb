"""``modelstat.size``: how many of which GPU serve a number of requests within a time limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from modelstat.walking import trace_spec

if TYPE_CHECKING:
    from modelstat.deploy.sizing import Sizing
    from modelstat.hardware.gpu import Gpu
    from modelstat.records import Trace


def size(
    model: str,
    qps: float,
    latency: float,
    inputs: str | None = None,
    *,
    gpu: str | Gpu | Sequence[str | Gpu] = "all",
    prices: str | Path | None = None,
    precision: str | None = None,
    weights: str | None = None,
    activations: str | None = None,
    group: int | None = None,
    plan: str | None = None,
    mode: str = "eager",
    host: str | float = "typical",
    channels_last: bool = False,
    cuda_graph: bool = False,
    cache: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Sizing:
    """How many of which GPU serve ``qps`` requests/s of one sample each, every one within ``latency`` seconds (s).

    Args:
        model: a spec as on the command line.
        qps: requests a second.
        latency: time limit of a request (s), the wait for its batch included.
        inputs: one sample by shape; the model's own by default.
        gpu: ``"all"`` of the database, or as for :func:`analyze`.
        prices: a TOML file with the price of a GPU for an hour, see :mod:`modelstat.deploy.prices`.
        precision: as for :func:`analyze`, and so are the next eight.
        weights: quantised weights.
        activations: quantised activations beside them.
        group: weights that share a scale.
        plan: a YAML file with a precision plan.
        mode: eager or compile.
        host: fast, typical, slow, or the microseconds that the host needs to issue an op.
        channels_last: images with their channels innermost.
        cuda_graph: one launch for all kernels.
        cache: read traces that are there already, and keep new ones.
        progress: is told the number of ops while a model is walked.

    Raises:
        ModelstatError: one of its kinds, see :mod:`modelstat.errors`; each names the input and the way out.
    """
    from modelstat.deploy import sizing
    from modelstat.deploy.plan import make_plan
    from modelstat.deploy.prices import read_prices
    from modelstat.deploy.quantized import planned
    from modelstat.deploy.series import BatchSeries
    from modelstat.given import fleet_gpus
    from modelstat.predict.execution import parse_execution

    gpus = fleet_gpus(gpu)
    execution = parse_execution(mode, str(host), channels_last=channels_last, cuda_graph=cuda_graph)
    precision_plan = make_plan(weights, activations, group, plan)
    priced = None if prices is None else read_prices(Path(prices))
    sizing.check_demand(qps, latency)

    def walk(batch: int) -> Trace:
        return trace_spec(model, inputs, batch, precision, channels_last=execution.walks_channels_last, cache=cache, progress=progress)

    def change(trace: Trace) -> Trace:
        return planned(trace, precision_plan) if precision_plan else trace

    return sizing.size(BatchSeries(walk), gpus, qps, latency, execution, prices=priced, change=change)
