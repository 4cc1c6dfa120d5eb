"""How far this machine's calibrated predictions are from its stopwatch: `python benchmarks/measure.py [--device cpu]`.

Each round calibrates the machine, or takes a profile of it, and then measures every model: a shared machine is faster in one minute than in
the next. Prints, model by model, the whole pass beside its prediction, the spread of repeated runs, the median error of the rounds, and the
median error over the layers that take at least a hundredth of the time. Run it on a quiet machine: the verdicts at the end are about
the predictions only if nothing else runs.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch
from torch import nn

from modelstat.analysis import Analysis
from modelstat.api import trace_spec
from modelstat.hardware.database import find
from modelstat.hardware.gpu import Gpu
from modelstat.measure.calibrate import calibrate
from modelstat.measure.measurement import Measurement, measure
from modelstat.sources import parse
from modelstat.trace.capture import capture
from modelstat.units import seconds

SPECS = ("resnet18", "mobilenet_v3_small", "encoder", "zoo_configs/enocr.yaml", "zoo_configs/enocr_ghost.yaml")
LAYER_ERROR, TOTAL_ERROR = 0.30, 0.25
"""What the predictions are held to: the median over layers, and each total beyond its spread."""
SPREAD = 0.20
"""Repeated runs that are further apart excuse no error."""
HEAVY = 0.01
"""Layers below this share of a model's time are the profiler's own cost more than theirs."""


class Result(NamedTuple):
    """One model: its measurements, one a round."""

    spec: str
    runs: list[Measurement]

    @property
    def measured(self) -> float:
        """Seconds (s) of a pass: the median of the rounds."""
        return median(run.timing.median for run in self.runs)

    @property
    def predicted(self) -> float:
        """Seconds (s) of a pass: the median of the rounds."""
        return median(run.predicted_seconds or 0.0 for run in self.runs)

    @property
    def error(self) -> float:
        """Of a pass, each prediction beside the measurement of its round: the median of the rounds."""
        return median((run.predicted_seconds or 0.0) / run.timing.median - 1 for run in self.runs)

    @property
    def spread(self) -> float:
        """Half of what lies between the slowest and the fastest round, or between a round's own runs (the median), whichever is more."""
        times = [run.timing.median for run in self.runs]
        return max((max(times) - min(times)) / 2 / self.measured, median(run.timing.spread for run in self.runs))

    @property
    def beyond(self) -> float:
        """The size of the error, without the spread where that excuses some of it."""
        return max(0.0, abs(self.error) - (self.spread if self.spread <= SPREAD else 0.0))

    @property
    def layer_errors(self) -> list[float]:
        """Of each layer that takes a share of the time, by its path."""
        layers: dict[str, list[float]] = {}
        for run in self.runs:
            for point in run.overlay.points:
                both = layers.setdefault(point.path, [0.0, 0.0])
                both[0] += point.seconds or 0.0
                both[1] += point.predicted_seconds or 0.0
        total = sum(measured for measured, _ in layers.values())
        return [abs(predicted / measured - 1) for measured, predicted in layers.values() if measured >= HEAVY * total]


def built(spec: str, device: str, gpu: Gpu) -> tuple[nn.Module, tuple[Any, ...], dict[str, Any], Analysis]:
    if spec == "encoder":
        model = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True).eval()
        args = (torch.empty(1, 128, 256, device="meta"),)
        return model, args, {}, Analysis(capture(model, args, {}), [gpu])
    made = parse(spec).build(None, None, weights=True)
    return made.model, made.args, dict(made.kwargs), Analysis(trace_spec(spec), [gpu])


def verdict(results: list[Result]) -> bool:
    """Prints what holds and what does not."""
    layers = median(error for result in results for error in result.layer_errors)
    pairs = list(combinations(results, 2))
    ordered = sum((one.measured < other.measured) == (one.predicted < other.predicted) for one, other in pairs)
    worst = max(results, key=lambda result: result.beyond)
    held = {
        f"median error over layers {layers:.0%} (at most {LAYER_ERROR:.0%})": layers <= LAYER_ERROR,
        f"largest error of a total {worst.error:+.0%}, {worst.beyond:.0%} beyond the spread of its runs (at most {TOTAL_ERROR:.0%})": all(
            result.beyond <= TOTAL_ERROR for result in results
        ),
        f"pairs of models in the right order: {ordered} of {len(pairs)}": ordered == len(pairs),
    }
    for text, holds in held.items():
        print(f"{'holds ' if holds else 'FAILS '} {text}")
    return all(held.values())


def main() -> int:
    parser = argparse.ArgumentParser(description="Calibrated predictions against this machine's stopwatch.")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda", "mps"))
    parser.add_argument("--profile", help="a device profile; by default the machine is calibrated")
    parser.add_argument("--rounds", type=int, default=3, help="calibrations, each followed by a measurement of every model")
    parser.add_argument("--seconds", type=float, default=3.0, help="of the stopwatch, each measurement")
    parser.add_argument("models", nargs="*", default=list(SPECS))
    options = parser.parse_args()
    runs: dict[str, list[Measurement]] = {}
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(options.profile or Path(folder) / "machine.toml")
            if not options.profile:
                path.write_text(calibrate(options.device), encoding="utf-8")
            gpu = find(str(path))
        for spec in options.models:
            model, args, kwargs, analysis = built(spec, options.device, gpu)
            runs.setdefault(spec, []).append(measure(model, args, kwargs, analysis, options.device, budget=options.seconds))
    results = [Result(spec, measured) for spec, measured in runs.items()]
    print(f"{'model':32} {'measured':>10} {'spread':>7} {'predicted':>10} {'error':>7} {'layers':>7}")
    for each in results:
        times = f"{seconds(each.measured):>10} {each.spread:7.0%} {seconds(each.predicted):>10}"
        print(f"{each.spec:32} {times} {each.error:+7.0%} {median(each.layer_errors):7.0%}")
    return 0 if verdict(results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
