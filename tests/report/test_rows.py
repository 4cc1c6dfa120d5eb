"""Laws that hold for every tree of modules."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from modelstat.cost.record import Cost
from modelstat.hardware.database import find
from modelstat.predict.roofline import roofline
from modelstat.records import Module, Op, Parameter
from modelstat.report.document import build
from modelstat.report.layers import default_depth, leaves
from tests.report.sample import spec, trace

FIELDS = ("macs", "flops", "madd", "mem_read_bytes", "mem_write_bytes")
Work = tuple[int, int, int]


@st.composite
def works(draw: st.DrawFn) -> tuple[list[int], list[Work], list[tuple[int, int]]]:
    """A tree (parent of each module but the root), ops as (module, macs, bytes), parameters as (module, elements)."""
    parents = [draw(st.integers(0, index)) for index in range(draw(st.integers(0, 12)))]
    modules = st.integers(0, len(parents))
    ops = draw(st.lists(st.tuples(modules, st.integers(0, 10**12), st.integers(0, 10**9)), max_size=12))
    return parents, ops, draw(st.lists(st.tuples(modules, st.integers(1, 10**6)), max_size=6))


@given(works())
def test_own_sums_to_the_total_and_a_row_to_its_subtree(case: tuple[list[int], list[Work], list[tuple[int, int]]]) -> None:
    parents, ops, held = case
    modules = [Module("", "Root", 0, calls=1)]
    for index, parent in enumerate(parents, 1):
        above = modules[parent]
        modules.append(Module(f"{above.path}.m{index}".lstrip("."), "M", above.depth + 1, parent=parent, instance=index, calls=1))
    recorded = tuple(Op("odd::op", "", (), (), (spec(1, value=0),), module=module) for module, _, _ in ops)
    costs = tuple(
        Cost(macs=macs, flops=2 * macs + size, madd=2 * macs, read=size, write=size // 3, unit="matmul" if macs else "vector")
        for _, macs, size in ops
    )
    parameters = tuple(Parameter(f"p{index}", module, (size,), "float32") for index, (module, size) in enumerate(held))
    walked = trace(tuple(modules), recorded, parameters)
    document = build(walked, costs, [roofline(walked, costs, find("v100"))])
    for field in FIELDS:
        assert sum(getattr(row.own, field) for row in document.layers) == getattr(document.totals, field)
        assert getattr(document.layers[0], field) == getattr(document.totals, field)
        for row in document.layers:
            below = [each for each in document.layers if each is row or not row.path or each.path.startswith(f"{row.path}.")]
            assert getattr(row, field) == sum(getattr(each.own, field) for each in below)
    for row in document.layers:
        under = (size for module, size in held if not row.path or f"{modules[module].path}.".startswith(f"{row.path}."))
        assert row.params == sum(under)
    assert document.layers[0].params == document.totals.params
    holders = {each.path.rpartition(".")[0] for each in document.layers[1:]}
    assert {document.layers[index].path for index in leaves(document.layers)} == {row.path for row in document.layers} - holders
    deepest = max(row.depth for row in document.layers)
    assert 1 <= default_depth(document.layers) <= max(deepest, 1)
