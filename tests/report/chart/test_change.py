"""Arrows from before to after."""

from __future__ import annotations

import msgspec

from modelstat.records import Module, Op
from modelstat.report.chart.change import changes, documents_changes
from tests.report.chart.nets import analysis
from tests.report.sample import CONV, RELU, conv_op, net_trace, spec


def test_nothing_changed() -> None:
    document = analysis(net_trace()[0]).document
    assert [change.path for change in changes(document, document)] == [""]
    assert documents_changes([document]) == ()


def test_a_layer_that_another_one_replaced() -> None:
    """The ReLU becomes a Block of a convolution: one arrow, at the layer, not at its child nor at its parent."""
    trace, _ = net_trace()
    before = analysis(trace).document
    block = Module("block.act", "Ghost", 2, parent=1, leaf=False, instance=3, calls=1)
    child = Module("block.act.primary", "Conv2d", 3, parent=3, instance=9, calls=1)
    modules = (*trace.modules[:3], block, trace.modules[4], child)
    ops = (trace.ops[0], conv_op(5), *trace.ops[2:])
    after = analysis(msgspec.structs.replace(trace, modules=modules, ops=ops)).document
    whole, layer = changes(before, after)
    assert (whole.path, layer.path) == ("", "block.act")
    assert layer.before is not None
    assert layer.after is not None
    assert (layer.before.type, layer.before.flops, layer.after.type, layer.after.flops) == ("ReLU", RELU.flops, "Ghost", CONV.flops)
    assert layer.after.intensity == CONV.flops / CONV.bytes
    assert layer.after.seconds is not None
    assert layer.after.rate == CONV.flops / layer.after.seconds


def test_what_is_only_in_one_model_has_one_state() -> None:
    trace, _ = net_trace()
    larger = msgspec.structs.replace(
        trace,
        modules=(*trace.modules, Module("more", "ReLU", 1, parent=0, instance=7, calls=1)),
        ops=(*trace.ops, Op("aten::relu", "default", (spec(8, value=5),), ("self",), (spec(8, value=6),), module=5)),
    )
    found = changes(analysis(trace).document, analysis(larger).document)
    assert [(change.path, change.before is None, change.after is None) for change in found] == [("", False, False), ("more", True, False)]
    back = changes(analysis(larger).document, analysis(trace).document)
    assert [(change.path, change.before is None, change.after is None) for change in back] == [("", False, False), ("more", False, True)]
