"""From a trace to the rows of a sweep, and from a failure to theirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from modelstat import __version__
from modelstat.cost.record import Cost
from modelstat.cost.registry import costs
from modelstat.errors import ModelstatError
from modelstat.predict.prediction import Prediction, predict
from modelstat.predict.roofline import Roofline, layer_times, roofline
from modelstat.records import Input, Trace
from modelstat.report.coverage import coverage
from modelstat.report.document import totals, warnings
from modelstat.report.prediction import layer_predictions, op_predictions, throughput
from modelstat.report.rows import layer_rows
from modelstat.report.timing import milliseconds, notes
from modelstat.sweeping.grid import Job
from modelstat.sweeping.patterns import parts
from modelstat.sweeping.row import Layer, Row, Status

LONGEST_REASON = 2000
"""Characters of a reason that are kept."""


class RangeError(ModelstatError):
    """A count that does not fit the 64 bits of a column."""


def evaluated(job: Job, trace: Trace) -> tuple[tuple[Row, ...], tuple[Layer, ...]]:
    """The rows of one trace, at each precision and on each GPU of the job; its layers if the job asks for them.

    Raises RangeError for a count of 2**63 or more.
    """
    found = costs(trace)
    counts = _counts(trace, found)
    rows: list[Row] = []
    layers: list[Layer] = []
    for precision in job.precisions:
        held = trace if precision in (None, trace.precision) else msgspec.structs.replace(trace, precision=str(precision))
        warned = warnings(held, coverage(held, found))
        point = {**_identity(job), **counts, "batch": held.batch, "precision": held.precision}
        timed = [(roofline(held, found, gpu), predict(held, found, gpu, job.execution)) for gpu in job.gpus]
        if not timed:
            rows.append(Row(**point, notes=_joined(warned)))
        for result, predicted in timed:
            said = (*warned, *notes(held, found, result), *predicted.notes)
            rows.append(Row(**point, **_timing(result), **_predicted(held, predicted), notes=_joined(said)))
        if job.layers:
            layers.extend(_layers(job, held, found, timed))
    return tuple(rows), tuple(layers)


def failed(job: Job, batch: int | None, status: Status, reason: str) -> tuple[Row, ...]:
    """The rows of one batch of a job that gave none: one per precision and GPU, as if it had."""
    line = " ".join(reason.split())[:LONGEST_REASON]
    gpus: list[tuple[str | None, str | None]] = [(gpu.key, gpu.name) for gpu in job.gpus]
    return tuple(
        Row(**_identity(job), batch=batch, precision=precision, status=status, reason=line, gpu=key, gpu_name=name)
        for precision in job.precisions
        for key, name in gpus or [(None, None)]
    )


def _identity(job: Job) -> dict[str, Any]:
    origin, name = parts(job.spec)
    return {"job": job.index, "spec": job.spec, "origin": origin, "name": name, "inputs": job.inputs, "modelstat": __version__}


def _counts(trace: Trace, found: Sequence[Cost]) -> dict[str, Any]:
    """The columns that no GPU and no precision of the same trace changes."""
    sums, covered = msgspec.structs.asdict(totals(trace, found)), coverage(trace, found)
    for name, value in sums.items():
        if isinstance(value, int) and value >= 2**63:
            raise RangeError(f"{trace.model}: {name} is {value:.3g}, more than a column of 64 bits holds: use a smaller batch")
    parameters = [each for each in trace.parameters if each.kind == "parameter"]
    return {
        **sums,
        "shapes": shapes(trace.inputs),
        "trainable_params": sum(each.elements for each in parameters if each.trainable),
        "buffers": sum(each.elements for each in trace.parameters if each.kind == "buffer"),
        "modules": len(trace.modules),
        "ops": covered.ops,
        "unknown_ops": ", ".join(f"{op.name} ({op.count}x)" for op in covered.unknown_ops),
        "unknown_byte_share": covered.unknown_byte_share,
        "run": trace.run,
        "versions": ", ".join(f"{name} {version}" for name, version in trace.versions.items() if name != "modelstat"),
    }


def shapes(inputs: Sequence[Input]) -> str:
    """The tensors that a model was given, in one line.

    >>> shapes([Input("x", (1, 3, 224, 224), "float32")]), shapes([Input("ids", (1, 8), "int64"), Input("mask", (1, 8), "bool")])
    ('1x3x224x224', 'ids=1x8:int64,mask=1x8:bool')
    """
    if len(inputs) == 1 and inputs[0].dtype == "float32":
        return _size(inputs[0].shape)
    return ",".join(f"{each.name}={_size(each.shape)}{'' if each.dtype == 'float32' else f':{each.dtype}'}" for each in inputs)


def _size(shape: Iterable[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _timing(result: Roofline) -> dict[str, Any]:
    gpu, peak = result.gpu, result.peak
    return {
        "gpu": gpu.key,
        "gpu_name": gpu.name,
        "peak_flops": peak.flops if peak else None,
        "peak_column": peak.column if peak else None,
        "bandwidth_bytes": gpu.bandwidth_bytes,
        "ridge": result.ridge,
        "attainable_flops": result.attainable_flops,
        "bound": result.bound,
        "ideal_ms": milliseconds(result.ideal_seconds),
        "ideal_upper_ms": milliseconds(result.upper_seconds),
        "whole_model_ms": milliseconds(result.whole_model_seconds),
        "compute_ms": milliseconds(result.compute_seconds),
        "memory_ms": milliseconds(result.memory_seconds),
        "gpu_memory_bytes": gpu.memory_bytes,
        "fits": result.fits,
        "missing": result.missing,
    }


def _predicted(trace: Trace, prediction: Prediction) -> dict[str, Any]:
    return {
        "execution": prediction.execution.text,
        "predicted_ms": milliseconds(prediction.seconds),
        "predicted_low_ms": milliseconds(prediction.low_seconds),
        "predicted_high_ms": milliseconds(prediction.high_seconds),
        "predicted_bound": prediction.bound,
        "idle_ms": milliseconds(prediction.idle_seconds),
        "throughput": throughput(trace, prediction),
    }


def _layers(job: Job, trace: Trace, found: Sequence[Cost], timed: Sequence[tuple[Roofline, Prediction]]) -> Iterator[Layer]:
    point = {"job": job.index, "spec": job.spec, "batch": trace.batch, "precision": trace.precision}
    plain = []
    for row in layer_rows(trace, found):
        fields = msgspec.structs.asdict(row)
        own = msgspec.structs.asdict(fields.pop("own"))
        for name in ("input_shapes", "output_shapes"):
            fields[name] = ",".join(map(_size, fields[name]))
        plain.append({**point, **fields, **{f"own_{name}": value for name, value in own.items()}})
    if not timed:
        yield from (Layer(**fields) for fields in plain)
    for result, predicted in timed:
        by_layer = layer_predictions(trace, result, predicted, op_predictions(trace, found, result, predicted))
        for fields, time, mine in zip(plain, layer_times(trace, result), by_layer, strict=True):
            yield Layer(
                **fields,
                gpu=result.gpu.key,
                bound=time.bound,
                ideal_ms=milliseconds(time.ideal_seconds),
                compute_ms=milliseconds(time.compute_seconds),
                memory_ms=milliseconds(time.memory_seconds),
                predicted_ms=milliseconds(mine.seconds),
                predicted_bound=mine.bound,
            )


def _joined(sentences: Iterable[str]) -> str | None:
    return "; ".join(dict.fromkeys(sentences)) or None
