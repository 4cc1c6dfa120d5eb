"""Point-wise formulas: the literal table, its exceptions, and the copy of it in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from modelstat.cost.registry import cost_of
from modelstat.cost.table import ACTIVATIONS, COMPLEX_PER_ELEMENT, FOREACH, PER_ELEMENT
from tests.cost.ops import op, tensor, unary

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "counting.md"


@pytest.mark.parametrize(
    ("name", "flops"),
    [
        ("add", 1), ("mul", 1), ("maximum", 1), ("eq", 1), ("relu", 1), ("sigmoid", 4), ("silu", 5), ("tanh", 1), ("exp", 1), ("log", 1),
        ("sqrt", 1), ("rsqrt", 1), ("div", 1), ("hardswish", 5), ("hardtanh", 2), ("leaky_relu", 2), ("elu", 4), ("softplus", 5),
        ("mish", 4), ("lerp", 3), ("where", 0), ("masked_fill", 0), ("logical_and", 0), ("bitwise_xor", 0),
    ],
)  # fmt: skip
def test_flops_per_element(name: str, flops: int) -> None:
    for spelling in (f"aten::{name}", f"aten::{name}_"):
        cost = cost_of(unary(spelling, (2, 3, 5)))
        assert (cost.flops, cost.madd, cost.macs, cost.unit) == (30 * flops, 30 * flops, 0, "vector")


def test_gelu_by_its_approximation() -> None:
    assert cost_of(unary("aten::gelu", (10,))).flops == 5 * 10
    assert cost_of(unary("aten::gelu", (10,), approximate="none")).flops == 5 * 10
    assert cost_of(unary("aten::gelu", (10,), approximate="tanh")).flops == 9 * 10


def test_broadcasting_counts_the_result() -> None:
    cost = cost_of(op("aten::add", {"self": (4, 1), "other": (1, 6)}, (4, 6)))
    assert (cost.flops, cost.read, cost.write) == (24, 4 * (4 + 6), 4 * 24)


def test_factors_other_than_one() -> None:
    two = {"self": (8,), "other": (8,)}
    assert [cost_of(op("aten::add", two, (8,), alpha=alpha)).flops for alpha in (1, 2, 0.5)] == [8, 16, 16]
    three = {"self": (8,), "tensor1": (8,), "tensor2": (8,)}
    assert [cost_of(op("aten::addcmul", three, (8,), value=value)).flops for value in (1, 2)] == [16, 24]


def test_clamp_counts_the_sides_given() -> None:
    assert [
        cost_of(unary("aten::clamp", (8,), **sides)).flops for sides in ({"min": 0}, {"min": None, "max": 1}, {"min": 0, "max": 1})
    ] == [8, 8, 16]
    assert cost_of(op("aten::clamp", {"self": (8,), "min": (8,)}, (8,))).flops == 8


def test_glu_counts_the_half_that_comes_out() -> None:
    assert cost_of(op("aten::glu", {"self": (2, 10)}, (2, 5))).flops == 5 * 10


def test_comparisons_of_floats_count_and_of_integers_do_not() -> None:
    boolean = tensor((8,), "bool")
    assert cost_of(op("aten::lt", {"self": (8,), "other": (8,)}, boolean)).flops == 8
    assert cost_of(op("aten::lt", {"self": (8,), "other": (8,)}, boolean, dtype="int64")).flops == 0


@pytest.mark.parametrize(("name", "flops"), [("mul", 6), ("add", 2), ("div", 11), ("neg", 2), ("exp", 5)])
def test_complex_numbers(name: str, flops: int) -> None:
    cost = cost_of(unary(f"aten::{name}", (10,), dtype="complex64"))
    assert (cost.flops, cost.dtype, cost.read) == (10 * flops, "float32", 80)


def test_modulus_and_polar() -> None:
    assert cost_of(op("aten::abs", {"self": tensor((10,), "complex64")}, (10,))).flops == 40
    assert cost_of(op("aten::polar", {"abs": (10,), "angle": (10,)}, tensor((10,), "complex64"))).flops == 40


def test_lists_of_tensors() -> None:
    lists = [(3, 4), (5,)]
    both = op("aten::_foreach_add", {"self": lists, "other": lists}, *lists, alpha=1)
    assert cost_of(both).flops == 12 + 5
    targets = [tensor(shape) for shape in lists]
    in_place = op("aten::_foreach_mul_", {"self": targets}, mutates=("self",), scalar=2)
    assert (cost_of(in_place).flops, cost_of(in_place).read, cost_of(in_place).write) == (17, 68, 68)


def test_the_tables_are_consistent() -> None:
    assert set(ACTIVATIONS) <= set(PER_ELEMENT)
    assert set(FOREACH) <= set(PER_ELEMENT)
    assert set(COMPLEX_PER_ELEMENT) <= set(PER_ELEMENT)
    assert all(flops >= 0 for flops in PER_ELEMENT.values())


def documented(heading: str) -> dict[str, int]:
    """The rows ``| flops | names |`` of the table below a heading."""
    section = DOCUMENT.read_text(encoding="utf-8").split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", section, flags=re.MULTILINE)
    return {name: int(flops) for flops, names in rows for name in re.findall(r"`([^`]+)`", names)}


def test_the_documentation_has_the_same_numbers() -> None:
    assert documented("FLOPs per element") == PER_ELEMENT
    assert documented("Complex numbers") == COMPLEX_PER_ELEMENT
