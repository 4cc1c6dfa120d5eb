"""A model measured here: the whole pass by a stopwatch, its ops by the profiler, both beside the prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import torch
from torch import nn

from modelstat.analysis import Analysis
from modelstat.measure.local import sensors
from modelstat.measure.overlay import Overlay, overlay
from modelstat.measure.profiled import profiled
from modelstat.measure.session import running
from modelstat.measure.stopwatch import Timing, timed


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One model on one device. ``predicted_seconds`` (s) is the whole pass with the device's waits for its host."""

    device: str
    timing: Timing
    predicted_seconds: float | None
    overlay: Overlay
    sensors: str
    software: str
    threads: int

    @property
    def error(self) -> float | None:
        """Predicted / measured - 1, of the whole pass."""
        return None if self.predicted_seconds is None else self.predicted_seconds / self.timing.median - 1.0


def measure(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], analysis: Analysis, device: str, *,
    channels_last: bool = False, budget: float = 3.0,
) -> Measurement:  # fmt: skip
    """Times a model that ``analysis`` is of, on its first GPU's record.

    The analysis' precision and ``channels_last`` are those of the run; ``budget`` (s) is how long the stopwatch runs. The model, the
    random state and torch's switches come back as they were. Raises InputError for a model without weights, TraceError if it raises.
    """
    with running(model, args, kwargs, device, precision=analysis.trace.precision, channels_last=channels_last) as call:
        found = timed(call, device, budget=budget)
        state = sensors().text if device == "cuda" else ""
        threads = torch.get_num_threads()
        profile = profiled(call, device)
    prediction = analysis.predictions[0]
    return Measurement(
        device=device,
        timing=found,
        predicted_seconds=prediction.seconds,
        overlay=overlay(analysis.trace, analysis.costs, analysis.rooflines[0], prediction, profile),
        sensors=state,
        software=f"torch {torch.__version__}",
        threads=threads,
    )
