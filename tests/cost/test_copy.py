from __future__ import annotations

from typing import Any

import pytest

from modelstat.cost.registry import cost_of
from tests.cost.ops import op, tensor, unary


def test_a_concatenation_reads_and_writes_everything() -> None:
    cost = cost_of(op("aten::cat", {"tensors": [(2, 3), (5, 3)]}, (7, 3)))
    assert (cost.flops, cost.read, cost.write, cost.family) == (0, 4 * 21, 4 * 21, "copy")


def test_a_cast_reads_one_dtype_and_writes_another() -> None:
    cost = cost_of(op("aten::_to_copy", {"self": (10,)}, tensor((10,), "float16"), dtype="float32"))
    assert (cost.flops, cost.read, cost.write) == (0, 40, 20)


def test_copying_an_expanded_tensor_reads_what_is_there() -> None:
    cost = cost_of(op("aten::clone", {"self": tensor((8, 10), strides=(0, 1))}, (8, 10)))
    assert (cost.read, cost.write) == (40, 320)


def test_copy_does_not_read_its_destination() -> None:
    target = tensor((10, 4))
    cost = cost_of(op("aten::copy_", {"self": target, "src": (4,)}, target, mutates=("self",)))
    assert (cost.read, cost.write) == (16, 160)


@pytest.mark.parametrize(
    ("name", "read"), [("aten::zero_", 0), ("aten::fill_", 0), ("aten::normal_", 0), ("aten::uniform_", 0), ("aten::bernoulli_", 0)]
)
def test_fills_do_not_read_what_they_overwrite(name: str, read: int) -> None:
    target = tensor((10, 4))
    cost = cost_of(op(name, {"self": target}, target, mutates=("self",)))
    assert (cost.flops, cost.read, cost.write) == (0, read, 160)


def test_a_fill_reads_its_value() -> None:
    target = tensor((10, 4))
    assert cost_of(op("aten::fill_", {"self": target, "value": ()}, target, mutates=("self",))).read == 4


@pytest.mark.parametrize("name", ["new_zeros", "full_like", "ones_like", "zeros_like", "rand_like"])
def test_new_tensors_are_only_written(name: str) -> None:
    cost = cost_of(unary(f"aten::{name}", (6, 5)))
    assert (cost.read, cost.write) == (0, 120)


def test_arange_and_empty() -> None:
    assert cost_of(op("aten::arange", {}, tensor((10,), "int64"))).write == 80
    empty = cost_of(op("aten::empty", {}, (10,)))
    assert (empty.read, empty.write, empty.known) == (0, 0, "formula")


@pytest.mark.parametrize(
    ("name", "data", "output"),
    [
        ("aten::constant_pad_nd", (2, 6), (2, 9)), ("aten::reflection_pad2d", (1, 4, 4), (1, 6, 6)), ("aten::roll", (8, 8), (8, 8)),
        ("aten::repeat", (3,), (4, 3)), ("aten::pixel_shuffle", (1, 16, 4, 4), (1, 4, 8, 8)), ("aten::im2col", (1, 4, 6, 6), (1, 36, 36)),
        ("aten::tril", (5, 5), (5, 5)), ("aten::flip", (7,), (7,)),
    ],
)  # fmt: skip
def test_rearrangements_move_and_calculate_nothing(name: str, data: Any, output: Any) -> None:
    cost = cost_of(op(name, {"self": data}, output))
    assert (cost.flops, cost.read, cost.write) == (0, tensor(data).bytes, tensor(output).bytes)


def test_fold_adds_what_overlaps() -> None:
    cost = cost_of(op("aten::col2im", {"self": (1, 36, 36)}, (1, 4, 6, 6)))
    assert (cost.flops, cost.read, cost.write) == (36 * 36, 4 * 1296, 4 * 144)


def test_lists() -> None:
    targets = [tensor((3, 4)), tensor((5,))]
    cost = cost_of(op("aten::_foreach_zero_", {"self": targets}, mutates=("self",)))
    assert (cost.read, cost.write) == (0, 68)
