"""What a stopwatch on a GPU should show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from modelstat.cost.record import Cost
from modelstat.errors import MissingPeakError
from modelstat.hardware.gpu import Gpu
from modelstat.predict.execution import GRAPH_KERNEL_SECONDS, Execution
from modelstat.predict.fusion import Kernel
from modelstat.predict.interval import interval
from modelstat.predict.kernels.constants import constants
from modelstat.predict.kernels.dispatch import kernel_time
from modelstat.predict.kernels.rates import architecture_family
from modelstat.predict.kernels.timing import NOTHING, Time
from modelstat.predict.launch import Launch, launches
from modelstat.predict.queue import Timeline, simulate
from modelstat.records import Trace

Bound = Literal["compute", "memory", "overhead"]


class OpPrediction(msgspec.Struct, frozen=True):
    """One op's share of the predicted time.

    ``seconds`` (s) is its kernel's time, shared out by bytes among the ops of a fused kernel; ``wait_seconds`` how long the GPU waited
    for the host before it. ``bound`` is what limits it, None for an op that runs no kernel.
    """

    seconds: float
    compute_seconds: float
    memory_seconds: float
    wait_seconds: float
    bound: Bound | None

    @property
    def total_seconds(self) -> float:
        """Kernel and wait (s)."""
        return self.seconds + self.wait_seconds


IDLE = OpPrediction(0.0, 0.0, 0.0, 0.0, None)


class Prediction(msgspec.Struct, frozen=True):
    """A model's predicted time on one GPU, in one way to run it.

    ``seconds`` (s) is one forward pass of the whole batch, ``low_seconds`` and ``high_seconds`` its 90 % interval. ``idle_seconds`` is how
    long the GPU waits for its host. ``missing`` says why there is no prediction.
    """

    gpu: Gpu
    execution: Execution
    ops: tuple[OpPrediction, ...]
    kernels: int
    seconds: float | None
    low_seconds: float | None
    high_seconds: float | None
    idle_seconds: float | None
    bound: Bound | None
    missing: str | None = None
    notes: tuple[str, ...] = ()
    widening: float = 1.0
    """Factor by which what lies outside of the fit widened both sides of the interval."""
    scale: float = 1.0
    """Factor by which a measurement corrected all times."""
    correction: str | None = None
    """Which measurement that was; None without one."""


def predict(trace: Trace, costs: Sequence[Cost], gpu: Gpu, execution: Execution | None = None) -> Prediction:
    """The predicted time of a trace on a GPU. A missing peak gives a Prediction without times, and the reason."""
    execution = execution or Execution()
    launched = launches(trace, costs, execution)
    try:
        times = _times(launched, gpu, tf32=trace.precision == "tf32", compiled=execution.mode == "compile")
    except MissingPeakError as error:
        return Prediction(gpu, execution, (), 0, None, None, None, None, None, str(error))
    running, timeline = scheduled([time.total for time in times], gpu, execution)
    ops = _shared(trace, costs, [each.kernel for each in launched], times, running, timeline.waits)
    compute, memory = sum(op.compute_seconds for op in ops), sum(op.memory_seconds for op in ops)
    idle_share = timeline.idle / timeline.total if timeline.total else 0.0
    bound: Bound = "overhead" if idle_share > 0.5 else "compute" if compute >= memory else "memory"
    moved = sum(cost.bytes for cost in costs)
    unknown = sum(cost.bytes for cost in costs if cost.known == "unknown")
    family, _ = architecture_family(gpu)
    spread = interval(
        _setting(trace, execution), idle_share=idle_share, unknown_share=unknown / moved if moved else 0.0, family=family
    )
    return Prediction(
        gpu, execution, ops, sum(seconds > 0.0 for seconds in running), timeline.total, timeline.total * spread.low,
        timeline.total * spread.high, timeline.idle, bound if timeline.total else None, notes=spread.reasons,
        widening=spread.widening,
    )  # fmt: skip


def scheduled(kernels: Sequence[float], gpu: Gpu, execution: Execution) -> tuple[list[float], Timeline]:
    """Kernels (s) with the gap that a graph leaves before each, and their timeline; what takes no time is not issued."""
    gap = GRAPH_KERNEL_SECONDS if execution.cuda_graph else 0.0
    running = [seconds + gap if seconds > 0.0 else 0.0 for seconds in kernels]
    issue = execution.issue_seconds
    if gpu.calibration is not None and not execution.cuda_graph:
        issue = gpu.calibration.host_us / 1e6
    return running, simulate(running, [issue if seconds > 0.0 else 0.0 for seconds in running])


def _times(launched: Sequence[Launch], gpu: Gpu, *, tf32: bool, compiled: bool) -> list[Time]:
    faster = constants("execution", "compile")["generated"]
    times: list[Time] = []
    for kernel, op, generated in launched:
        time = NOTHING if op.view else kernel_time(op, kernel.cost, gpu, tf32=tf32, compiled=compiled)
        times.append(Time(*(seconds * faster for seconds in time)) if generated else time)
    return times


def _shared(
    trace: Trace, costs: Sequence[Cost], kernels: Sequence[Kernel], times: Sequence[Time], running: Sequence[float], waits: Sequence[float]
) -> tuple[OpPrediction, ...]:
    """Kernels back to ops: a fused kernel's time is shared out by the bytes that its ops move alone."""
    ops = [IDLE] * len(trace.ops)
    for kernel, time, seconds, wait in zip(kernels, times, running, waits, strict=True):
        if seconds == 0.0:
            continue
        bound: Bound = "overhead" if wait > seconds else "compute" if time.compute >= time.memory else "memory"
        weights = [max(costs[index].bytes, 1) for index in kernel.ops]
        for index, weight in zip(kernel.ops, weights, strict=True):
            share = weight / sum(weights)
            ops[index] = OpPrediction(seconds * share, time.compute * share, time.memory * share, wait * share, bound)
    return tuple(ops)


def _setting(trace: Trace, execution: Execution) -> str:
    half = trace.precision in ("fp16", "bf16", "amp-fp16", "amp-bf16", "tf32")
    return f"{execution.mode}-{'half' if half else 'fp32'}"
