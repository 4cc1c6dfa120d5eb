"""The worked problems of rooflines that textbooks set, answered by the same formulas that count a model.

Each expected number stands beside the arithmetic that it comes from. The chips are written out with the problem's round figures where
those differ from the database's.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelstat.cost.record import Cost
from modelstat.cost.registry import cost_of
from modelstat.deploy.collectives import Collective, critical_inner
from modelstat.deploy.links import Link
from modelstat.hardware.database import find
from modelstat.hardware.gpu import Gpu
from modelstat.predict.fusion import fuse
from modelstat.predict.products import critical_rows, dot, product, products
from modelstat.predict.roofline import op_time
from tests.predict.sample import Writer

TPU = Gpu(key="v5e", name="TPU v5e", bandwidth_gbs=820, bf16_tensor=197)
TPU_INT8 = Gpu(key="v5e-int8", name="TPU v5e", bandwidth_gbs=810, int8_tensor=394)
H100 = Gpu(key="h100", name="H100 SXM", bandwidth_gbs=3350, bf16_tensor=989)
A100 = find("a100-sxm-40")  # fp32 19.5 TFLOP/s, 1555 GB/s
HUGE = 2**40


def intensity(cost: Cost) -> float:
    return cost.flops / cost.bytes


@pytest.mark.parametrize("length", [1, 1000, 10**9])
def test_dot_product(length: int) -> None:
    """2N FLOPs on 2N + 2N + 2 bytes: 1/2 in the limit, whatever the GPU."""
    found = intensity(cost_of(dot(length)))
    assert found == 2 * length / (2 * length + 2 * length + 2)
    assert found < 0.5
    assert intensity(cost_of(dot(HUGE))) == pytest.approx(0.5)


@given(rows=st.integers(1, 10**5), inner=st.integers(1, 10**5), columns=st.integers(1, 10**5))
def test_matmul(rows: int, inner: int, columns: int) -> None:
    """2BDF / (2BD + 2DF + 2BF) = BDF / (BD + DF + BF)."""
    expected = rows * inner * columns / (rows * inner + inner * columns + rows * columns)
    assert intensity(cost_of(product(rows, inner, columns))) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("peak", "bandwidth", "ridge"), [(197, 820, 240), (989, 3350, 295), (1000, 3350, 298)], ids=["tpu-v5e", "h100", "h100-rounded"]
)
def test_ridge_points(peak: float, bandwidth: float, ridge: int) -> None:
    """1.97e14 / 8.2e11 = 240.2; 9.89e14 / 3.35e12 = 295.2; 1e15 / 3.35e12 = 298.5."""
    chip = Gpu(key="x", name="x", bandwidth_gbs=bandwidth, bf16_tensor=peak)
    assert int(chip.ridge("bfloat16")) == ridge
    assert chip.ridge("bfloat16") == critical_rows(chip), "a bf16 matmul in the limit of large D and F: R x 2 / 2"


def test_bf16_matmul_on_a_tpu() -> None:
    """240.2 x 2 / (2 - 240.2 x 4 / 8192) = 255.2 rows at D = F = 8192."""
    assert critical_rows(TPU, 8192, 8192) == pytest.approx(255.2, abs=0.05)
    assert op_time(cost_of(product(255, 8192, 8192)), TPU).bound == "memory"
    assert op_time(cost_of(product(256, 8192, 8192)), TPU).bound == "compute"
    # At D = F = 240 even an endless number of rows has an intensity of D F / (D + F) = 120 only.
    assert critical_rows(TPU, 240, 240) is None


def test_a_tera_flop() -> None:
    """1e12 / 989.4e12 = 1.011 ms on an H100, 1e12 / 918e12 = 1.089 ms on a TPU v6e."""
    work = Cost(macs=5 * 10**11, flops=10**12, unit="matmul", dtype="bfloat16", family="matmul")
    assert op_time(work, find("h100-sxm")).ideal_seconds == pytest.approx(1.01e-3, rel=0.005)
    assert op_time(work, find("tpu-v6e")).ideal_seconds == pytest.approx(1.1e-3, rel=0.02)


@given(flops=st.integers(1, 10**18), moved=st.integers(1, 10**15))
def test_the_upper_bound_is_never_more_than_twice_the_lower(flops: int, moved: int) -> None:
    """a + b <= 2 max(a, b)."""
    time = op_time(Cost(flops=flops, read=moved, unit="matmul", dtype="bfloat16"), H100)
    assert time.ideal_seconds is not None
    assert time.upper_seconds is not None
    assert time.ideal_seconds <= time.upper_seconds <= 2 * time.ideal_seconds


def test_int8_times_int8() -> None:
    """2BDF / (BD + DF + BF) -> 2B in the limit, against 3.94e14 / 8.1e11 = 486.4: B = 486.4 x 1 / 2 = 243.2."""
    for rows in (1, 64, 512):
        assert intensity(cost_of(product(rows, HUGE, HUGE, left="int8"))) == pytest.approx(2 * rows)
    assert critical_rows(TPU_INT8, left="int8") == pytest.approx(243.2, abs=0.05)
    both = Gpu(key="both", name="both", bandwidth_gbs=820, bf16_tensor=197, int8_tensor=394)
    assert critical_rows(both, left="int8") == critical_rows(both), "half the bytes at twice the peak"


def test_int8_weights_with_bf16_activations() -> None:
    """Half the bytes of the weight at the same peak: 240.2 x 1 / 2 = 120.1 rows."""
    assert critical_rows(TPU, right="int8") == pytest.approx(120.1, abs=0.05)
    assert cost_of(product(8, 64, 64, right="int8")).dtype == "bfloat16", "the arithmetic stays in the activation's dtype"


@pytest.mark.parametrize(
    ("side", "crossing"),
    [(4096, 136.1), (1024, 226.3)],  # 240.2 / (2 - 240.2 x 4 / side)
)
def test_achieved_flops_over_the_batch(side: int, crossing: float) -> None:
    """Problem 3: FLOP/s of X[B, D] Y[D, F] with int8 weights for B = 1..512, and where the curve meets the peak."""
    assert critical_rows(TPU, side, side, right="int8") == pytest.approx(crossing, abs=0.05)
    previous = 0.0
    for rows in range(1, 513):
        cost = cost_of(product(rows, side, side, right="int8"))
        seconds = op_time(cost, TPU).ideal_seconds
        assert seconds is not None
        # Below the crossing 8.2e11 x 2BDD / (2BD + DD + 2BD), from there on the peak.
        moved = 2 * rows * side + side * side + 2 * rows * side
        expected = 197e12 if rows > crossing else 8.2e11 * 2 * rows * side * side / moved
        assert cost.flops / seconds == pytest.approx(expected)
        assert cost.flops / seconds >= previous * (1 - 1e-12)
        previous = cost.flops / seconds


@pytest.mark.parametrize("batch", [1, 64, 4096])
def test_a_matrix_of_its_own_for_each_sample(batch: int) -> None:
    """2BDF / (BD + BDF + BF) -> 2 in the limit: every weight is used once, so no batch makes it compute-bound."""
    cost = cost_of(products(batch, 4096, 4096))
    assert intensity(cost) == pytest.approx(2 * 4096**2 / (4096 + 4096**2 + 4096))
    assert intensity(cost_of(products(batch, HUGE, HUGE))) == pytest.approx(2.0)
    assert op_time(cost, TPU_INT8).bound == "memory"


def chain(length: int) -> Cost:
    """``length`` multiplications of a vector by itself, as one fused kernel."""
    net = Writer(2**20)
    made = net.input
    for _ in range(length):
        made = net.op("mul", made, made)
    trace, costs = net.trace(made)
    (kernel,) = fuse(trace, costs)
    return kernel.cost


def test_a_fused_chain_of_multiplications() -> None:
    """r FLOPs on 4 + 4 bytes: r / 8. Against the FMA peak it crosses at 8 x 19.5e12 / 1.555e12 = 100.3, without FMAs at 50.2."""
    for length in (1, 16, 100):
        assert intensity(chain(length)) == pytest.approx(length / 8)
    assert 8 * A100.ridge("float32") == pytest.approx(100.3, abs=0.05)
    assert 8 * A100.ridge("float32", "vector") == pytest.approx(50.2, abs=0.05)
    # Measurements turn between 32 and 64: element-wise work is held against the rate without FMAs.
    assert op_time(chain(32), A100).bound == "memory"
    assert op_time(chain(64), A100).bound == "compute"


def test_cosine_of_a_cosine() -> None:
    """Two kernels read and write N elements each, one fused kernel reads and writes them once: 4N against 2N."""
    net = Writer(10**6)
    made = net.op("cos", net.op("cos", net.input))
    trace, costs = net.trace(made)
    assert sum(cost.bytes for cost in costs) == 4 * 10**6 * 4
    (kernel,) = fuse(trace, costs)
    assert kernel.cost.bytes == 2 * 10**6 * 4


def test_a_matmul_split_over_two_chips() -> None:
    """D / 2 = peak / link: 2 x 1.97e14 / 4.5e10 = 8,755.6. Each chip computes 2B (D/2) F FLOPs and sends the 2BF bytes of its result."""
    ici = Link(4.5e10)
    assert critical_inner(1.97e14, ici) == pytest.approx(8755.6, abs=0.05)
    rows, columns = 128, 512
    exchange = Collective("all-reduce", 2 * rows * columns, 2)
    assert exchange.sent_bytes == 2 * rows * columns
    for inner, bound in ((8754, "comm"), (8756, "compute")):
        compute = cost_of(product(rows, inner // 2, columns)).flops / 1.97e14
        assert ("comm" if exchange.seconds(ici) > compute else "compute") == bound
