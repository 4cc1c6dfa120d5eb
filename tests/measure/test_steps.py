"""Steps of a profile and their mean."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelstat.measure.imports.record import MeasuredKernel
from modelstat.measure.matching import Match, Matching
from modelstat.measure.point import Ours
from modelstat.measure.steps import StepPoint, mean_point, step_points
from tests.measure.overlays import CONV_FLOPS, DATA, RELU_FLOPS, laid


def made(*times: tuple[float, ...], flops: float | None = None, unknown: tuple[MeasuredKernel, ...] = ()) -> list[StepPoint]:
    """Steps of one kernel an op; each op of ours has 10 FLOPs, 5 bytes, 2 s predicted and 1 s ideal."""
    matches = tuple(
        Match((op,), (MeasuredKernel(name="k", seconds=each, flops=flops, dram_bytes=flops),), step)
        for step, several in enumerate(times)
        for op, each in enumerate(several)
    )

    def ours(ops: object) -> Ours:
        count = len(list(ops))  # type: ignore[call-overload]
        return Ours(10 * count, 5 * count, 2.0 * count, 1.0 * count)

    return step_points(Matching("ops", matches, unknown), ours)


def test_a_step_is_the_time_of_all_its_kernels() -> None:
    lost = (MeasuredKernel(name="lost", seconds=1.0, step=1), MeasuredKernel(name="of no step", seconds=9.0))
    first, second = made((2.0, 2.0), (3.0, 3.0), unknown=lost)
    assert [each.point.seconds for each in (first, second)] == [4.0, 6.0 + 1.0]
    assert [each.point.rate for each in (first, second)] == [20 / 4, 20 / 7]
    assert first.point.error == 4.0 / 4.0 - 1


def test_the_mean_is_that_of_the_complete_steps() -> None:
    steps = made((2.0, 2.0), (4.0, 4.0), (100.0,))
    assert [step.complete for step in steps] == [True, True, False]
    mean = mean_point(steps)
    assert mean is not None
    assert (mean.name, mean.seconds, mean.flops, mean.rate, mean.predicted_seconds) == ("mean of 2 steps", 6.0, 20, 20 / 6, 4.0)
    assert mean_point([]) is None


@given(st.lists(st.tuples(*[st.floats(1e-6, 1e6)] * 3), min_size=1, max_size=8), st.floats(1, 1e12))
def test_the_rates_of_a_mean_lie_between_those_of_its_steps(times: list[tuple[float, ...]], flops: float) -> None:
    steps = made(*times, flops=flops)
    mean = mean_point(steps)
    assert mean is not None
    for field in ("rate", "bandwidth", "counted_rate", "counted_bandwidth"):
        rates = [getattr(step.point, field) for step in steps]
        assert min(rates) * (1 - 1e-9) <= getattr(mean, field) <= max(rates) * (1 + 1e-9)


def test_steps_of_a_trace_take_as_long_as_their_outermost_ops() -> None:
    events = json.loads(gzip.decompress((DATA / "torch_cpu.json.gz").read_bytes()))["traceEvents"]
    outermost = {"aten::conv2d", "aten::relu", "aten::adaptive_avg_pool2d", "aten::flatten", "aten::linear"}
    steps = sorted((each["ts"], each["ts"] + each["dur"]) for each in events if str(each.get("name")).startswith("ProfilerStep#"))
    expected = [sum(each["dur"] for each in events if each.get("name") in outermost and low <= each["ts"] <= high) for low, high in steps]
    found = laid("torch_cpu.json.gz").steps
    assert [step.point.seconds for step in found] == pytest.approx([each / 1e6 for each in expected])
    # Convolution, ReLU, a mean over 2 x 8 images of 32 x 32, and a linear layer of 8 x 10 with its bias.
    flops = CONV_FLOPS + RELU_FLOPS + 2 * 8 * 32 * 32 + 2 * (2 * 8 * 10 + 10)
    assert [step.point.flops for step in found] == [flops, flops]
    assert [step.point.rate for step in found] == pytest.approx([flops / (each / 1e6) for each in expected])
