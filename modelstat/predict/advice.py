"""What would make a model faster on a GPU: each piece of advice is a second prediction, compared with the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from modelstat import units
from modelstat.cost.record import Cost
from modelstat.cost.registry import costs as costs_of
from modelstat.errors import MissingPeakError
from modelstat.hardware.gpu import Gpu
from modelstat.memory.peak import peak_memory
from modelstat.predict.prediction import Prediction, predict
from modelstat.predict.roofline import FITS_SHARE
from modelstat.predict.variant import grown, in_precision
from modelstat.records import Trace

ALMOST_FREE = 0.1
"""Doubling the batch comes almost free as long as it adds no more than this share to the time."""
LARGEST_GROWTH = 2**12
"""Times the given batch that are tried at most."""
WORTH = {"compile": 0.05, "graph": 0.05, "layout": 0.03, "precision": 0.05, "batch": 0.1}
"""Share of the time (batch: of the throughput) that a change must gain to be named."""
IDLE = 0.1
"""A GPU that waits for its host for a larger share of the time profits from a CUDA graph."""
MOST = 3


class Advice(msgspec.Struct, frozen=True):
    """One change. ``predicted_ms`` is the time of a pass with it, ``speedup`` its throughput over that of now."""

    change: str
    predicted_ms: float
    speedup: float
    text: str


Predictor = Callable[[Trace, Sequence[Cost]], Prediction]


def advise(trace: Trace, costs: Sequence[Cost], prediction: Prediction) -> tuple[Advice, ...]:
    """At most three changes that help, the one that gains most first. None for a prediction without a time.

    ``prediction`` is that of the trace; a correction by a measurement (its ``scale``) holds for the changes too.
    """
    if not prediction.seconds:
        return ()
    found = [
        *_batch(trace, costs, prediction),
        *_compiled(trace, costs, prediction),
        *_graph(trace, costs, prediction),
        *_layout(trace, costs, prediction),
        *_precision(trace, prediction),
    ]
    return tuple(sorted(found, key=lambda advice: -advice.speedup)[:MOST])


def _seconds(trace: Trace, costs: Sequence[Cost], now: Prediction, **changes: object) -> tuple[float, Prediction]:
    other = predict(trace, costs, now.gpu, msgspec.structs.replace(now.execution, **changes))
    return (other.seconds or 0.0) * now.scale, other


def _gain(kind: str, now: Prediction, seconds: float) -> float | None:
    """Share of the time that is saved, None where it is not worth a line."""
    assert now.seconds is not None
    saved = 1.0 - seconds / now.seconds
    return saved if seconds > 0.0 and saved > WORTH[kind] else None


def _changed(kind: str, now: Prediction, seconds: float, text: str) -> Advice:
    assert now.seconds is not None
    faster = now.seconds / seconds
    times = f"{units.seconds(seconds)} instead of {units.seconds(now.seconds)}"
    return Advice(kind, seconds * 1e3, faster, f"{text}: {times}, {faster:.2f}x faster")


def _compiled(trace: Trace, costs: Sequence[Cost], now: Prediction) -> list[Advice]:
    if now.execution.mode != "eager":
        return []
    seconds, other = _seconds(trace, costs, now, mode="compile")
    if _gain("compile", now, seconds) is None:
        return []
    saved: dict[str, float] = {}
    for cost, before, after in zip(costs, now.ops, other.ops, strict=True):
        saved[cost.family] = saved.get(cost.family, 0.0) + before.seconds - after.seconds * now.scale
    most = [family for family in sorted(saved, key=lambda family: -saved[family])[:2] if saved[family] > 0.0]
    parts = [f"{other.kernels} kernels instead of {now.kernels}"]
    if most:
        parts.append(f"saves most in {' and '.join(most)}")
    waited = (now.idle_seconds or 0.0) - (other.idle_seconds or 0.0) * now.scale
    if waited > (now.seconds or 0.0) * WORTH["compile"]:
        parts.append(f"{units.seconds(waited)} less waiting for the host")
    return [_changed("compile", now, seconds, f"--mode compile ({', '.join(parts)})")]


def _graph(trace: Trace, costs: Sequence[Cost], now: Prediction) -> list[Advice]:
    assert now.seconds is not None
    assert now.idle_seconds is not None
    share = now.idle_seconds / now.seconds
    if now.execution.cuda_graph or share <= IDLE:
        return []
    seconds, _ = _seconds(trace, costs, now, cuda_graph=True)
    if _gain("graph", now, seconds) is None:
        return []
    return [_changed("cuda-graph", now, seconds, f"--cuda-graph (the GPU waits {units.percent(share)} of the time for its host)")]


def _layout(trace: Trace, costs: Sequence[Cost], now: Prediction) -> list[Advice]:
    if now.execution.channels_last or not any(cost.family == "convolution" for cost in costs):
        return []
    seconds, _ = _seconds(trace, costs, now, channels_last=True)
    if _gain("layout", now, seconds) is None:
        return []
    return [_changed("channels-last", now, seconds, "--channels-last")]


def _precision(trace: Trace, now: Prediction) -> list[Advice]:
    """The fastest other precision of an fp32 model, and where it moves the ridge point."""
    if trace.precision != "fp32":
        return []
    before = _ridge(now.gpu, "float32")
    best: tuple[float, str, float] | None = None
    for precision, dtype in (("tf32", "tf32"), ("fp16", "float16"), ("bf16", "bfloat16")):
        ridge = _ridge(now.gpu, dtype)
        if ridge is None or before is None or ridge <= before:
            continue
        other = in_precision(trace, precision)
        seconds, _ = _seconds(other, costs_of(other), now)
        if _gain("precision", now, seconds) is not None and (best is None or seconds < best[0]):
            best = seconds, precision, ridge
    if best is None or before is None:
        return []
    seconds, precision, ridge = best
    moved = f"moves the ridge from {units.ratio(before)} to {units.ratio(ridge)} FLOP/B"
    return [_changed("precision", now, seconds, f"--precision {precision} ({moved})")]


def _ridge(gpu: Gpu, dtype: str) -> float | None:
    try:
        return gpu.ridge(dtype)
    except MissingPeakError:
        return None


def _batch(trace: Trace, costs: Sequence[Cost], now: Prediction) -> list[Advice]:
    """From which batch on doubling it adds more than a tenth to the time.

    Recurrent layers run over an axis that a shape alone does not tell from the batch: no advice there.
    """
    if trace.batch is None or any(cost.family == "rnn" for cost in costs):
        return []
    assert now.seconds is not None
    memory = now.gpu.memory_bytes
    factor, seconds, added = 1, now.seconds, 0.0
    while factor < LARGEST_GROWTH:
        larger = grown(trace, 2 * factor)
        if memory is not None and peak_memory(larger).peak_bytes > FITS_SHARE * memory:
            break
        after, _ = _seconds(larger, costs_of(larger), now)
        added = after / seconds - 1.0
        if added > ALMOST_FREE:
            break
        factor, seconds = 2 * factor, after
    if factor == 1:
        return []
    faster = factor * now.seconds / seconds
    if faster - 1.0 < WORTH["batch"]:
        return []
    batch = trace.batch * factor
    then = f", the next doubling adds {units.percent(added)}" if added > ALMOST_FREE else ""
    text = f"--batch {batch}: doubling is almost free up to there ({units.seconds(seconds)} a pass{then}), {faster:.1f}x the throughput"
    return [Advice("batch", seconds * 1e3, faster, text)]
