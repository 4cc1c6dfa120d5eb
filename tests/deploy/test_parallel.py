"""Several GPUs: shares, exchanges and times of traces written by hand."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from modelstat.cost.registry import costs as costs_of
from modelstat.deploy.collectives import Collective, Kind
from modelstat.deploy.links import HOP_SECONDS, START_SECONDS, Link, link
from modelstat.deploy.parallel import Layout, parallel
from modelstat.deploy.shards import shards
from modelstat.deploy.stages import stages
from modelstat.errors import UsageError
from modelstat.hardware.database import find
from modelstat.hardware.gpu import Gpu
from modelstat.predict.execution import Execution
from modelstat.predict.measured import Correction
from modelstat.predict.prediction import predict
from modelstat.predict.roofline import roofline
from modelstat.records import Parameter, Trace
from tests.predict.sample import Writer

CHIP = Gpu(key="chip", name="chip", bandwidth_gbs=1000, fp32=20, interconnect_gbs=100, memory_gb=1)
ROWS, WIDTH, HIDDEN = 64, 256, 1024


def block(depth: int = 1) -> Trace:
    """``depth`` times: a norm over the features, two products with relu between, and the sum with the input: fp32."""
    net = Writer(ROWS, WIDTH)
    made = net.input
    for _ in range(depth):
        weight = net.value("parameter", WIDTH)
        normed = net.op("native_layer_norm", made, weight, names=("input", "weight"), normalized_shape=[WIDTH])
        made = net.op("add", net.linear(net.op("relu", net.linear(normed, HIDDEN)), WIDTH), made)
    trace, _ = net.trace(made)
    parameters = tuple(
        Parameter(f"p{index}", 0, spec.shape, "float32", value=index, bytes=spec.bytes)
        for index, spec in enumerate(net.specs)
        if net.kinds[index] == "parameter"
    )
    values = tuple(
        msgspec.structs.replace(value, birth=_birth(trace, index), death=_death(trace, index)) for index, value in enumerate(trace.values)
    )
    return msgspec.structs.replace(trace, parameters=parameters, values=values)


def _birth(trace: Trace, value: int) -> int:
    return next((index for index, op in enumerate(trace.ops) if any(spec.value == value for spec in op.outputs)), -1)


def _death(trace: Trace, value: int) -> int:
    if trace.values[value].output:
        return len(trace.ops)
    return max(index for index, op in enumerate(trace.ops) if any(spec.value == value for spec in (*op.inputs, *op.outputs)))


@pytest.mark.parametrize(
    ("kind", "sent"),
    # a ring of 4: 3/4 of the tensor a round, and an all-reduce has two
    [("all-reduce", 1500.0), ("all-gather", 750.0), ("reduce-scatter", 750.0), ("send", 1000.0)],
)
def test_rings(kind: Kind, sent: float) -> None:
    one = Collective(kind, 1000, 4)
    assert one.sent_bytes == sent
    steps = {"all-reduce": 6, "send": 1}.get(kind, 3)
    assert one.seconds(Link(1e6, 1e-3, 1e-2)) == pytest.approx(sent / 1e6 + steps * 1e-3 + 1e-2)
    assert Collective(kind, 1000, 1).seconds(Link(1e6, 1e-3, 1e-2)) == 0.0


@pytest.mark.parametrize(
    ("name", "rate", "source"),
    [
        ("h100-sxm", 450e9, "interconnect, 900 GB/s in both directions together"),
        ("gaudi2", 300e9, "interconnect, 300 GB/s one way"),
        ("t4", 16 * 0.985e9, "PCIe 3.0 x16, as no interconnect is known"),
        ("rtx-4060", 8 * 1.969e9, "PCIe 4.0 x8, as no interconnect is known"),
    ],
)
def test_links(name: str, rate: float, source: str) -> None:
    found = link(find(name))
    assert found is not None
    assert found.bytes_per_second == pytest.approx(rate)
    assert found.source == source
    assert found.hop_seconds == HOP_SECONDS["PCIe" if "PCIe" in source else "interconnect"]


def test_several_without_a_link() -> None:
    trace = block()
    board = find("jetson-nano")
    assert link(board) is None
    with pytest.raises(UsageError, match="has neither interconnect nor PCIe in the database"):
        parallel(trace, costs_of(trace), board, Layout(tensor=2))
    assert parallel(trace, costs_of(trace), board, Layout(data=2)).comm_seconds == 0.0, "replicas of inference exchange nothing"


def test_bounds() -> None:
    """The largest of the three sides, their sum, and which it is."""
    trace = block()
    costs = costs_of(trace)
    found = parallel(trace, costs, CHIP, Layout(tensor=2))
    local = shards(trace, costs, 2)
    compute = sum(cost.flops / (20e12 if cost.unit == "matmul" else 10e12) for cost in local.costs)
    memory = sum(cost.bytes for cost in local.costs) / 1e12
    # 50 GB/s each way: half of 100; all-reduce on two sends the tensor once, in 2 steps
    comm = 4 * ROWS * WIDTH / 50e9 + 2 * HOP_SECONDS["interconnect"] + START_SECONDS
    assert (found.compute_seconds, found.memory_seconds, found.comm_seconds) == pytest.approx((compute, memory, comm))
    assert found.lower_seconds == max(found.compute_seconds, found.memory_seconds, found.comm_seconds)
    assert found.upper_seconds == pytest.approx(compute + memory + comm)
    assert found.bound == "comm"
    assert parallel(trace, costs, CHIP, Layout(data=4)).bound == "memory", "64 rows are near the ridge; norm, relu and sum tip it"


@pytest.mark.parametrize("layout", [Layout(), Layout(tensor=2), Layout(pipeline=2), Layout(tensor=2, pipeline=2, data=3)])
@pytest.mark.parametrize("execution", [Execution(), Execution("compile", cuda_graph=True)])
def test_what_is_predicted(layout: Layout, execution: Execution) -> None:
    """One GPU's part of every op, with its interval, and then the exchanges."""
    trace, gpu = block(), find("a100-sxm-80")
    costs = costs_of(trace)
    found = parallel(trace, costs, gpu, layout, execution)
    local = shards(trace, costs, layout.tensor)
    part = predict(local.trace, local.costs, gpu, execution)
    assert None not in (part.seconds, part.low_seconds, part.high_seconds)
    expected = [seconds + found.comm_seconds for seconds in (part.seconds, part.low_seconds, part.high_seconds) if seconds is not None]
    assert [found.predicted_seconds, found.low_seconds, found.high_seconds] == pytest.approx(expected)
    assert (found.comm_seconds > 0.0) == (layout.tensor * layout.pipeline > 1)
    twice = parallel(trace, costs, gpu, layout, execution, measured=Correction(2.0, 0.15, "measured"))
    assert part.seconds is not None
    assert twice.predicted_seconds == pytest.approx(2.0 * part.seconds + found.comm_seconds)


