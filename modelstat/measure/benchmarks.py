"""Micro-benchmarks: what a machine attains on single ops of several sizes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from statistics import median

import torch
from torch import nn

from modelstat.hardware.calibration import Calibration
from modelstat.measure.law import Point, fitted
from modelstat.measure.layers import CONVOLUTIONS, Layer, layers
from modelstat.measure.stopwatch import finisher, timed, timing
from modelstat.trace.state import preserved_globals

FEWEST = 7
"""Runs of a benchmark at least, of which the median counts."""
LEAST_WORK = 0.2
"""Share of a measured time that is work at least: what an op costs beyond it is measured too, and differs from op to op."""
WARM_UP = 3
"""Rounds of the layers that do not count."""
CALLS = 20
"""Calls in one replayed CUDA graph, so that no host is in the time."""

DTYPES = {"cpu": ("float32", "bfloat16"), "cuda": ("float32", "float16", "bfloat16"), "mps": ("float32", "float16")}
"""Dtypes of the products."""
KINDS = (*CONVOLUTIONS, "pooling", "norm", "reduction", "softmax")
"""Kinds of layers that have a law, products aside."""
NUMBERS = {"cpu": range(12, 26, 2), "cuda": range(14, 28, 2), "mps": range(14, 26, 2)}
"""Powers of two: numbers (fp32) that an element-wise op reads."""
LARGEST = {"cpu": 2**24, "cuda": 2**26, "mps": 2**24}
"""Numbers (fp32) of a copy that no cache holds."""
GELU_FLOPS = 5
"""FLOPs an element, as counted (docs/counting.md)."""


class Benchmarks:
    """All benchmarks on one device, ``budget`` seconds (s) each.

    ``spreads`` are those of the repeated runs, ``peaks`` the highest FLOP/s by dtype, ``bandwidth`` B/s of a large copy.
    """

    def __init__(self, device: str, budget: float) -> None:
        self.device, self.budget = device, budget
        self.spreads: list[float] = []
        self.peaks: dict[str, float] = {}
        self.launch = self.bandwidth = 0.0

    def run(self) -> Calibration:
        """Runs them. The random state and torch's switches are as before afterwards."""
        with preserved_globals(), torch.no_grad():
            torch.default_generator.manual_seed(0)
            self.launch = self._launch()
            self.bandwidth = self._copy(LARGEST[self.device])
            points = self._layers()
            return Calibration(
                device=self.device,
                launch_us=self.launch * 1e6,
                host_us=self._host() * 1e6,
                memory=tuple((8.0 * 2**power, self._moved(2**power)) for power in NUMBERS[self.device]),
                vector=self._vector(),
                laws={kind: fitted(measured) for kind, measured in points.items()},
            )

    def _work(self, seconds: float) -> float:
        """Of the time of an op (s), what is not what any op costs."""
        return max(seconds - self.launch, LEAST_WORK * seconds)

    def _once(self, call: Callable[[], object]) -> float:
        calls, repeated = (CALLS, _graph(call)) if self.device == "cuda" else (1, call)
        found = timed(repeated, self.device, budget=self.budget, least=FEWEST)
        self.spreads.append(found.spread)
        return found.median / calls

    def _launch(self) -> float:
        """What a module that does nothing to speak of takes (s)."""
        tiny, relu = torch.zeros(1, device=self.device), nn.ReLU()

        def many() -> None:
            for _ in range(100):
                relu(tiny)

        if self.device == "cuda":
            return self._once(lambda: relu(tiny))
        return self._once(many) / 100

    def _host(self) -> float:
        """How far apart ops are issued (s) to a device that works on its own: kernels so short that they never hold up the host."""
        if self.device == "cpu":
            return 0.0
        tiny, relu = torch.zeros(1, device=self.device), nn.ReLU()

        def many() -> None:
            for _ in range(1000):
                relu(tiny)

        return timed(many, self.device, budget=self.budget, least=FEWEST).low / 1000

    def _layers(self) -> dict[str, list[Point]]:
        """What the layers of each kind take."""
        kinds = (*KINDS, *(f"matmul-{dtype}" for dtype in DTYPES[self.device]))
        chosen = [(kind, layer) for kind in kinds for layer in layers(kind, self.device)]
        timed_layers = self._graphs if self.device == "cuda" else self._in_turn
        points: dict[str, list[Point]] = {kind: [] for kind in kinds}
        for (kind, layer), seconds in zip(chosen, timed_layers([layer for _, layer in chosen]), strict=True):
            points[kind].append(Point(layer.flops, layer.weights, layer.others, seconds))
            dtype = kind.removeprefix("matmul-") if kind.startswith("matmul-") else "float32"
            self.peaks[dtype] = max(self.peaks.get(dtype, 0.0), layer.flops / seconds)
        return points

    def _in_turn(self, chosen: list[Layer]) -> list[float]:
        """Median time (s) of each layer where all are called in turn, as in a network.

        A layer that runs again and again finds its weights and its code in the caches. In a network neither is there, but its input is:
        the op before has just written it. The last outputs live a while, as they do there; memory that is let go at once goes back to
        the system, and comes again page by page. Those of a kind stay together, since a network calls few kinds again and again.
        """
        finish = finisher(self.device)
        kept: deque[object] = deque(maxlen=3)
        times: list[list[float]] = [[] for _ in chosen]
        end = time.perf_counter() + self.budget * len(chosen)
        while len(times[0]) < WARM_UP + FEWEST or time.perf_counter() < end:
            for layer, found in zip(chosen, times, strict=True):
                layer.image.mul_(1.0)
                finish()
                start = time.perf_counter()
                output = layer.modules[0](layer.image)
                finish()
                found.append(time.perf_counter() - start)
                kept.append(output)
                # What networks have between their layers takes the caches for code, too.
                nn.functional.layer_norm(output, output.shape[-1:]).add_(output).mean(-1)
        measured = [timing(found[WARM_UP:]) for found in times]
        self.spreads += [each.spread for each in measured]
        return [each.median for each in measured]

    def _graphs(self, chosen: list[Layer]) -> list[float]:
        """Time (s) of each layer on CUDA, its copies in one graph."""
        times: list[float] = []
        for layer in chosen:

            def call(layer: Layer = layer) -> None:
                for module in layer.modules:
                    module(layer.image)

            times.append(self._once(call) / len(layer.modules))
        return times

    def _moved(self, numbers: int) -> float:
        """B/s of an element-wise op with a new output, as networks have it."""
        relu, sources = nn.ReLU(), [torch.ones(numbers, device=self.device) for _ in range(2)]
        kept: deque[object] = deque(maxlen=3)

        def both() -> None:
            for source in sources:
                kept.append(relu(source))

        return 8.0 * numbers / self._work(self._once(both) / len(sources))

    def _copy(self, numbers: int) -> float:
        """B/s of a copy to memory that is there."""
        source, target = torch.ones(numbers, device=self.device), torch.zeros(numbers, device=self.device)
        return 8.0 * numbers / self._work(self._once(lambda: target.copy_(source)))

    def _vector(self) -> float:
        numbers = 2**16 if self.device == "cpu" else 2**24
        values = torch.randn(numbers, device=self.device)
        return GELU_FLOPS * numbers / self._work(self._once(lambda: nn.functional.gelu(values)))

    @property
    def spread(self) -> float:
        """The median spread of all benchmarks."""
        return median(self.spreads)


def _graph(call: Callable[[], object]) -> Callable[[], object]:
    """CALLS calls as one CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    return graph.replay
