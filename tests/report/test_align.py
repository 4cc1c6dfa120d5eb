"""Two variants of one architecture, aligned: every layer is accounted for once, and the differences sum to that of the totals."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelstat.report.compare_align import Change, Side, align
from modelstat.report.document import Document, build
from modelstat.report.rows import LayerRow, Own
from tests.report.sample import net_trace

BASE = build(*net_trace())

Leaf = tuple[str, str, int, int, int]
"""Path, type, channels in and out, and params."""


def net(*leaves: Leaf) -> Document:
    """A document with these leaves, whose MACs are ten times their params, and the containers that their paths name."""
    paths = {""} | {path.rsplit(".", depth)[0] for path, *_ in leaves for depth in range(1, path.count(".") + 1)}
    rows = [_row(path, "Sequential", 0, 0, sum(params for leaf, *_, params in leaves if _inside(leaf, path))) for path in paths]
    rows += [_row(path, kind, before, after, params, own=True) for path, kind, before, after, params in leaves]
    order = {path: place for place, (path, *_) in enumerate(leaves)}
    rows.sort(key=lambda row: (min((place for path, place in order.items() if _inside(path, row.path)), default=-1), row.depth))
    return msgspec.structs.replace(BASE, layers=tuple(rows), gpus=())


def _inside(path: str, parent: str) -> bool:
    return parent in ("", path) or path.startswith(f"{parent}.")


def _row(path: str, kind: str, before: int, after: int, params: int, *, own: bool = False) -> LayerRow:
    counts = Own(macs=10 * params, flops=20 * params, mem_read_bytes=4 * params, mem_write_bytes=after)
    return LayerRow(
        path=path, type=kind, depth=path.count(".") + 1 if path else 0, calls=1, dtype="float32", params=params, trainable_params=params,
        input_shapes=((1, before, 8, 8),), output_shapes=((1, after, 8, 8),), intensity=None, own=counts if own else Own(),
        macs=counts.macs, flops=counts.flops, madd=0, mem_read_bytes=counts.mem_read_bytes, mem_write_bytes=counts.mem_write_bytes,
    )  # fmt: skip


Told = tuple[str, str | None, str | None]
"""Status, path before and path after."""


def told(changes: Sequence[Change]) -> list[Told]:
    def path(side: Side | None) -> str | None:
        return None if side is None else side.path

    return [(each.status, path(each.before), path(each.after)) for each in changes]


CONV, ACT, HEAD = ("conv", "Conv2d", 3, 8, 216), ("act", "ReLU", 8, 8, 0), ("head", "Conv2d", 8, 10, 90)

CASES = {
    "nothing changed": (
        [CONV, ACT, HEAD],
        [CONV, ACT, HEAD],
        [("same", "conv", "conv"), ("same", "act", "act"), ("same", "head", "head")],
    ),
    "a layer is wider": (
        [CONV, ACT, HEAD],
        [("conv", "Conv2d", 3, 16, 432), ("act", "ReLU", 16, 16, 0), ("head", "Conv2d", 16, 10, 170)],
        [("changed", "conv", "conv"), ("changed", "act", "act"), ("changed", "head", "head")],
    ),
    "a layer became a module: one row, with all that is inside": (
        [CONV, ACT, HEAD],
        [("conv.primary", "Conv2d", 3, 4, 108), ("conv.cheap", "Conv2d", 4, 4, 36), ACT, HEAD],
        [("changed", "conv", "conv"), ("same", "act", "act"), ("same", "head", "head")],
    ),
    "a layer was added and one removed": (
        [CONV, ACT, HEAD],
        [CONV, ("norm", "BatchNorm2d", 8, 8, 16), ("head", "Conv2d", 8, 10, 90)],
        [("same", "conv", "conv"), ("changed", "act", "norm"), ("same", "head", "head")],
    ),
    "an inserted layer renames what is behind it in a Sequential": (
        [("0", "Conv2d", 3, 8, 216), ("1", "ReLU", 8, 8, 0), ("2", "Conv2d", 8, 10, 90)],
        [("0", "Conv2d", 3, 8, 216), ("1", "BatchNorm2d", 8, 8, 16), ("2", "ReLU", 8, 8, 0), ("3", "Conv2d", 8, 10, 90)],
        [("same", "0", "0"), ("added", None, "1"), ("moved", "1", "2"), ("moved", "2", "3")],
    ),
    "an inserted layer in a Sequential that was widened too": (
        [("0", "Conv2d", 3, 8, 216), ("1", "ReLU", 8, 8, 0), ("2", "Linear", 8, 10, 90)],
        [("0", "Conv2d", 3, 16, 432), ("1", "BatchNorm2d", 16, 16, 32), ("2", "ReLU", 16, 16, 0), ("3", "Linear", 16, 10, 170)],
        [("changed", "0", "0"), ("added", None, "1"), ("changed", "1", "2"), ("changed", "2", "3")],
    ),
    "a whole module has another name": (
        [("stem.conv", "Conv2d", 3, 8, 216), ("stem.act", "ReLU", 8, 8, 0), HEAD],
        [("entry.first", "Conv2d", 3, 8, 216), ("entry.act", "ReLU", 8, 8, 0), HEAD],
        [("moved", "stem", "entry"), ("same", "head", "head")],
    ),
    "layers that left a module": (
        [("a.conv", "Conv2d", 3, 8, 216), ("a.act", "ReLU", 8, 8, 0), ("a.norm", "BatchNorm2d", 8, 8, 16), HEAD],
        [("b.c.conv", "Conv2d", 3, 8, 216), ("b.d", "ReLU", 8, 8, 0), HEAD],
        [("moved", "a.conv", "b.c.conv"), ("moved", "a.act", "b.d"), ("removed", "a.norm", None), ("same", "head", "head")],
    ),
    "nothing in common": (
        [("a", "Conv2d", 3, 8, 216)],
        [("b", "Linear", 5, 6, 30), ("c", "Linear", 6, 7, 42)],
        [("removed", "a", None), ("added", None, "b"), ("added", None, "c")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "expected"), CASES.values(), ids=CASES)
def test_alignment(before: list[Leaf], after: list[Leaf], expected: list[Told]) -> None:
    assert sorted(told(align(net(*before), net(*after))), key=str) == sorted(expected, key=str)


def test_rows_are_in_the_order_of_the_new_variant() -> None:
    before, after, _ = CASES["an inserted layer renames what is behind it in a Sequential"]
    assert [each.after.path for each in align(net(*before), net(*after)) if each.after] == ["0", "1", "2", "3"]


def test_a_module_that_became_one_holds_what_is_inside() -> None:
    before, after, _ = CASES["a layer became a module: one row, with all that is inside"]
    change = align(net(*before), net(*after))[0]
    assert change.before is not None
    assert change.after is not None
    assert (change.before.type, change.before.params, change.after.type, change.after.params) == ("Conv2d", 216, "Sequential", 108 + 36)
    assert change.after.macs == 10 * (108 + 36)


def test_a_layer_that_never_ran_is_like_no_other() -> None:
    idle = [msgspec.structs.replace(row, calls=0, input_shapes=(), output_shapes=()) for row in net(("x", "Linear", 1, 1, 5)).layers]
    other = [msgspec.structs.replace(row, path=row.path and "y") for row in idle]
    before, after = (msgspec.structs.replace(BASE, layers=tuple(rows), gpus=()) for rows in (idle, other))
    assert sorted(told(align(before, after)), key=str) == [("added", None, "y"), ("removed", "x", None)]


NAMES = st.sampled_from(["a", "b", "0", "1", "2", "a.a", "a.b", "b.0", "b.1", "b.2"])
LEAVES = st.lists(
    st.tuples(NAMES, st.sampled_from(["Conv2d", "ReLU"]), st.integers(1, 2), st.integers(1, 2), st.integers(0, 9)), min_size=1, max_size=8
).map(lambda found: [leaf for leaf in {leaf[0]: leaf for leaf in found}.values() if not _is_parent(leaf[0], found)])


def _is_parent(path: str, leaves: Sequence[Leaf]) -> bool:
    return any(other.startswith(f"{path}.") for other, *_ in leaves)


@settings(deadline=None)
@given(LEAVES, LEAVES)
def test_every_layer_is_there_once_and_the_differences_sum_to_the_totals(before: list[Leaf], after: list[Leaf]) -> None:
    old, new = net(*before), net(*after)
    changes = align(old, new)
    for field in ("params", "macs", "flops"):
        for side, document in (("before", old), ("after", new)):
            total = sum(getattr(part, field) for each in changes if (part := getattr(each, side)) is not None)
            assert total == getattr(document.layers[0], field)
    assert all(each.status == "same" for each in align(old, old))
