"""The model's time: it adds up, and it moves the right way."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelstat.hardware.database import find
from modelstat.predict.execution import GRAPH_KERNEL_SECONDS, Execution
from modelstat.predict.kernels.dispatch import kernel_time
from modelstat.predict.prediction import Prediction, predict
from modelstat.predict.queue import simulate
from modelstat.predict.roofline import roofline
from modelstat.predict.variant import grown
from modelstat.report.prediction import REASONS, layer_predictions, op_predictions
from tests.predict.sample import Writer, block

GPUS = st.sampled_from(["p100-pcie", "v100", "t4", "a100-pcie-40", "rtx-3090", "l4", "h100-sxm", "rtx-4090"])
BLOCKS = st.builds(
    block,
    batch=st.integers(1, 64),
    channels=st.sampled_from([3, 16, 64, 256]),
    side=st.sampled_from([7, 14, 56, 112]),
    precision=st.sampled_from(["fp32", "tf32", "fp16"]),
)
EXECUTIONS = st.builds(
    Execution,
    mode=st.sampled_from(["eager", "compile"]),
    cuda_graph=st.booleans(),
    channels_last=st.booleans(),
    host_seconds=st.sampled_from([0.0, 11e-6, 45e-6]),
)
SLACK = 1 + 1e-9


def seconds(prediction: Prediction) -> float:
    assert prediction.seconds is not None
    return prediction.seconds


def supported(gpu: str, precision: str) -> str:
    """A GPU that has the precision's peak."""
    return "a100-pcie-40" if precision == "tf32" and gpu in ("p100-pcie", "v100", "t4") else gpu


def test_eager_time_is_the_timeline_of_the_kernels() -> None:
    trace, costs = block()
    gpu = find("v100")
    kernels = [kernel_time(op, cost, gpu).total for op, cost in zip(trace.ops, costs, strict=True)]
    assert seconds(predict(trace, costs, gpu)) == pytest.approx(simulate(kernels, 26e-6).total)
    graph = predict(trace, costs, gpu, Execution(cuda_graph=True))
    assert seconds(graph) == pytest.approx(sum(kernels) + 4 * GRAPH_KERNEL_SECONDS)
    assert graph.idle_seconds == pytest.approx(0.0, abs=1e-12)


def test_small_kernels_are_bound_by_the_host_and_large_ones_are_not() -> None:
    gpu = find("rtx-4090")
    small, large = predict(*block(side=7), gpu), predict(*block(batch=256), gpu)
    assert small.bound == "overhead"
    assert {op.bound for op in small.ops} == {"overhead"}
    assert seconds(small) == pytest.approx(4 * 26e-6, rel=0.2), "four ops, each issued 26 us after the one before"
    assert large.bound in {"compute", "memory"}


def test_half_is_where_overhead_begins() -> None:
    net = Writer(64, 1024)
    trace, costs = net.trace(net.op("relu", net.input))
    gpu = find("v100")
    kernel = kernel_time(trace.ops[0], costs[0], gpu).total
    assert predict(trace, costs, gpu, Execution(host_seconds=kernel * 1.01)).bound == "overhead"
    assert predict(trace, costs, gpu, Execution(host_seconds=kernel * 0.99)).bound != "overhead"


def test_a_missing_peak_is_a_prediction_without_times() -> None:
    missing = predict(*block(precision="tf32"), find("v100"))
    assert (missing.seconds, missing.low_seconds, missing.high_seconds, missing.idle_seconds, missing.bound) == (None,) * 5
    assert "tf32" in (missing.missing or "")


def test_what_runs_nothing_takes_no_time() -> None:
    nothing = predict(*Writer(1, 3).trace(), find("v100"))
    assert (nothing.seconds, nothing.kernels, nothing.bound) == (0.0, 0, None)


def test_views_run_no_kernel() -> None:
    net = Writer(4, 64)
    trace, costs = net.trace(net.op("relu", net.view(net.input, 64, 4)))
    prediction = predict(trace, costs, find("v100"))
    assert prediction.kernels == 1
    assert prediction.ops[0].total_seconds == 0.0


