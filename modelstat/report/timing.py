"""One GPU of the JSON contract: a roofline, summed over the rows of the layers and of the ops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from modelstat.cost.record import Cost
from modelstat.hardware.database import siblings
from modelstat.predict import roofline as roofline_model
from modelstat.predict.advice import Advice
from modelstat.predict.prediction import Prediction
from modelstat.predict.roofline import OpTime, Roofline
from modelstat.records import Trace
from modelstat.report.prediction import FamilyTime, RowPrediction, family_times, layer_predictions, op_predictions, throughput


class LayerTime(msgspec.Struct, frozen=True):
    """Time of one row of ``layers`` on this GPU (ms), null where the GPU has no peak for what it runs.

    ``ideal_ms`` sums the larger of compute and memory over its ops; ``bound`` compares the two sums, null where nothing runs.
    ``predicted_ms`` is what a stopwatch should show, the GPU's waits for its host included; ``predicted_bound`` what limits that, and
    ``below_ideal`` why it is less than the ideal time, null where it is not.
    """

    path: str
    bound: str | None
    ideal_ms: float | None
    compute_ms: float | None
    memory_ms: float | None
    predicted_ms: float | None = None
    predicted_bound: str | None = None
    below_ideal: str | None = None


class GpuEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What the roofline and the prediction say on one GPU. Times are for the whole batch; a missing peak leaves null and its reason."""

    key: str
    name: str
    peak_flops: float | None
    peak_source: str | None
    bandwidth_bytes: float
    ridge: float | None
    bound: str | None
    attainable_flops: float | None
    ideal_ms: float | None
    ideal_upper_ms: float | None
    whole_model_ms: float | None
    fits: bool | None
    layers: tuple[LayerTime, ...]
    ops: tuple[LayerTime, ...] | msgspec.UnsetType = msgspec.UNSET
    peak_column: str | None
    compute_ms: float | None
    memory_ms: float | None
    compute_bound_share: float | None
    memory_bound_share: float | None
    memory_bytes: float | None
    fits_basis: str
    missing: str | None
    exceptions: dict[str, str]
    siblings: tuple[str, ...]
    notes: tuple[str, ...]
    predicted_ms: float | None
    predicted_low_ms: float | None
    predicted_high_ms: float | None
    predicted_bound: str | None
    mode: str | None
    execution: str | None
    throughput: float | None
    idle_ms: float | None
    kernels: int | None
    prediction_notes: tuple[str, ...]
    correction: str | None
    families: tuple[FamilyTime, ...]
    advice: tuple[Advice, ...] | None


def milliseconds(seconds: float | None) -> float | None:
    """Seconds in ms, None kept."""
    return None if seconds is None else seconds * 1e3


def op_times(trace: Trace, times: Sequence[OpTime], predicted: Sequence[RowPrediction]) -> tuple[LayerTime, ...]:
    """One time per op that is not a view, in order."""
    return tuple(
        _row(trace.modules[op.module].path, time, mine) for op, time, mine in zip(trace.ops, times, predicted, strict=True) if not op.view
    )


def _row(path: str, time: OpTime | roofline_model.LayerTime, predicted: RowPrediction) -> LayerTime:
    return LayerTime(
        path,
        time.bound,
        milliseconds(time.ideal_seconds),
        milliseconds(time.compute_seconds),
        milliseconds(time.memory_seconds),
        milliseconds(predicted.seconds),
        predicted.bound,
        predicted.below_ideal,
    )


def bound_shares(times: Iterable[OpTime]) -> tuple[float | None, float | None]:
    """Shares of the ideal time in compute-bound and in memory-bound ops (0..1); None where nothing takes time."""
    sums = {"compute": 0.0, "memory": 0.0}
    for time in times:
        if time.bound is not None and time.ideal_seconds is not None:
            sums[time.bound] += time.ideal_seconds
    total = sum(sums.values())
    return (sums["compute"] / total, sums["memory"] / total) if total else (None, None)


TF32_NOTE = "fp32 is taken with TF32 off, but PyTorch's default runs convolutions in TF32 on this GPU: see --precision tf32"


def notes(trace: Trace, costs: Sequence[Cost], roofline: Roofline) -> tuple[str, ...]:
    """What a reader must know about this GPU's numbers: what was derived, what is missing, what PyTorch does by default."""
    gpu = roofline.gpu
    found = [*roofline.notes, *gpu.derived]
    ampere = gpu.vendor == "NVIDIA" and float(gpu.compute_capability or 0) >= 8.0
    if ampere and trace.precision == "fp32" and any(cost.family == "convolution" and cost.macs for cost in costs):
        found.append(TF32_NOTE)
    return tuple(dict.fromkeys(found))


def gpu_entry(
    trace: Trace,
    costs: Sequence[Cost],
    roofline: Roofline,
    prediction: Prediction | None = None,
    advice: tuple[Advice, ...] | None = None,
    *,
    level: str = "module",
) -> GpuEntry:
    """The contract's entry for one GPU. ``level="op"`` adds a time per op; without a prediction what it says is null."""
    gpu, peak = roofline.gpu, roofline.peak
    compute_share, memory_share = bound_shares(roofline.ops)
    predicted = op_predictions(trace, costs, roofline, prediction)
    by_layer = layer_predictions(trace, roofline, prediction, predicted)
    known = prediction is not None and prediction.seconds is not None
    return GpuEntry(
        key=gpu.key,
        name=gpu.name,
        peak_flops=peak.flops if peak else None,
        peak_source=peak.source if peak else None,
        bandwidth_bytes=gpu.bandwidth_bytes,
        ridge=roofline.ridge,
        bound=roofline.bound,
        attainable_flops=roofline.attainable_flops,
        ideal_ms=milliseconds(roofline.ideal_seconds),
        ideal_upper_ms=milliseconds(roofline.upper_seconds),
        whole_model_ms=milliseconds(roofline.whole_model_seconds),
        fits=roofline.fits,
        layers=tuple(
            _row(module.path, time, mine)
            for module, time, mine in zip(trace.modules, roofline_model.layer_times(trace, roofline), by_layer, strict=True)
        ),
        ops=op_times(trace, roofline.ops, predicted) if level == "op" else msgspec.UNSET,
        peak_column=peak.column if peak else None,
        compute_ms=milliseconds(roofline.compute_seconds),
        memory_ms=milliseconds(roofline.memory_seconds),
        compute_bound_share=compute_share,
        memory_bound_share=memory_share,
        memory_bytes=gpu.memory_bytes,
        fits_basis=roofline.fits_basis,
        missing=roofline.missing,
        exceptions=dict(gpu.exceptions),
        siblings=tuple(board.name for board in siblings(gpu)),
        notes=notes(trace, costs, roofline),
        predicted_ms=milliseconds(prediction.seconds) if prediction else None,
        predicted_low_ms=milliseconds(prediction.low_seconds) if prediction else None,
        predicted_high_ms=milliseconds(prediction.high_seconds) if prediction else None,
        predicted_bound=prediction.bound if prediction else None,
        mode=prediction.execution.mode if prediction else None,
        execution=prediction.execution.text if prediction else None,
        throughput=throughput(trace, prediction) if prediction else None,
        idle_ms=milliseconds(prediction.idle_seconds) if prediction else None,
        kernels=prediction.kernels if prediction and known else None,
        prediction_notes=prediction.notes if prediction else (),
        correction=prediction.correction if prediction else None,
        families=family_times(costs, prediction) if prediction else (),
        advice=advice,
    )
