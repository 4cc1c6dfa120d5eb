"""The tree of modules."""

from __future__ import annotations

import pytest

from modelstat.report.chart.view import views
from tests.report.chart.nets import analysis, deep, net
from tests.report.sample import CONV, RELU, net_trace


def test_a_module_holds_what_is_below_it() -> None:
    root, block, conv, act = views([net()])[0].nodes  # the idle one is left out
    assert [each.path for each in (root, block, conv, act)] == ["", "block", "block.conv", "block.act"]
    assert [each.parent for each in (root, block, conv, act)] == [-1, 0, 1, 1]
    assert block.flops == conv.flops + act.flops == CONV.flops + RELU.flops
    assert block.seconds == pytest.approx((conv.seconds or 0) + (act.seconds or 0))


def test_the_root_is_the_model() -> None:
    shown = views([analysis(deep(12))])[0]
    root = shown.nodes[0]
    assert (root.flops, root.bytes) == (shown.program.flops, shown.program.bytes)
    assert root.seconds == pytest.approx(shown.program.seconds)


def test_an_unknown_time_is_unknown_above_too() -> None:
    trace, _ = net_trace(precision="tf32")
    times = {node.path: node.seconds for node in views([analysis(trace)])[0].nodes}
    assert (times[""], times["block"], times["block.conv"]) == (None, None, None)
    assert times["block.act"] is not None
