"""Before and after a swap, as data: the contract ``modelstat-swap/1``. Everything that is shown of a swap is drawn from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from modelstat.analysis import Analysis
from modelstat.records import Input, Swap
from modelstat.report.coverage import coverage
from modelstat.report.document import CONVENTION, versions, warnings
from modelstat.report.verdict_layers import Changed, Counts, Group, changed, counts, groups, shares
from modelstat.report.verdict_text import sentence
from modelstat.report.verdict_wins import Wins


class Times(msgspec.Struct, frozen=True):
    """The whole model on one GPU (ms). ``whole_model_ms`` is the roofline of the totals, ``kernels`` how many are launched.

    ``bound`` limits the predicted time, ``ideal_bound`` the ideal one; null where the GPU has no peak for what the model runs.
    """

    whole_model_ms: float | None
    ideal_ms: float | None
    ideal_bound: str | None
    predicted_ms: float | None
    predicted_low_ms: float | None
    predicted_high_ms: float | None
    bound: str | None
    idle_ms: float | None
    kernels: int | None


class GpuVerdict(msgspec.Struct, frozen=True):
    """Both models on one GPU. ``change`` are shares (-0.43: 43 % less); ``crosses`` is whether the intensity falls below the ridge point.

    ``wins`` is at which batches the swapped model is predicted to be faster, null where the batch is not known; ``sentence`` says it all.
    """

    key: str
    name: str
    peak_flops: float | None
    peak_column: str | None
    bandwidth_bytes: float
    ridge: float | None
    missing: str | None
    before: Times
    after: Times
    change: dict[str, float | None]
    crosses: bool | None
    wins: Wins | None
    sentence: str


class Run(msgspec.Struct, frozen=True):
    """Both models at one batch and precision; ``layers`` are those that changed."""

    batch: int | None
    precision: str
    inputs: tuple[Input, ...]
    before: Counts
    after: Counts
    change: dict[str, float | None]
    layers: tuple[Changed, ...]
    gpus: tuple[GpuVerdict, ...]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One swap of one model. Counts are for the whole batch, bytes B, times ms; null is unknown, never zero."""

    schema: Literal["modelstat-swap/1"] = "modelstat-swap/1"
    versions: dict[str, str]
    convention: str
    warnings: tuple[str, ...]
    model: str
    rules: tuple[str, ...]
    swapped: tuple[Swap, ...]
    skipped: tuple[Swap, ...]
    execution: str | None
    runs: tuple[Run, ...]


def verdict(
    pairs: Sequence[tuple[Analysis, Analysis]], rules: Sequence[str], wins: Callable[[int, int], Wins | None] = lambda run, gpu: None
) -> Verdict:
    """The verdict on a swap, from both analyses of each batch and precision on the same GPUs.

    ``rules`` are what was done; ``wins(run, gpu)`` tells, by index, at which batches the swap wins.
    """
    before, after = (analysis.trace for analysis in pairs[0])
    swaps = after.swaps[len(before.swaps) :]
    told = [warnings(each.trace, coverage(each.trace, each.costs)) for pair in pairs for each in pair]
    predictions = pairs[0][0].predictions
    return Verdict(
        versions=versions(after),
        convention=CONVENTION,
        warnings=tuple(dict.fromkeys(text for one in told for text in one)),
        model=before.model,
        rules=tuple(rules),
        swapped=tuple(swap for swap in swaps if swap.after),
        skipped=tuple(swap for swap in swaps if not swap.after),
        execution=predictions[0].execution.text if predictions else None,
        runs=tuple(_run(index, old, new, groups(swaps), wins) for index, (old, new) in enumerate(pairs)),
    )


def _run(index: int, old: Analysis, new: Analysis, parts: Sequence[Group], wins: Callable[[int, int], Wins | None]) -> Run:
    before, after = counts(old), counts(new)
    return Run(
        batch=old.trace.batch,
        precision=old.trace.precision,
        inputs=old.trace.inputs,
        before=before,
        after=after,
        change=shares(before, after),
        layers=changed(old, new, parts),
        gpus=tuple(_gpu(old, new, before, after, gpu, wins(index, gpu)) for gpu in range(len(old.rooflines))),
    )


def _gpu(old: Analysis, new: Analysis, before: Counts, after: Counts, index: int, wins: Wins | None) -> GpuVerdict:
    line = old.rooflines[index]
    first, second = _times(old, index), _times(new, index)
    ridge = line.ridge
    crosses = None
    if ridge is not None and before.intensity is not None and after.intensity is not None:
        crosses = before.intensity >= ridge > after.intensity
    found = GpuVerdict(
        key=line.gpu.key,
        name=line.gpu.name,
        peak_flops=line.peak.flops if line.peak else None,
        peak_column=line.peak.column if line.peak else None,
        bandwidth_bytes=line.gpu.bandwidth_bytes,
        ridge=ridge,
        missing=line.missing or new.rooflines[index].missing,
        before=first,
        after=second,
        change=shares(first, second),
        crosses=crosses,
        wins=wins,
        sentence="",
    )
    return msgspec.structs.replace(found, sentence=sentence(found, before, after, old.trace.batch))


def _times(analysis: Analysis, index: int) -> Times:
    line, predicted = analysis.rooflines[index], analysis.predictions[index]
    return Times(
        whole_model_ms=_ms(line.whole_model_seconds),
        ideal_ms=_ms(line.ideal_seconds),
        ideal_bound=line.bound,
        predicted_ms=_ms(predicted.seconds),
        predicted_low_ms=_ms(predicted.low_seconds),
        predicted_high_ms=_ms(predicted.high_seconds),
        bound=predicted.bound,
        idle_ms=_ms(predicted.idle_seconds),
        kernels=predicted.kernels if predicted.seconds is not None else None,
    )


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3