def test_outside_of_the_fit_the_interval_is_wider_and_says_why() -> None:
    trace, costs = block(batch=64)
    known, foreign = predict(trace, costs, find("v100")), predict(trace, costs, find("h100"))
    assert foreign.widening > known.widening
    assert any("took part in the fit" in note for note in foreign.notes)
    waiting = predict(*block(side=7), find("v100"))
    assert any("host" in note for note in waiting.notes)


@settings(max_examples=100, deadline=None)
@given(given_block=BLOCKS, name=GPUS, execution=EXECUTIONS)
def test_ops_and_waits_sum_to_the_total(given_block: tuple, name: str, execution: Execution) -> None:  # type: ignore[type-arg]
    trace, costs = given_block
    prediction = predict(trace, costs, find(supported(name, trace.precision)), execution)
    assert sum(op.total_seconds for op in prediction.ops) == pytest.approx(seconds(prediction))
    assert sum(op.wait_seconds for op in prediction.ops) == pytest.approx(prediction.idle_seconds, abs=1e-12)
    assert 0 < (prediction.low_seconds or 0) < (prediction.high_seconds or 0)
    assert prediction.kernels == len(trace.ops) if execution.mode == "eager" else prediction.kernels < len(trace.ops)


@settings(max_examples=100, deadline=None)
@given(given_block=BLOCKS, name=GPUS, execution=EXECUTIONS, factor=st.floats(1.0, 8.0))
def test_more_bandwidth_is_never_slower(given_block: tuple, name: str, execution: Execution, factor: float) -> None:  # type: ignore[type-arg]
    trace, costs = given_block
    gpu = find(supported(name, trace.precision))
    faster = msgspec.structs.replace(gpu, bandwidth_gbs=gpu.bandwidth_gbs * factor)
    assert seconds(predict(trace, costs, faster, execution)) <= seconds(predict(trace, costs, gpu, execution)) * SLACK


@settings(max_examples=100, deadline=None)
@given(
    channels=st.sampled_from([3, 16, 64, 256]), side=st.sampled_from([7, 14, 56]), batch=st.integers(1, 64), more=st.integers(1, 64),
    name=GPUS, execution=EXECUTIONS,
)  # fmt: skip
def test_a_larger_batch_never_takes_less(channels: int, side: int, batch: int, more: int, name: str, execution: Execution) -> None:
    gpu = find(name)
    small, large = (seconds(predict(*block(size, channels, side), gpu, execution)) for size in (batch, batch + more))
    assert large >= small / SLACK


@settings(max_examples=100, deadline=None)
@given(given_block=BLOCKS, name=GPUS, execution=EXECUTIONS)
def test_below_ideal_only_with_a_reason(given_block: tuple, name: str, execution: Execution) -> None:  # type: ignore[type-arg]
    trace, costs = given_block
    gpu = find(supported(name, trace.precision))
    ideal, prediction = roofline(trace, costs, gpu), predict(trace, costs, gpu, execution)
    rows = op_predictions(trace, costs, ideal, prediction)
    for row, time in zip(rows, ideal.ops, strict=True):
        assert row.seconds is not None
        assert (row.below_ideal is not None) == (row.seconds < (time.ideal_seconds or 0.0) * (1 - 1e-9))
        assert row.below_ideal in (None, *REASONS)
    (root,) = layer_predictions(trace, ideal, prediction, rows)
    assert root.seconds == pytest.approx(seconds(prediction))
    assert root.seconds is not None
    assert root.seconds >= (ideal.ideal_seconds or 0.0) * (1 - 1e-9) or root.below_ideal


@settings(max_examples=50, deadline=None)
@given(channels=st.sampled_from([3, 64]), side=st.sampled_from([7, 56]), batch=st.integers(2, 16), factor=st.integers(2, 16), name=GPUS)
def test_a_grown_trace_is_the_trace_of_the_larger_batch(channels: int, side: int, batch: int, factor: int, name: str) -> None:
    from modelstat.cost.registry import costs

    larger = grown(block(batch, channels, side)[0], factor)
    walked, counted = block(batch * factor, channels, side)
    assert larger.ops == walked.ops
    assert costs(larger) == counted
    assert [value.bytes for value in larger.values] == [value.bytes for value in walked.values]
