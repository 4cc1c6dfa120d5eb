"""Precision plans on traces written by hand: bytes are products of shapes and item sizes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from modelstat.cost.registry import costs
from modelstat.deploy.plan import Plan, Rule, make_plan
from modelstat.deploy.quantized import planned
from modelstat.errors import ModelFileError, UsageError
from modelstat.hardware.gpu import Gpu
from modelstat.memory.peak import weight_bytes
from modelstat.predict.prediction import predict
from modelstat.predict.products import critical_rows
from modelstat.predict.roofline import roofline
from modelstat.records import Module, Op, Parameter, TensorSpec, Trace
from tests.predict.sample import Writer

CHIP = Gpu(key="chip", name="chip", bandwidth_gbs=820, bf16_tensor=197, int8_tensor=394, fp32=20, sms=80, boost_mhz=1500)
SIDE = 4096


def net(rows: int, *, tied: bool = False, side: int = SIDE) -> Trace:
    """Two linear layers with relu in between, in bf16; ``tied``: an addition reads the second weight too."""
    writer = Writer(rows, side, dtype="bfloat16")
    first = writer.op("relu", writer.linear(writer.input, side))
    second = writer.linear(first, side)
    if tied:
        writer.op("add", writer.ops[-1].inputs[1].value, writer.ops[-1].inputs[1].value)
    trace, _ = writer.trace(second, precision="bf16")
    weights = [op.inputs[1].value for op in trace.ops if op.name == "aten::mm"]
    modules = (*trace.modules, Module("first", "Linear", 1, parent=0), Module("second", "Linear", 1, parent=0))
    parameters = tuple(
        Parameter(f"{modules[1 + index].path}.weight", 1 + index, (side, side), "bfloat16", value=value, bytes=2 * side**2)
        for index, value in enumerate(weights)
    )
    return msgspec.structs.replace(trace, modules=modules, parameters=parameters)


@pytest.mark.parametrize(
    ("weights", "group", "size"),
    [
        ("int8", None, SIDE * SIDE + 2 * SIDE),  # one byte a weight, 2 B of scale an output
        ("fp8", None, SIDE * SIDE + 4 * SIDE),
        ("int4", None, SIDE * SIDE // 2 + 4 * SIDE * SIDE // 128),
        ("int4", 32, SIDE * SIDE // 2 + 4 * SIDE * SIDE // 32),
        ("nf4", None, SIDE * SIDE // 2 + 4 * SIDE * SIDE // 64),
    ],
)
def test_weights_shrink_and_arithmetic_stays(weights: str, group: int | None, size: int) -> None:
    before, after = net(8), planned(net(8), Plan(Rule(weights, group=group)))
    assert weight_bytes(after) == 2 * size
    for old, new in zip(costs(before), costs(after), strict=True):
        assert (new.flops, new.macs, new.dtype, new.unit, new.write) == (old.flops, old.macs, old.dtype, old.unit, old.write)
        assert old.read - new.read == (2 * SIDE * SIDE - size if old.macs else 0)


@pytest.mark.parametrize(
    ("weights", "group", "size"),
    [
        ("int8", None, 512 * 256 + 2 * 512),  # one byte a weight, 2 B of scale for each of 512 outputs
        ("int4", 64, 512 * 256 // 2 + 4 * 512 * 256 // 64),
    ],
)
@pytest.mark.parametrize("rows", [True, False])
def test_a_slice_of_a_weight_comes_with_its_own_scales(weights: str, group: int | None, size: int, rows: bool) -> None:
    """Three products each read a third of a weight of 3 x 512 outputs with 256 products each, or half of two products' inputs.

    A third has a third of the scales. A half of the inputs has half of the groups, and of an output's only scale all.
    """
    writer = Writer(8, 256, dtype="bfloat16")
    parts, shape = (3, (512, 256)) if rows else (2, (512, 256))
    weight = writer.value("parameter", *((3 * 512, 256) if rows else (512, 512)))
    whole = writer.specs[weight]
    for part in range(parts):
        offset = part * 512 * 256 if rows else part * 256
        window = TensorSpec(shape[::-1], "bfloat16", whole.strides[::-1], weight, offset)
        made = writer.value("activation", 8, 512)
        writer.ops.append(Op("aten::mm", "default", (writer.specs[writer.input], window), ("self", "mat2"), (writer.specs[made],)))
    trace, _ = writer.trace(made, precision="bf16")
    parameter = Parameter("first.weight", 0, whole.shape, "bfloat16", value=weight, bytes=whole.bytes)
    after = planned(msgspec.structs.replace(trace, parameters=(parameter,)), Plan(Rule(weights, group=group)))
    assert [cost.read for cost in costs(after)] == [2 * 8 * 256 + size] * parts
    assert weight_bytes(after) == parts * size


def test_only_the_layers_of_a_pattern() -> None:
    after = planned(net(8), Plan(Rule("int8"), (("first", Rule()),)))
    assert [one.dtype for one in after.parameters] == ["bfloat16", "int8"]
    assert "in 1 layers" in after.notes[-1]


def test_int8_activations_take_the_int8_peak() -> None:
    """What relu leaves is read by a product alone, so it is written in one byte; the model's input stays as it was given."""
    before, after = net(8), planned(net(8), Plan(Rule("int8", "int8")))
    counted = costs(after)
    assert [cost.dtype for cost in counted] == ["int8", "bfloat16", "int8"]
    assert counted[0].read == 2 * 8 * SIDE + SIDE * SIDE + 2 * SIDE
    assert counted[1].write == 8 * SIDE
    assert counted[2].read == 8 * SIDE + SIDE * SIDE + 2 * SIDE
    fast, slow = roofline(after, counted, CHIP), roofline(before, costs(before), CHIP)
    assert fast.ops[2].compute_seconds == pytest.approx((slow.ops[2].compute_seconds or 0.0) / 2)


