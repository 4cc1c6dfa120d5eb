"""What must hold whatever the constants are fitted to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelstat.hardware.database import find
from modelstat.predict.kernels import (
    attention,
    batched_gemm,
    convolution,
    copy,
    elementwise,
    embedding,
    gather,
    gemm,
    generic,
    norm,
    pooling,
    reduction,
    rnn,
    softmax,
)
from modelstat.predict.kernels.constants import Constants, constants, table_of
from modelstat.predict.kernels.rates import Rates, rates

GPUS = st.sampled_from(["p4", "p100-pcie", "v100", "t4", "a100-pcie-40", "rtx-3090", "l4", "h100-sxm", "rtx-5090", "gtx-1080-ti", "mi300x"])
CASES = st.tuples(GPUS, st.sampled_from(["float32", "float16"]))
SIZE = st.integers(1, 8192).map(float)
SMALL = st.integers(1, 512).map(float)
FLAG = st.sampled_from([0.0, 1.0])
BYTES = st.integers(1, 1 << 32).map(float)
SLACK = 1 + 1e-9


@st.composite
def convolutions(draw: Any) -> convolution.Features:
    batch, side, kernel = draw(SMALL), draw(st.integers(1, 112)), draw(st.sampled_from([1, 3, 5]))
    groups, inner, outer = draw(st.sampled_from([1, 1, 32])), draw(SMALL), draw(SMALL)
    return convolution.Features(
        batch, batch * side**2, outer, inner * kernel**2, float(groups), float(kernel**2), float(side), float(side),
        float(kernel == 3 and groups == 1), 4 * batch * groups * inner * side**2, 4 * groups * inner * outer * kernel**2,
        4 * batch * groups * outer * side**2, draw(FLAG), draw(FLAG), 0.0, draw(FLAG) * 4 * batch * groups * inner * side**2,
    )  # fmt: skip


FORMULAS: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "elementwise": (elementwise, st.builds(elementwise.Features, BYTES, BYTES, BYTES)),
    "gemm": (gemm, st.builds(gemm.Features, SIZE, SIZE, SIZE, st.sampled_from([2.0, 4.0]), BYTES, st.sampled_from([0.25, 0.5, 1.0]))),
    "batched_gemm": (batched_gemm, st.builds(batched_gemm.Features, SMALL, SIZE, SIZE, SIZE, BYTES)),
    "attention": (
        attention,
        st.builds(attention.Features, SMALL, st.just(32.0), st.sampled_from([1.0, 8.0, 32.0]), SIZE, SIZE,
                  st.sampled_from([32.0, 64.0, 128.0, 256.0]), st.just(2.0), FLAG, FLAG, FLAG, BYTES, BYTES, FLAG),
    ),
    "convolution": (convolution, convolutions()),
    "norm": (norm, st.builds(norm.Features, SIZE, SIZE, BYTES, BYTES, FLAG, FLAG)),
    "softmax": (softmax, st.builds(softmax.Features, SIZE, SIZE, BYTES, BYTES)),
    "reduction": (reduction, st.builds(reduction.Features, BYTES, BYTES, BYTES, SIZE)),
    "pooling": (pooling, st.builds(pooling.Features, BYTES, BYTES, BYTES)),
    "copy": (copy, st.builds(copy.Features, BYTES, BYTES, FLAG)),
    "gather": (gather, st.builds(gather.Features, BYTES, BYTES, SIZE)),
    "embedding": (embedding, st.builds(embedding.Features, BYTES, BYTES, SIZE)),
    "rnn": (rnn, st.builds(rnn.Features, SMALL, BYTES, BYTES, BYTES)),
    "generic": (generic, st.builds(generic.Features, BYTES, BYTES, FLAG)),
}  # fmt: skip


def given_rates(case: tuple[str, str]) -> Rates:
    return rates(find(case[0]), case[1])


def constants_of(family: str, found: Rates) -> Constants:
    return constants(family, table_of(found.tensor))


@pytest.mark.parametrize("family", FORMULAS)
@settings(max_examples=60, deadline=None)
@given(data=st.data(), case=CASES, factor=st.floats(1.0, 8.0))
def test_more_bandwidth_is_never_slower(family: str, data: st.DataObject, case: tuple[str, str], factor: float) -> None:
    module, strategy = FORMULAS[family]
    features, found = data.draw(strategy), given_rates(case)
    faster = found._replace(bandwidth=found.bandwidth * factor, memory=found.memory * factor)
    c = constants_of(family, found)
    assert module.seconds(features, faster, c).total <= module.seconds(features, found, c).total * SLACK


@pytest.mark.parametrize("family", FORMULAS)
@settings(max_examples=60, deadline=None)
@given(data=st.data(), case=CASES, factor=st.floats(1.0, 8.0))
def test_a_higher_peak_is_never_slower(family: str, data: st.DataObject, case: tuple[str, str], factor: float) -> None:
    module, strategy = FORMULAS[family]
    features, found = data.draw(strategy), given_rates(case)
    faster = found._replace(issue=found.issue * factor, power=found.power * factor, vector=found.vector * factor)
    c = constants_of(family, found)
    assert module.seconds(features, faster, c).total <= module.seconds(features, found, c).total * SLACK


@pytest.mark.parametrize("family", FORMULAS)
@settings(max_examples=60, deadline=None)
@given(data=st.data(), case=CASES)
def test_a_time_is_positive_and_no_part_exceeds_it(family: str, data: st.DataObject, case: tuple[str, str]) -> None:
    module, strategy = FORMULAS[family]
    features, found = data.draw(strategy), given_rates(case)
    time = module.seconds(features, found, constants_of(family, found))
    assert 1e-6 < time.total < float("inf")
    assert time.compute >= 0
    assert time.memory >= 0


@pytest.mark.parametrize("family", FORMULAS)
@settings(max_examples=40, deadline=None)
@given(data=st.data(), case=CASES)
def test_floats_and_arrays_agree(family: str, data: st.DataObject, case: tuple[str, str]) -> None:
    module, strategy = FORMULAS[family]
    features, found = data.draw(strategy), given_rates(case)
    c = constants_of(family, found)
    numbers: dict[str, Any] = {name: np.array([value, value]) for name, value in found._asdict().items() if isinstance(value, float)}
    vectors = module.seconds(type(features)(*(np.array([value, value]) for value in features)), found._replace(**numbers), c)
    for one, two in zip(module.seconds(features, found, c), vectors, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-9)


@pytest.mark.parametrize(("family", "field"), [
    ("gemm", "m"), ("gemm", "n"), ("gemm", "k"), ("batched_gemm", "batch"), ("batched_gemm", "k"), ("norm", "rows"), ("softmax", "rows"),
    ("attention", "batch"), ("elementwise", "read"), ("copy", "written"), ("rnn", "steps"), ("convolution", "batch"),
])  # fmt: skip
@settings(max_examples=150, deadline=None)
@given(data=st.data(), case=CASES, factor=st.integers(1, 9))
def test_a_larger_problem_takes_no_less_time(family: str, field: str, data: st.DataObject, case: tuple[str, str], factor: int) -> None:
    module, strategy = FORMULAS[family]
    features, found = data.draw(strategy), given_rates(case)
    value = getattr(features, field)
    grown = features._replace(**{field: value * factor})
    if family in ("norm", "softmax"):
        grown = grown._replace(read=features.read * factor, written=features.written * factor)
    if family == "batched_gemm":
        grown = grown._replace(size=features.size * factor)
    if family == "convolution":
        grown = grown._replace(m=features.m * factor, data=features.data * factor, result=features.result * factor)
    c = constants_of(family, found)
    assert module.seconds(grown, found, c).total >= module.seconds(features, found, c).total / SLACK


@settings(max_examples=200, deadline=None)
@given(case=CASES, m=SIZE, n=SIZE, k=SIZE)
def test_a_product_is_not_faster_than_what_the_board_sustains(case: tuple[str, str], m: float, n: float, k: float) -> None:
    found = given_rates(case)
    item = 2.0 if found.tensor else 4.0
    time = gemm.seconds(gemm.Features(m, n, k, item, 0.0), found, constants_of("gemm", found))
    assert time.compute >= 2 * m * n * k / min(found.issue, found.power) / SLACK
    assert time.total >= time.compute / SLACK


@settings(max_examples=100, deadline=None)
@given(case=CASES, read=BYTES, written=BYTES)
def test_a_stream_beats_dram_only_out_of_the_cache(case: tuple[str, str], read: float, written: float) -> None:
    found = given_rates(case)
    time = elementwise.seconds(elementwise.Features(read, written, 0.0), found, constants_of("elementwise", found))
    if read + written > 4 * found.l2_bytes:
        assert time.total >= (read + written) / found.bandwidth


@settings(max_examples=100, deadline=None)
@given(case=CASES, features=convolutions())
def test_winograd_is_why_a_convolution_beats_the_peak(case: tuple[str, str], features: convolution.Features) -> None:
    found = given_rates(case)
    time = convolution.seconds(features, found, constants_of("convolution", found))
    ideal = 2 * features.groups * features.m * features.n * features.k / min(found.issue, found.power)
    thin = features.groups > 1  # summed on the vector lanes, held against their peak
    assert thin or time.compute >= ideal / (4.0 if features.winograd else 1.0) / SLACK
