"""From a row to the trace of its model at its batch."""

from __future__ import annotations

from pathlib import Path

from model_fit.rows import Row
from modelstat.api import trace_spec
from modelstat.predict.execution import Execution
from modelstat.records import Trace
from modelstat.trace.batches import HIGH, LOW, BatchPair, NotAffineError


def spec_of(model: str, source: str, configs: Path) -> str:
    """The model's spec as it was measured.

    timm's rows ran with its ``fast_norm`` switch: without it, the casts around GroupNorm alone would take longer than what was measured.
    ``config:NAME`` is a file of ``configs``; its attention is the eager one.
    """
    origin, _, name = model.partition(":")
    if origin == "config":
        return f"hf:{configs.resolve() / name}.json(attn_implementation='eager')"
    if origin == "timm" and source == "timm":
        return f"{model}(fast_norm=True)"
    return model


def walked(batch: int) -> tuple[int, ...]:
    """The batches that are walked for a row's: two stand for all others."""
    return (batch,) if batch in (1, LOW) else (LOW, HIGH)


class Traces:
    """Traces of one model at any batch: two walks for all batches above 1."""

    def __init__(self, spec: str, row: Row) -> None:
        self.spec, self.inputs, self.precision = spec, row.input, row.precision
        self.channels_last = execution(row).walks_channels_last
        self._pair: BatchPair | None = None
        self._refused = False

    def at(self, batch: int) -> Trace:
        """The trace at a batch. Raises ModelstatError."""
        if walked(batch) == (batch,):
            return self._walk(batch)
        if self._pair is None and not self._refused:
            try:
                self._pair = BatchPair(self._walk(LOW), self._walk(HIGH))
            except NotAffineError:
                self._refused = True
        return self._pair.at(batch) if self._pair is not None else self._walk(batch)

    def _walk(self, batch: int) -> Trace:
        return trace_spec(self.spec, self.inputs, batch, self.precision, channels_last=self.channels_last)


def execution(row: Row) -> Execution:
    """How a row's model was run."""
    return Execution(mode=row.mode, channels_last=row.layout == "nhwc")  # type: ignore[arg-type]


def changed(trace: Trace, params_m: float | None) -> bool:
    """Whether the model is not the one that was measured: its params differ by more than 2 % (and more than the figure's rounding)."""
    if params_m is None:
        return False
    params = sum(parameter.elements for parameter in trace.parameters if parameter.kind == "parameter") / 1e6
    return abs(params - params_m) > max(0.02 * params_m, 0.0051)