@pytest.mark.parametrize(
    ("rule", "share"),
    [(Rule("int8"), 0.5), (Rule("int8", "int8"), 1.0)],
    ids=["weights", "weights-and-activations"],
)
def test_the_critical_batch(rule: Rule, share: float) -> None:
    """Weight-only int8 halves the batch from which on a layer is compute-bound; int8 activations leave it, in the limit of wide layers."""
    wide = 2**17
    limit = critical_rows(CHIP)
    assert limit is not None
    bounds = {}
    for rows in (round(limit * share * 0.95), round(limit * share * 1.05)):
        trace = planned(net(rows, side=wide), Plan(rule))
        bounds[rows] = roofline(trace, costs(trace), CHIP).ops[2].bound
    assert list(bounds.values()) == ["memory", "compute"]


def test_what_something_else_reads_stays() -> None:
    after = planned(net(8, tied=True), Plan(Rule("int8")))
    assert [one.dtype for one in after.parameters] == ["int8", "bfloat16"]


def test_a_prediction_knows_the_bytes() -> None:
    """One row times a matrix waits for the weights: half of them take about half the time."""
    before, after = net(1), planned(net(1), Plan(Rule("int8")))
    slow, fast = (predict(each, costs(each), CHIP) for each in (before, after))
    assert fast.ops[0].memory_seconds == pytest.approx(slow.ops[0].memory_seconds / 2, rel=0.02)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Rule("int4", group=100), "groups of 100: first sums 4096 products an output, which 100 does not divide: give --group 256"),
        (Rule(), "none is quantised"),
    ],
)
def test_plans_that_cannot_be(rule: Rule, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        planned(net(8), Plan(rule))


def test_a_pattern_that_matches_nothing() -> None:
    with pytest.raises(UsageError, match=r"'thrid' matches no layer of hand with a weight: they are called first, second"):
        planned(net(8), Plan(Rule("int8"), (("thrid", Rule()),)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "int3"}, "choose from int8, int4, fp8, nf4"),
        ({"activations": "int8"}, "int8 activations go with int8, int4, nf4 weights, not by themselves"),
        ({"weights": "fp8", "activations": "int8"}, "not with fp8 ones"),
        ({"group": 64}, "a group size is one of quantised weights"),
        ({"weights": "int4", "group": 0}, "a group of 0 weights"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_plan(**options)  # type: ignore[arg-type]


def test_no_options_make_no_plan() -> None:
    assert make_plan() is None


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text("weights: int4\ngroup: 64\nlayers:\n  head: none\n  'mlp.*': {weights: int8, activations: int8}\n")
    plan = make_plan(file=str(file))
    assert plan is not None
    assert plan.rule == Rule("int4", group=64)
    assert plan.layers == (("head", Rule()), ("mlp.*", Rule("int8", "int8")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- int8", "a precision plan is a mapping"),
        ("weights: int3", "the plan: weights 'int3'"),
        ("layers: {head: {bits: 4}}", "head: unknown key 'bits'"),
        ("layers: {head: 4}", "4 is no rule"),
        ("weights: [", "is not YAML"),
        ("weights: int4\ngroup: many", "'many' weights is no whole number"),
    ],
)
def test_mistakes_in_a_file(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(text)
    with pytest.raises(ModelFileError, match=message):
        make_plan(file=str(file))
    with pytest.raises(ModelFileError, match="cannot be read"):
        make_plan(file=str(tmp_path / "absent.yaml"))
