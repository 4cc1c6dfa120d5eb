"""Times are quotients that a reader can recompute: FLOPs over a peak, bytes over a bandwidth."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelstat.cost.record import FREE, Cost, Unit
from modelstat.hardware.database import find
from modelstat.hardware.gpu import Gpu
from modelstat.predict.roofline import OpTime, bound, layer_times, roofline
from modelstat.records import TRACE_SCHEMA, Module, Op, Parameter, Trace, Value

V100 = find("v100")  # fp32 14.0 TFLOP/s, fp16 112 TFLOP/s, vector 7.0 TFLOP/s, 900 GB/s, 32 GiB


def trace(modules: Sequence[int] = (), *, precision: str = "fp32", weight_bytes: int = 0, input_bytes: int = 0) -> Trace:
    """A root with two children, the second of which has a child; ``modules`` says where each op ran."""
    return Trace(
        schema=TRACE_SCHEMA,
        model="table",
        inputs=(),
        outputs=(),
        batch=None,
        precision=precision,
        run="fake",
        training=False,
        modules=(
            Module("", "Net", 0),
            Module("a", "Conv2d", 1, parent=0),
            Module("b", "Block", 1, parent=0),
            Module("b.c", "Linear", 2, parent=2),
        ),
        parameters=(Parameter("weight", 1, (weight_bytes // 4,), "float32", bytes=weight_bytes),),
        values=(Value(input_bytes, "input", -1, len(modules)),),
        ops=tuple(Op("aten::op", "default", (), (), (), module=module) for module in modules),
    )


def conv(dtype: str = "float32", macs: int = 7_000_000_000, size: int = 900_000_000) -> Cost:
    return Cost(macs=macs, flops=2 * macs, read=size, unit="matmul", dtype=dtype, family="convolution")


def relu(flops: int = 7_000_000, size: int = 1_800_000_000, dtype: str = "float32") -> Cost:
    return Cost(flops=flops, read=size // 2, write=size // 2, unit="vector", dtype=dtype, family="activation")


def test_one_contraction() -> None:
    result = roofline(trace([1]), [conv()], V100)
    # 14e9 FLOP / 14e12 FLOP/s = 1 ms; 0.9e9 B / 900e9 B/s = 1 ms
    assert result.ops == (OpTime(14e9 / 14e12, 0.9e9 / 900e9),)
    assert result.ideal_seconds == pytest.approx(1e-3)
    assert result.upper_seconds == pytest.approx(2e-3)
    assert result.whole_model_seconds == pytest.approx(1e-3)
    assert result.bound == "compute"
    assert result.ridge == 14e12 / 900e9
    assert result.attainable_flops == pytest.approx(14e12)
    assert result.peak == V100.peak("float32")
    assert result.missing is None


def test_sums_of_two_ops() -> None:
    costs = [conv(macs=14_000_000_000, size=900_000_000), relu()]
    result = roofline(trace([1, 3]), costs, V100)
    # convolution: 28e9 / 14e12 = 2 ms against 1 ms; relu: 7e6 / 7e12 = 1 us against 1.8e9 / 900e9 = 2 ms
    assert [op.bound for op in result.ops] == ["compute", "memory"]
    assert result.compute_seconds == pytest.approx(2e-3 + 1e-6)
    assert result.memory_seconds == pytest.approx(1e-3 + 2e-3)
    assert result.ideal_seconds == pytest.approx(2e-3 + 2e-3)
    assert result.upper_seconds == pytest.approx(2e-3 + 1e-6 + 3e-3)
    # the whole model once: 28.007e9 FLOP / 14e12 = 2.0005 ms against 2.7e9 B / 900e9 = 3 ms
    assert result.whole_model_seconds == pytest.approx(3e-3)
    assert result.bound == "memory"
    assert result.attainable_flops == pytest.approx(28.007e9 / 2.7e9 * 900e9)


@pytest.mark.parametrize(
    ("dtype", "unit", "flops_per_second"),
    [
        ("float32", "matmul", 14e12),
        ("float16", "matmul", 112e12),
        ("float64", "matmul", 7e12),
        ("float32", "vector", 14e12 / 2),
        ("float16", "vector", 14e12 / 2),
        ("float64", "vector", 7e12 / 2),
    ],
)
def test_dtype_and_unit_pick_the_peak(dtype: str, unit: Unit, flops_per_second: float) -> None:
    result = roofline(trace([1]), [Cost(flops=10**9, unit=unit, dtype=dtype)], V100)
    assert result.ops[0].compute_seconds == 1e9 / flops_per_second


def test_free_ops_take_nothing_and_copies_their_bytes() -> None:
    copy = Cost(read=450_000_000, write=450_000_000, unit="none", family="copy")
    unknown = Cost(read=900_000_000, unit="vector", family="unknown", known="unknown")
    result = roofline(trace([0, 0, 0]), [FREE, copy, unknown], V100)
    assert result.ops == (OpTime(0.0, 0.0), OpTime(0.0, 1e-3), OpTime(0.0, 1e-3))
    assert [op.bound for op in result.ops] == [None, "memory", "memory"]
    assert result.ideal_seconds == pytest.approx(2e-3)


def test_most_macs_decide_the_peak_of_the_model() -> None:
    costs = [conv("float32", macs=10), conv("float16", macs=6), conv("float16", macs=5), relu(flops=10**9)]
    result = roofline(trace([0] * 4, precision="fp32"), costs, V100)
    assert result.peak == V100.peak("float16")


def test_without_macs_the_precision_decides_the_peak() -> None:
    result = roofline(trace([0], precision="amp-fp16"), [relu()], V100)
    assert result.peak == V100.peak("float16")
    empty = roofline(trace(), [], V100)
    assert (empty.ideal_seconds, empty.whole_model_seconds, empty.bound, empty.attainable_flops) == (0, 0, None, None)


def test_without_macs_a_missing_peak_leaves_the_times_of_the_ops() -> None:
    result = roofline(trace([0], precision="bf16"), [relu(dtype="bfloat16")], V100)
    assert result.missing is None
    assert result.peak is None
    assert result.ideal_seconds == pytest.approx(2e-3)
    assert result.whole_model_seconds is None
    assert any("bf16_tensor" in note for note in result.notes)


def test_tf32_is_a_precision_of_float32_contractions() -> None:
    a100 = find("a100")  # tf32 156 TFLOP/s, fp32 19.5 TFLOP/s
    costs = [conv(), relu(), conv("float64")]
    result = roofline(trace([0, 0, 0], precision="tf32"), costs, a100)
    assert result.ops[0].compute_seconds == 14e9 / 156e12
    assert result.ops[1].compute_seconds == 7e6 / (19.5e12 / 2)
    assert result.ops[2].compute_seconds == 14e9 / 19.5e12
    assert result.peak is not None
    assert result.peak.column == "tf32"
    assert roofline(trace([0], precision="fp32"), [conv()], a100).ops[0].compute_seconds == 14e9 / 19.5e12
    assert "tf32" in (roofline(trace([0], precision="tf32"), [conv()], V100).missing or "")


def test_a_missing_contraction_peak_makes_every_total_unknown_and_none_zero() -> None:
    t = trace([1, 3])
    result = roofline(t, [conv("bfloat16"), relu()], V100)
    assert result.missing is not None
    assert "bf16_tensor" in result.missing
    assert "V100" in result.missing
    totals = (result.compute_seconds, result.memory_seconds, result.ideal_seconds, result.upper_seconds, result.whole_model_seconds)
    assert totals == (None,) * 5
    assert (result.peak, result.bound, result.attainable_flops, result.ridge) == (None, None, None, None)
    assert result.ops[0].compute_seconds is None
    assert (result.ops[0].ideal_seconds, result.ops[0].upper_seconds, result.ops[0].bound) == (None, None, None)
    assert result.ops[1].ideal_seconds == pytest.approx(2e-3)
    layers = layer_times(t, result)
    assert [layer.ideal_seconds is None for layer in layers] == [True, True, False, False]


def test_a_minor_contraction_without_peak_is_enough() -> None:
    result = roofline(trace([0, 0]), [conv(), conv("bfloat16", macs=1)], V100)
    assert result.ideal_seconds is None
    assert result.whole_model_seconds is None
    assert "bfloat16" in (result.missing or "")
    assert result.peak == V100.peak("float32")


def test_without_a_vector_peak_only_bytes_count_and_it_is_said() -> None:
    tpu = find("tpu-v4")  # bf16 275 TFLOP/s, 1200 GB/s, no vector peak
    result = roofline(trace([0, 0], precision="bf16"), [conv("bfloat16"), relu(flops=10**12, dtype="bfloat16")], tpu)
    assert result.missing is None
    assert result.ops == (OpTime(14e9 / 275e12, 0.9e9 / 1200e9), OpTime(0.0, 1.8e9 / 1200e9))
    assert result.ideal_seconds == pytest.approx(0.9e9 / 1200e9 + 1.8e9 / 1200e9)
    assert len(result.notes) == 1
    assert "bytes only" in result.notes[0]
    assert "TPU v4" in result.notes[0]


@pytest.mark.parametrize(
    ("name", "weight_bytes", "input_bytes", "fits"),
    [
        ("v100", 0, 0, True),
        ("v100", int(0.95 * 32 * 2**30), 0, True),
        ("v100", int(0.95 * 32 * 2**30) + 4, 0, False),
        ("v100", int(0.95 * 32 * 2**30) - 4, 4, True),
        ("v100", int(0.95 * 32 * 2**30), 4, False),
        ("m1 max", 4, 4, None),
    ],
)
def test_the_peak_fits_in_95_percent_of_the_memory(name: str, weight_bytes: int, input_bytes: int, fits: bool | None) -> None:
    result = roofline(trace(weight_bytes=weight_bytes, input_bytes=input_bytes), [], find(name))
    assert result.fits is fits
    assert result.fits_basis == "peak memory"


def test_layer_times_include_what_is_below() -> None:
    costs = [conv(), relu(), relu(size=900_000_000), conv(macs=14_000_000_000)]
    t = trace([1, 2, 3, 0])
    result = roofline(t, costs, V100)
    root, a, b, c = layer_times(t, result)
    assert a.ideal_seconds == pytest.approx(1e-3)
    assert c.ideal_seconds == pytest.approx(1e-3)
    assert b.ideal_seconds == pytest.approx(2e-3 + 1e-3)
    assert root.ideal_seconds == pytest.approx(1e-3 + 3e-3 + 2e-3)
    assert root.ideal_seconds == pytest.approx(result.ideal_seconds)
    assert root.compute_seconds == pytest.approx(result.compute_seconds)
    assert root.memory_seconds == pytest.approx(result.memory_seconds)
    assert root.bound == result.bound
    assert (a.bound, b.bound, c.bound) == ("compute", "memory", "memory")


@pytest.mark.parametrize(
    ("compute", "memory", "expected"),
    [(2.0, 1.0, "compute"), (1.0, 2.0, "memory"), (1.0, 1.0, "compute"), (0.0, 0.0, None), (None, 1.0, None), (1.0, None, None)],
)
def test_bound(compute: float | None, memory: float | None, expected: str | None) -> None:
    assert bound(compute, memory) == expected


costs_of_a_model = st.lists(
    st.builds(
        lambda macs, flops, read, write, unit, dtype: Cost(
            macs=macs if unit == "matmul" else 0, flops=2 * macs + flops if unit == "matmul" else flops, read=read, write=write, unit=unit,
            dtype=dtype,
        ),
        st.integers(0, 10**12), st.integers(0, 10**9), st.integers(0, 10**10), st.integers(0, 10**10),
        st.sampled_from(["matmul", "vector", "none"]), st.sampled_from(["float32", "float16", "float64"]),
    ),
    max_size=6,
)  # fmt: skip


def gpu(fp32: float, bandwidth: float) -> Gpu:
    return find(f"fp32={fp32!r},fp16={2 * fp32!r},fp64={fp32 / 2!r},bandwidth={bandwidth!r}GB/s")


@given(costs_of_a_model, st.floats(1, 100), st.floats(10, 5000), st.floats(1, 10))
def test_a_faster_gpu_never_takes_longer(costs: list[Cost], fp32: float, bandwidth: float, factor: float) -> None:
    t = trace([0] * len(costs))
    base = roofline(t, costs, gpu(fp32, bandwidth))
    for faster in (gpu(fp32, bandwidth * factor), gpu(fp32 * factor, bandwidth)):
        other = roofline(t, costs, faster)
        assert base.ideal_seconds is not None
        assert other.ideal_seconds is not None
        assert other.ideal_seconds <= base.ideal_seconds * (1 + 1e-9)


@given(costs_of_a_model, st.floats(1, 100), st.floats(10, 5000))
def test_ideal_lies_between_its_sides_and_their_sum(costs: list[Cost], fp32: float, bandwidth: float) -> None:
    t = trace([index % 4 for index in range(len(costs))])
    result = roofline(t, costs, gpu(fp32, bandwidth))
    assert result.compute_seconds is not None
    assert result.memory_seconds is not None
    assert result.ideal_seconds is not None
    assert result.upper_seconds is not None
    slack = 1 + 1e-9
    assert max(result.compute_seconds, result.memory_seconds) <= result.ideal_seconds * slack
    assert result.ideal_seconds <= result.upper_seconds * slack <= 2 * result.ideal_seconds * slack**2
    root, first, block, _ = layer_times(t, result)
    assert root.ideal_seconds == pytest.approx(result.ideal_seconds)
    assert first.ideal_seconds is not None
    assert block.ideal_seconds is not None
    assert first.ideal_seconds + block.ideal_seconds <= root.ideal_seconds * slack  # type: ignore[operator]
