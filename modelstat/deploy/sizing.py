"""How many GPUs a stream of requests needs: the best batch under a latency limit on each GPU, and what that takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from modelstat import units
from modelstat.cost.registry import costs as costs_of
from modelstat.deploy.fleet import BATCHES, Out, fleet, rank, short
from modelstat.deploy.prices import Prices
from modelstat.deploy.series import Series
from modelstat.errors import InputError, MissingPeakError, UsageError
from modelstat.hardware.gpu import Gpu
from modelstat.memory.peak import peak_memory
from modelstat.predict.execution import Execution
from modelstat.predict.passes import Pass
from modelstat.predict.roofline import FITS_SHARE
from modelstat.records import Trace


class Sized(msgspec.Struct, frozen=True):
    """One GPU that can do it. ``seconds`` (s) is one pass of ``batch`` samples, ``latency_seconds`` what a request waits at most.

    ``throughput`` is that of one GPU (samples/s) and ``utilisation`` the share of all that the demand takes. ``power_watts`` (W) is a
    bound: all boards at their TDP. Costs are in the prices' currency. None where a figure is not known.
    """

    gpu: Gpu
    batch: int
    seconds: float
    latency_seconds: float
    throughput: float
    gpus: int
    utilisation: float
    power_watts: float | None
    joules: float | None
    """Energy of one inference at most (J)."""
    cost_per_hour: float | None
    cost_per_million: float | None
    fits: bool | None


class Sizing(msgspec.Struct, frozen=True):
    """The answer: GPUs that can, the best first, and those that cannot.

    Ranked by cost where prices are given (GPUs without a price after those that have one), else by the number of GPUs, then by power.
    """

    model: str
    precision: str
    execution: Execution
    qps: float
    latency_seconds: float
    ranked: tuple[Sized, ...]
    out: tuple[Out, ...]
    currency: str | None
    notes: tuple[str, ...]


def size(
    series: Series, gpus: Sequence[Gpu], qps: float, latency: float, execution: Execution | None = None, *, prices: Prices | None = None,
    change: Callable[[Trace], Trace] = lambda trace: trace,
) -> Sizing:  # fmt: skip
    """Size a fleet of each GPU for ``qps`` requests/s, one sample each, with at most ``latency`` seconds (s) for each.

    A batch is full when its last request arrives, so the first one waits (B - 1) / (requests/s of its replica) and then t(B). GPUs are as
    many as bear the demand and the headroom. ``change`` is done to every trace (a precision plan). Raises UsageError for a demand or a
    limit that is not above 0, InputError for a model that computes nothing.
    """
    check_demand(qps, latency)
    running = execution or Execution()
    model = _Model(series, change, running)
    one = model.trace(1)
    if not any(cost.bytes or cost.flops for cost in costs_of(one)):
        raise InputError(f"{one.model} computes nothing and moves nothing: there is no time to size a fleet by")
    ranked: list[Sized] = []
    out: list[Out] = []
    for gpu in gpus:
        found: Sized | Out
        try:
            found = _best(model, gpu, qps, latency, prices)
        except MissingPeakError as error:
            found = Out(gpu, short(str(error)))
        if isinstance(found, Sized):
            ranked.append(found)
        else:
            out.append(found)
    ranked.sort(key=lambda one: rank(one.cost_per_hour, one.gpus, one.power_watts, one.latency_seconds))
    return Sizing(
        one.model, one.precision, running, qps, latency, tuple(ranked), tuple(out), prices.currency if prices else None, one.notes
    )


def check_demand(qps: float, latency: float) -> None:
    """Raises UsageError for a demand or a limit that is not above 0."""
    if not 0 < qps < float("inf"):
        raise UsageError(f"--qps {qps:g}: give the requests a second, a number above 0")
    if not 0 < latency < float("inf"):
        raise UsageError(f"--latency {latency:g}: give a time above 0, such as 50ms")


class _Model:
    """Traces, peak memory and kernels of each batch, made when they are first asked for."""

    def __init__(self, series: Series, change: Callable[[Trace], Trace], execution: Execution) -> None:
        self._series, self._change, self._execution = series, change, execution
        self._traces: dict[int, Trace] = {}
        self._passes: dict[int, Pass] = {}
        self._peaks: dict[int, int] = {}

    def trace(self, batch: int) -> Trace:
        if batch not in self._traces:
            self._traces[batch] = self._change(self._series.at(batch))
        return self._traces[batch]

    def peak_bytes(self, batch: int) -> int:
        if batch not in self._peaks:
            self._peaks[batch] = peak_memory(self.trace(batch)).peak_bytes
        return self._peaks[batch]

    def seconds(self, batch: int, gpu: Gpu) -> float:
        if batch not in self._passes:
            trace = self.trace(batch)
            self._passes[batch] = Pass(trace, costs_of(trace), self._execution)
        return self._passes[batch].seconds(gpu)


def _best(model: _Model, gpu: Gpu, qps: float, latency: float, prices: Prices | None) -> Sized | Out:
    """The batch with fewest GPUs, then least latency.

    All batches are tried up to the first that does not fit or takes too long by itself: the wait for a batch to fill is not monotonic,
    since fewer GPUs fill theirs faster.
    """
    memory = None if gpu.memory_bytes is None else FITS_SHARE * gpu.memory_bytes
    if memory is not None and model.peak_bytes(1) > memory:
        return Out(gpu, f"does not fit: one sample needs {units.bytes_(model.peak_bytes(1))}, {units.bytes_(memory)} are there")
    tried: list[Sized] = []

    for batch in BATCHES:
        seconds = model.seconds(batch, gpu)
        if seconds > latency or (memory is not None and model.peak_bytes(batch) > memory):
            break
        found = _sized(gpu, batch, seconds, qps, prices, None if memory is None else True)
        if found.latency_seconds <= latency:
            tried.append(found)
    if not tried:
        alone = model.seconds(1, gpu)
        return Out(gpu, f"too slow: one sample takes {units.seconds(alone)} by itself, {units.seconds(latency)} are allowed")
    return min(tried, key=lambda one: (one.gpus, one.latency_seconds))


def _sized(gpu: Gpu, batch: int, seconds: float, qps: float, prices: Prices | None, fits: bool | None) -> Sized:
    throughput = batch / seconds
    needed = fleet(gpu, qps, throughput, prices)
    power, cost = needed.power_watts, needed.cost_per_hour
    return Sized(
        gpu=gpu,
        batch=batch,
        seconds=seconds,
        latency_seconds=(batch - 1) / (qps / needed.gpus) + seconds,
        throughput=throughput,
        gpus=needed.gpus,
        utilisation=needed.utilisation,
        power_watts=power,
        joules=None if power is None else power / qps,
        cost_per_hour=cost,
        cost_per_million=None if cost is None else cost / (qps * 3600) * 1e6,
        fits=fits,
    )
