"""Strides of channels-last, written out, and how far the layout travels."""

from __future__ import annotations

import pytest

from modelstat.predict.layout import channels_last
from modelstat.records import Trace
from tests.predict.sample import Writer


def last(trace: Trace, *families: str) -> list[list[tuple[int, ...]]]:
    """Strides of each op's inputs and outputs."""
    changed = channels_last(trace, families)
    before = [spec.bytes for op in trace.ops for spec in (*op.inputs, *op.outputs)]
    assert [spec.bytes for op in changed.ops for spec in (*op.inputs, *op.outputs)] == before, "a layout moves no byte more"
    return [[spec.strides for spec in (*op.inputs, *op.outputs)] for op in changed.ops]


@pytest.mark.parametrize(
    ("shape", "after"),
    [
        ((2, 3, 4, 5), (60, 1, 15, 3)),  # N x C x H x W: a pixel holds its 3 channels, a row 5 pixels
        ((2, 3, 4, 5, 6), (360, 1, 90, 18, 3)),
        ((2, 12, 5), (60, 5, 1)),  # no image
        ((2, 3, 0, 5), (0, 0, 5, 1)),  # empty
    ],
)
def test_only_images_change(shape: tuple[int, ...], after: tuple[int, ...]) -> None:
    net = Writer(*shape)
    trace, _ = net.trace(net.op("relu", net.input))
    assert last(trace, "activation") == [[after, after]]


def test_a_convolution_gives_the_layout_and_point_wise_ops_pass_it_on() -> None:
    net = Writer(2, 3, 4, 5)
    trace, costs = net.trace(net.op("relu", net.convolution(net.input, 8)))
    image, weight, made = (60, 1, 15, 3), (27, 1, 9, 3), (160, 1, 40, 8)  # of 2x3x4x5, 8x3x3x3 and 2x8x4x5
    assert last(trace, *(cost.family for cost in costs)) == [[image, weight, made], [made, made]]


def test_what_a_product_made_keeps_its_layout() -> None:
    net = Writer(2, 3, 4, 5)
    other = net.op("matmul", net.value("buffer", 2, 3, 4, 6), net.value("buffer", 2, 3, 6, 5), shape=(2, 3, 4, 5))
    trace, _ = net.trace(net.op("relu", other))
    assert last(trace, "matmul", "activation")[1] == [(60, 20, 5, 1)] * 2
