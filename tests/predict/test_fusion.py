"""Kernels of a compiled model, from traces written by hand; bytes are products."""

from __future__ import annotations

from modelstat.predict.fusion import fuse, role
from tests.predict.sample import Writer, block

IMAGE = 4 * 64 * 56 * 56
"""Bytes of 1x64x56x56 in fp32."""


def test_convolution_stays_and_what_follows_is_one_kernel() -> None:
    trace, costs = block()
    first, second = fuse(trace, costs)
    assert (first.ops, second.ops) == ((0,), (1, 2, 3))
    assert first.cost == costs[0]
    # The convolution's result, the skip connection and four vectors of BatchNorm are read once; only the sum is written.
    assert second.cost.read == 2 * IMAGE + 4 * 4 * 64
    assert second.cost.write == IMAGE
    assert second.cost.flops == sum(cost.flops for cost in costs[1:])
    assert second.cost.bytes < sum(cost.bytes for cost in costs[1:])


def test_a_softmax_takes_in_its_scale_and_mask() -> None:
    net = Writer(8, 128, 128)
    scaled = net.op("mul", net.input)
    masked = net.op("add", scaled, net.value("buffer", 128, 128))
    made = net.op("_softmax", masked, dim=-1, half_to_float=False)
    trace, costs = net.trace(made)
    (kernel,) = fuse(trace, costs)
    assert kernel.ops == (0, 1, 2)
    assert kernel.lead == 2, "a reduction is timed as one"
    assert (kernel.cost.read, kernel.cost.write) == (4 * (8 * 128 * 128 + 128 * 128), 4 * 8 * 128 * 128)


def test_a_view_in_between_does_not_part_a_chain() -> None:
    net = Writer(4, 64, 64)
    flat = net.view(net.op("relu", net.input), 4, 64 * 64)
    made = net.op("sigmoid", flat)
    trace, costs = net.trace(made)
    (kernel,) = fuse(trace, costs)
    assert kernel.ops == (0, 2)
    assert (kernel.cost.read, kernel.cost.write) == (4 * 4 * 64 * 64,) * 2


def test_no_kernel_waits_for_itself() -> None:
    """The sum needs the product, which needs relu: it cannot run in relu's kernel, though it reads what sigmoid wrote there."""
    net = Writer(64, 256)
    kept = net.op("relu", net.input)
    made = net.op("add", net.op("sigmoid", kept), net.linear(kept, 256))
    trace, costs = net.trace(made)
    kernels = fuse(trace, costs)
    assert [kernel.ops for kernel in kernels] == [(0, 1), (2,), (3,)]
    assert kernels[0].cost.write == 2 * 4 * 64 * 256, "relu's result for the product, sigmoid's for the sum"


def test_a_sum_joins_the_branch_that_ends_last() -> None:
    net = Writer(64, 256)
    skipped = net.op("relu", net.input)
    made = net.op("add", skipped, net.op("sigmoid", net.linear(skipped, 256)))
    trace, costs = net.trace(made)
    assert [kernel.ops for kernel in fuse(trace, costs)] == [(0,), (1,), (2, 3)]


def test_a_small_op_after_a_reduction_is_a_kernel_of_its_own() -> None:
    net = Writer(8, 64, 28, 28)
    mean = net.op("mean", net.op("relu", net.input), shape=(8, 64), dim=[2, 3])
    made = net.op("sigmoid", mean)
    trace, costs = net.trace(made)
    assert [kernel.ops for kernel in fuse(trace, costs)] == [(0, 1), (2,)]


def test_every_op_is_in_exactly_one_kernel() -> None:
    trace, costs = block(batch=2, channels=8, side=14)
    held = [index for kernel in fuse(trace, costs) for index in kernel.ops]
    assert sorted(held) == [index for index, (op, cost) in enumerate(zip(trace.ops, costs, strict=True)) if role(op, cost) != "free"]


def test_batch_norm_reduces_only_in_training() -> None:
    trace, costs = block()
    assert [role(op, cost) for op, cost in zip(trace.ops, costs, strict=True)] == ["opaque", "pointwise", "pointwise", "pointwise"]
