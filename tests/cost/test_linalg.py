from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelstat.cost.linalg import chain_macs
from modelstat.cost.registry import cost_of
from tests.cost.ops import op


@pytest.mark.parametrize(
    ("name", "argument", "shape", "arguments", "flops"),
    [
        ("linalg_cholesky_ex", "self", (2, 30, 30), {}, 2 * 30**3 // 3),
        ("linalg_lu_factor_ex", "A", (30, 30), {}, 2 * 30**3 // 3),
        ("_linalg_det", "A", (30, 30), {}, 2 * 30**3 // 3),
        ("linalg_inv_ex", "A", (30, 30), {}, 2 * 30**3),
        ("linalg_qr", "A", (40, 30), {}, 2 * (2 * 30**2 * (3 * 40 - 30) // 3)),
        ("_linalg_svd", "A", (40, 30), {}, 14 * 40 * 30**2 + 8 * 30**3),
        ("_linalg_svd", "A", (40, 30), {"compute_uv": False}, 4 * 40 * 30**2 - 4 * 30**3 // 3),
        ("_linalg_eigh", "A", (30, 30), {}, 9 * 30**3),
        ("linalg_eig", "self", (30, 30), {}, 25 * 30**3),
    ],
)
def test_factorisations(name: str, argument: str, shape: Any, arguments: dict[str, Any], flops: int) -> None:
    cost = cost_of(op(f"aten::{name}", {argument: shape}, shape, **arguments))
    assert (cost.flops, cost.macs, cost.family) == (flops, 0, "linalg")


def test_solving() -> None:
    inputs = {"A": (30, 30), "B": (30, 4)}
    assert cost_of(op("aten::_linalg_solve_ex", inputs, (30, 4))).flops == 2 * 30**3 // 3 + 2 * 30 * 120
    assert cost_of(op("aten::linalg_solve_triangular", {"self": (30, 30), "B": (30, 4)}, (30, 4))).flops == 30 * 120


def test_a_chain_in_the_cheapest_order() -> None:
    cost = cost_of(op("aten::linalg_multi_dot", {"tensors": [(10, 100), (100, 5), (5, 50)]}, (10, 50)))
    assert cost.macs == 10 * 100 * 5 + 10 * 5 * 50


@given(st.lists(st.integers(1, 9), min_size=3, max_size=6))
def test_no_order_is_cheaper(sizes: list[int]) -> None:
    def one_order(order: tuple[int, ...]) -> int:
        left, macs = list(sizes), 0
        for inner in order:
            position = kept.index(inner)
            macs += left[position - 1] * left[position] * left[position + 1]
            del left[position], kept[position]
        return macs

    totals = []
    for order in permutations(range(1, len(sizes) - 1)):
        kept = list(range(len(sizes)))
        totals.append(one_order(order))
    assert chain_macs(tuple(sizes)) == min(totals)
