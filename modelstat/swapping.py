"""A swap tried out: the model traced before and after, at each batch and precision, and evaluated on each GPU.

Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache as remembered

import msgspec

from modelstat.analysis import Analysis
from modelstat.api import trace_source
from modelstat.errors import SwapError
from modelstat.hardware.gpu import Gpu
from modelstat.predict.execution import Execution
from modelstat.records import Trace
from modelstat.report.verdict import Verdict, verdict
from modelstat.report.verdict_best import Ranking, Trial, ranked
from modelstat.report.verdict_wins import Wins, wins
from modelstat.rewrite.plan import Plan
from modelstat.rewrite.registry import Asked, ask
from modelstat.rewrite.selection import Selection
from modelstat.rewrite.source import SwappedSource, changes_precision
from modelstat.rewrite.stages import concerns, stages
from modelstat.sources import Source, parse

Run = tuple[str | None, int | None]
"""Precision and batch, None for the model's own."""

TRIED = (
    "conv=ghost", "conv=separable", "conv=grouped", "conv=lowrank", "linear=lowrank", "act=relu", "norm=fold", "norm=rms",
    "attention=fused", "precision=fp16", "precision=bf16",
)  # fmt: skip
"""What is tried where no rule is named."""


class Bench:
    """One model at one input on some GPUs, to try swaps on."""

    def __init__(
        self, spec: str, inputs: str | None, gpus: Sequence[Gpu], execution: Execution, *, cache: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> None:  # fmt: skip
        self.source = parse(spec)
        self.gpus, self.execution = tuple(gpus), execution
        self._inputs, self._cache, self._progress = inputs, cache, progress

    def verdict(self, plans: Sequence[Plan], runs: Sequence[Run]) -> Verdict:
        """Before and after, at each precision and batch.

        Raises SwapError for a swap that no layer takes, or that changes the shape of the model's outputs; MissingPeakError if the only GPU
        lacks the peak that the model needs.
        """
        swapped = self._swapped(plans, runs)
        pairs = [self._pair(swapped, run) for run in runs]
        for _, after in pairs:
            after.require_peak()

        @remembered
        def won(precision: str | None) -> tuple[Wins | None, ...]:
            before, after = (self._trace(source, (precision, 1)) for source in (self.source, swapped))
            return wins(before, after, self.gpus, self.execution)

        def wins_at(run: int, gpu: int) -> Wins | None:
            return won(runs[run][0])[gpu] if pairs[run][0].trace.batch is not None else None

        return verdict(pairs, [plan.text for plan in plans], wins_at)

    def best(self, rules: Sequence[Asked], selection: Selection, run: Run) -> Ranking:
        """Each rule on each stage of the model and on all of it, ranked by the predicted time on the first GPU.

        Raises SwapError if none of them is taken by any layer.
        """
        before = self._analysis(self.source, run)
        trials: list[Trial] = []
        for asked in rules or tuple(map(ask, TRIED)):
            for stage in stages(before.trace):
                if not concerns(asked.rule.target, before.trace, stage):
                    continue
                plan = Plan(asked, msgspec.structs.replace(selection, where=stage.where))
                try:
                    after = self._pair(self._swapped([plan], [run]), run)[1]
                except SwapError:
                    continue
                trials.append(Trial(asked.text, stage.name, after))
        if not trials:
            names = ", ".join(asked.text for asked in rules) or "rule"
            raise SwapError(f"{self.source.spec}: no layer takes {names}: `modelstat swap {self.source.spec} RULE` says why for one rule")
        return ranked(before, trials)

    def _swapped(self, plans: Sequence[Plan], runs: Sequence[Run]) -> SwappedSource:
        """The model with its layers swapped. Raises SwapError for single layers in another precision in a model that is cast as a whole."""
        swapped = SwappedSource(self.source, plans)
        if changes_precision(plans) and any(precision or swapped.precision for precision, _ in runs):
            raise SwapError("a precision of the whole model would undo that of single layers: leave --precision out")
        return swapped

    def _pair(self, swapped: Source, run: Run) -> tuple[Analysis, Analysis]:
        before, after = self._analysis(self.source, run), self._analysis(swapped, run)
        if before.trace.outputs != after.trace.outputs:
            raise SwapError(f"{swapped.spec}: a swap keeps the model's outputs, but {before.trace.outputs} became {after.trace.outputs}")
        return before, after

    def _analysis(self, source: Source, run: Run) -> Analysis:
        return Analysis.from_trace(self._trace(source, run), self.gpus, execution=self.execution)

    def _trace(self, source: Source, run: Run) -> Trace:
        precision, batch = run
        last = self.execution.walks_channels_last
        return trace_source(source, self._inputs, batch, precision, channels_last=last, cache=self._cache, progress=self._progress)