def test_gradients_of_replicas() -> None:
    trace = block()
    found = parallel(trace, costs_of(trace), CHIP, Layout(data=4), training=True)
    assert found.gradient == Collective("all-reduce", 4 * (2 * WIDTH * HIDDEN + WIDTH), 4)


def test_a_stage_reduces_its_own_gradients() -> None:
    trace = block(8)
    costs = costs_of(trace)
    found = parallel(trace, costs, CHIP, Layout(data=2, pipeline=4), training=True)
    whole = sum(one.bytes for one in trace.parameters if one.trainable and one.kind == "parameter")
    assert sum(stage.trainable_bytes for stage in found.stages) == whole
    assert found.gradient is not None
    assert found.gradient.bytes == max(stage.trainable_bytes for stage in found.stages) < whole


def test_stages_are_balanced() -> None:
    trace = block(8)
    costs = costs_of(trace)
    seconds = [float(cost.macs) / 1e12 for cost in costs]
    parts = stages(trace, costs, seconds, 4, Link(1e15))
    assert parts[0].first == 0
    assert parts[-1].last == len(trace.ops) - 1
    assert all(one.last + 1 == other.first for one, other in pairwise(parts))
    assert sum(part.flops for part in parts) == sum(cost.flops for cost in costs)
    # Sixteen equal products on four GPUs: four each.
    assert [sum(costs[index].macs > 0 for index in range(part.first, part.last + 1)) for part in parts] == [4, 4, 4, 4]
    assert sum(part.weight_bytes for part in parts) == sum(one.bytes for one in trace.parameters)
    # Cuts are between blocks, where only the residual crosses.
    assert [part.sent_bytes for part in parts] == [4 * ROWS * WIDTH] * 3 + [0]


def test_a_slow_link_moves_the_cut() -> None:
    """Cutting inside a block sends HIDDEN features beside the residual: a slow link is cut between blocks."""
    trace = block(8)
    costs = costs_of(trace)
    seconds = [float(cost.macs) / 1e12 for cost in costs]
    parts = stages(trace, costs, seconds, 2, Link(1e10))
    assert parts[0].sent_bytes == 4 * ROWS * WIDTH


def test_more_stages_than_ops() -> None:
    trace = block()
    with pytest.raises(UsageError, match="--pipeline 9: hand has only 5 ops that take time"):
        parallel(trace, costs_of(trace), CHIP, Layout(pipeline=9))


def test_a_pipeline_of_halves() -> None:
    trace = block(8)
    costs = costs_of(trace)
    found = parallel(trace, costs, CHIP, Layout(pipeline=2))
    assert len(found.stages) == 2
    assert found.comm_seconds == pytest.approx(Collective("send", found.stages[0].sent_bytes, 2).seconds(Link(50e9, 0.6e-6, 6.6e-6)))
    # The slower half with everything overlapped.
    times = roofline(trace, costs, CHIP).ops
    halves = []
    for stage in found.stages:
        mine = times[stage.first : stage.last + 1]
        halves.append(max(sum(one.compute_seconds or 0.0 for one in mine), sum(one.memory_seconds for one in mine)))
    assert found.throughput == pytest.approx(ROWS / max(halves))
    assert max(halves) <= max(stage.seconds for stage in found.stages)


@pytest.mark.parametrize("layout", [Layout(tensor=0), Layout(pipeline=-1), Layout(data=0)])
def test_layouts_that_are_none(layout: Layout) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        layout.check()
