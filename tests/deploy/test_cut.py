"""A split is a statement about places of a storage: every answer about a window is held against the places of its elements."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise, product
from math import prod

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from modelstat.deploy.cut import Cut, Split, cut_of, even, fitted, refined, split_of
from modelstat.records import TensorSpec, natural_strides


def spec(tensor: torch.Tensor) -> TensorSpec:
    return TensorSpec(tuple(tensor.shape), "float32", tuple(tensor.stride()), 0, int(tensor.storage_offset()))


def owner(place: int, split: Split) -> int:
    """Which GPU has the element at a place of a storage (32 bits an element)."""
    bits = place * 32 % split.period
    low, high = next((low, high) for low, high in pairwise(split.bounds) if low <= bits < high)
    return (bits - low) // ((high - low) // split.ways)


def owner_on_axis(index: int, cut: Cut) -> int:
    inside = index % cut.period
    low, high = next((low, high) for low, high in pairwise(cut.bounds) if low <= inside < high)
    return (inside - low) // ((high - low) // cut.ways)


@st.composite
def windows(draw: st.DrawFn) -> tuple[torch.Tensor, Split]:
    """A window on (batch, length, features), whose features are split, after some views of it."""
    ways = draw(st.sampled_from([2, 3]))
    parts = draw(st.sampled_from([1, 2, 3]))
    heads, size = ways * draw(st.sampled_from([1, 2])), draw(st.sampled_from([1, 2, 3]))
    base = torch.empty(draw(st.sampled_from([1, 2])), 2, parts * heads * size)
    made = cut_of(2, range(0, parts * heads * size + 1, heads * size), ways)
    assert made is not None
    split = split_of(spec(base), made)
    tensor = base
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["unflatten", "permute", "chunk", "narrow", "select", "flatten", "expand"]))
        axis = draw(st.integers(0, tensor.dim() - 1)) if tensor.dim() else 0
        if not tensor.dim():
            break
        length = tensor.shape[axis]
        if kind == "unflatten":
            factor = draw(st.sampled_from([one for one in range(1, length + 1) if length % one == 0]))
            tensor = tensor.unflatten(axis, (factor, length // factor))
        elif kind == "permute":
            tensor = tensor.permute(draw(st.permutations(range(tensor.dim()))))
        elif kind == "chunk":
            tensor = draw(st.sampled_from(tensor.chunk(draw(st.integers(1, 3)), axis)))
        elif kind == "narrow":
            start = draw(st.integers(0, length - 1))
            tensor = tensor.narrow(axis, start, draw(st.integers(1, length - start)))
        elif kind == "select":
            tensor = tensor.select(axis, draw(st.integers(0, length - 1)))
        elif kind == "expand":
            tensor = tensor.unsqueeze(axis).expand(*tensor.shape[:axis], 2, *tensor.shape[axis:])
        elif tensor.dim() > 1 and axis + 1 < tensor.dim():
            with suppress(RuntimeError):  # axes that do not follow each other in memory are no view
                tensor = tensor.view(*tensor.shape[:axis], length * tensor.shape[axis + 1], *tensor.shape[axis + 2 :])
    return tensor, split


def places(tensor: torch.Tensor) -> dict[tuple[int, ...], int]:
    """Index of each element -> its place in the storage."""
    return {
        index: int(tensor.storage_offset()) + sum(one * stride for one, stride in zip(index, tensor.stride(), strict=True))
        for index in product(*map(range, tensor.shape))
    }


@given(windows())
@settings(max_examples=300, deadline=None)
def test_the_axis_that_carries_a_split(case: tuple[torch.Tensor, Split]) -> None:
    """A cut says of every element where it is. Where there is none, no axis tells, or the GPUs have not as much of it each."""
    tensor, split = case
    cut = fitted(spec(tensor), split)
    where = {index: owner(place, split) for index, place in places(tensor).items()}
    if cut is not None:
        assert where == {index: owner_on_axis(index[cut.axis], cut) for index in where}
        return
    for axis in range(tensor.dim()):
        by_index: dict[int, set[int]] = {}
        for index, one in where.items():
            by_index.setdefault(index[axis], set()).add(one)
        found = [min(ones) for _, ones in sorted(by_index.items())]
        told = all(len(ones) == 1 for ones in by_index.values())
        period = split.period // 32
        step = tensor.stride(axis)
        # (Steps that do not divide the period hit one block or another by chance.)
        whole = step and period % step == 0 and step * tensor.shape[axis] % period == 0 and tensor.storage_offset() % period == 0
        assert not (told and whole and all(found.count(rank) == len(found) / split.ways for rank in range(split.ways)))


@given(windows())
@settings(max_examples=100, deadline=None)
def test_a_finer_layout_is_one_of_the_window(case: tuple[torch.Tensor, Split]) -> None:
    tensor, split = case
    found = refined(spec(tensor), split, split.ways)
    if found is None:
        return
    cut = fitted(spec(tensor), found)
    assert cut is not None
    assert {index: owner(place, found) for index, place in places(tensor).items()} == {
        index: owner_on_axis(index[cut.axis], cut) for index in places(tensor)
    }


@pytest.mark.parametrize(
    ("shape", "strides", "offset", "axis"),
    [
        ((2, 5, 12), (60, 12, 1), 0, 2),  # as it was made
        ((10, 12), (12, 1), 0, 1),  # rows flattened
        ((2, 5, 4, 3), (60, 12, 3, 1), 0, 2),  # heads
        ((2, 4, 5, 3), (60, 3, 12, 1), 0, 1),  # heads first
        ((2, 4, 5, 1), (60, 3, 12, 1), 2, 1),  # a slice inside of each head
        ((120,), (1,), 0, 0),  # flat: the blocks repeat, every GPU has its elements
        ((2, 5, 2, 6), (60, 12, 6, 1), 0, 2),
        ((2, 5, 6), (60, 12, 1), 0, None),  # the first half: half of the GPUs have all of it
        ((2, 5), (60, 12), 7, None),  # one feature
        ((2, 5, 3, 4), (60, 12, 4, 1), 0, None),  # thirds of 4, of which no GPU has whole ones
    ],
)
def test_views_of_split_features(shape: tuple[int, ...], strides: tuple[int, ...], offset: int, axis: int | None) -> None:
    """(2, 5, 12) whose 12 features are on two GPUs."""
    split = split_of(TensorSpec((2, 5, 12), "float32", (60, 12, 1), 0), even(2, 12, 2))
    cut = fitted(TensorSpec(shape, "float32", strides, 0, offset), split)
    assert (None if cut is None else cut.axis) == axis


def test_thirds_become_sections() -> None:
    """(4, 3 x 6) on two GPUs: the middle third asks for three sections, which are equal."""
    base = TensorSpec((4, 18), "float32", (18, 1), 0)
    split = split_of(base, even(1, 18, 2))
    third = TensorSpec((4, 6), "float32", (18, 1), 0, 6)
    assert fitted(third, split) is None
    found = refined(third, split, 2)
    assert found is not None
    assert found == Split(18 * 32, (0, 6 * 32, 12 * 32, 18 * 32), 2)
    assert fitted(third, found) == even(1, 6, 2)
    assert fitted(base, found) == even(1, 6, 2), "all three, one after another"


def test_weights_of_half_a_byte_have_places() -> None:
    weight = TensorSpec((8, 4), "int4", natural_strides((8, 4)), 0)
    split = split_of(weight, even(0, 8, 2))
    assert split.period == prod((8, 4, 4))
    assert fitted(weight, split) == even(0, 8, 2)
