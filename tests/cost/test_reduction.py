from __future__ import annotations

import pytest

from modelstat.cost.registry import cost_of
from tests.cost.ops import op, tensor


@pytest.mark.parametrize(
    "name", ["sum", "mean", "amax", "argmax", "var", "std", "prod", "linalg_vector_norm", "any", "cumsum", "max", "min"]
)
def test_one_per_input_element(name: str) -> None:
    cost = cost_of(op(f"aten::{name}", {"self": (4, 8, 10)}, (4, 8), dim=[2]))
    assert (cost.flops, cost.read, cost.write, cost.family) == (320, 1280, 128, "reduction")


def test_maximum_of_two() -> None:
    assert cost_of(op("aten::max", {"self": (4, 1), "other": (1, 6)}, (4, 6))).flops == 24


def test_integers_are_summed_for_free() -> None:
    assert cost_of(op("aten::sum", {"self": (10,)}, (), dtype="int64")).flops == 0


def test_a_trace_reads_a_diagonal() -> None:
    cost = cost_of(op("aten::trace", {"self": (5, 9)}, ()))
    assert (cost.flops, cost.read) == (5, 20)


def test_distances() -> None:
    pairs = {"x1": (2, 5, 3), "x2": (2, 7, 3)}
    assert cost_of(op("aten::_cdist_forward", pairs, (2, 5, 7))).flops == 3 * 2 * 5 * 7 * 3
    euclidean = cost_of(op("aten::_euclidean_dist", pairs, (2, 5, 7)))
    assert (euclidean.macs, euclidean.flops) == (70 * 5, 2 * 350 + 2 * 70 + 2 * (30 + 42))
    assert cost_of(op("aten::_pdist_forward", {"self": (5, 3)}, (10,))).flops == 3 * 10 * 3


def test_norms_of_a_list() -> None:
    assert cost_of(op("aten::_foreach_norm", {"self": [(3, 4), (5,)]}, (), ())).flops == 17


def test_complex_sums_count_both_parts() -> None:
    assert cost_of(op("aten::sum", {"self": tensor((10,), "complex64")}, tensor((), "complex64"))).flops == 20
