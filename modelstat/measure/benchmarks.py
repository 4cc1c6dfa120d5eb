"""Micro-benchmarks: what a machine attains on single ops of several sizes."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import torch
from torch import nn

from modelstat.hardware.calibration import Calibration, Curve
from modelstat.measure.stopwatch import timed
from modelstat.trace.state import preserved_globals

FEWEST = 7
"""Runs of a benchmark at least: the fastest of them counts, so one that nothing disturbed must be among them."""
LEAST_WORK = 0.2
"""Share of a measured time that is work at least: what an op costs beyond it is measured too, and differs from op to op."""
CALLS = 20
"""Calls in one replayed CUDA graph, so that no host is in the time."""

PRODUCTS = {"cpu": (16, 32, 64, 128, 256, 512, 1024), "cuda": (64, 256, 512, 1024, 2048, 4096, 8192), "mps": (64, 256, 512, 1024, 2048)}
"""Sizes n of the products n x n by n x n."""
DTYPES = {"cpu": ("float32", "bfloat16"), "cuda": ("float32", "float16", "bfloat16"), "mps": ("float32", "float16")}
COPIES = {"cpu": range(12, 26, 2), "cuda": range(14, 28, 2), "mps": range(14, 26, 2)}
"""Powers of two: numbers (fp32) that are copied."""
CONVOLUTIONS = ((8, 8, 14), (16, 16, 28), (64, 64, 28), (64, 64, 56), (128, 128, 56), (256, 256, 56))
"""Input channels, output channels, size of the image: 3 x 3, padded."""
DEPTHWISE = ((16, 14), (64, 28), (96, 56), (144, 112))
"""Channels, size of the image: 3 x 3, padded, one filter a channel."""
GELU_FLOPS = 5
"""FLOPs an element, as counted (docs/counting.md)."""


class Benchmarks:
    """All benchmarks on one device, ``budget`` seconds (s) each. ``spreads`` are those of the repeated runs."""

    def __init__(self, device: str, budget: float) -> None:
        self.device, self.budget = device, budget
        self.spreads: list[float] = []
        self.launch = 0.0

    def run(self) -> Calibration:
        """Runs them. The random state and torch's switches are as before afterwards."""
        with preserved_globals(), torch.no_grad():
            torch.default_generator.manual_seed(0)
            self.launch = self._launch()
            return Calibration(
                device=self.device,
                launch_us=self.launch * 1e6,
                host_us=self._host() * 1e6,
                memory=_rising([(8.0 * 2**power, self._copy(2**power)) for power in COPIES[self.device]]),
                matmul={dtype: self._products(dtype) for dtype in DTYPES[self.device]},
                convolution=_rising([self._convolution(inputs, outputs, size, 1) for inputs, outputs, size in CONVOLUTIONS]),
                depthwise=_rising([self._convolution(channels, channels, size, channels) for channels, size in DEPTHWISE]),
                vector=self._vector(),
            )

    def _seconds(self, call: Callable[[], object]) -> float:
        """Time of one call (s) without what any op costs."""
        found = self._once(call)
        return max(found - self.launch, LEAST_WORK * found)

    def _once(self, call: Callable[[], object]) -> float:
        calls, repeated = (CALLS, _graph(call)) if self.device == "cuda" else (1, call)
        found = timed(repeated, self.device, budget=self.budget, least=FEWEST)
        self.spreads.append(found.spread)
        # What the machine attains: another program on it only adds time.
        return found.low / calls

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

    def _copy(self, numbers: int) -> float:
        source, target = torch.ones(numbers, device=self.device), torch.zeros(numbers, device=self.device)
        return 8.0 * numbers / self._seconds(lambda: target.copy_(source))

    def _products(self, dtype: str) -> Curve:
        return _rising([(2.0 * n**3, self._product(n, dtype)) for n in PRODUCTS[self.device]])

    def _product(self, n: int, dtype: str) -> float:
        one, other = (torch.randn(n, n, device=self.device).to(getattr(torch, dtype)) for _ in range(2))
        return 2.0 * n**3 / self._seconds(lambda: one @ other)

    def _convolution(self, inputs: int, outputs: int, size: int, groups: int) -> tuple[float, float]:
        """FLOPs, and FLOP/s."""
        layer = nn.Conv2d(inputs, outputs, 3, padding=1, groups=groups, bias=False).to(self.device)
        image = torch.randn(1, inputs, size, size, device=self.device)
        flops = 2.0 * outputs * size**2 * 9 * inputs / groups
        return flops, flops / self._seconds(lambda: layer(image))

    def _vector(self) -> float:
        numbers = 2**16 if self.device == "cpu" else 2**24
        values = torch.randn(numbers, device=self.device)
        return GELU_FLOPS * numbers / self._seconds(lambda: nn.functional.gelu(values))

    @property
    def spread(self) -> float:
        """The median spread of all benchmarks."""
        return median(self.spreads)


def _rising(points: list[tuple[float, float]]) -> Curve:
    return tuple(sorted(dict(points).items()))


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
