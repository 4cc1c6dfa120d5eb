"""Contractions against torch's own registry, torch.utils.flop_counter, where that one is right."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import flop_registry

from modelstat.cost.registry import cost_of
from tests.cost.ops import op

size = st.integers(1, 12)
without_deadline = settings(max_examples=50, deadline=None)  # torch warms up in the first example
aten = torch.ops.aten


def oracle(name: str, *shapes: tuple[int, ...], **arguments: Any) -> int:
    """FLOPs of torch's formula; the last shape is the output's."""
    *inputs, output = [torch.empty(shape, device="meta") for shape in shapes]
    return int(flop_registry[getattr(aten, name)](*inputs, out_val=output, **arguments))


@without_deadline
@given(size, size, size, size)
def test_products(batch: int, rows: int, inner: int, columns: int) -> None:
    left, right, out = (rows, inner), (inner, columns), (rows, columns)
    lefts, rights, outs = (batch, *left), (batch, *right), (batch, *out)
    mm = cost_of(op("aten::mm", {"self": left, "mat2": right}, out))
    addmm = cost_of(op("aten::addmm", {"self": (columns,), "mat1": left, "mat2": right}, out))
    bmm = cost_of(op("aten::bmm", {"self": lefts, "mat2": rights}, outs))
    baddbmm = cost_of(op("aten::baddbmm", {"self": outs, "batch1": lefts, "batch2": rights}, outs))
    assert 2 * mm.macs == oracle("mm", left, right, out)
    assert 2 * addmm.macs == oracle("addmm", (columns,), left, right, out)
    assert 2 * bmm.macs == oracle("bmm", lefts, rights, outs)
    assert 2 * baddbmm.macs == oracle("baddbmm", outs, lefts, rights, outs)


@without_deadline
@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2),
    st.booleans(),
)  # fmt: skip
def test_convolutions(axes: int, groups: int, inputs: int, outputs: int, kernel: int, stride: int, dilation: int, transposed: bool) -> None:
    data = torch.empty((2, inputs * groups, *[9] * axes), device="meta")
    first, second = (inputs * groups, outputs) if transposed else (outputs * groups, inputs)
    weight = torch.empty((first, second, *[kernel] * axes), device="meta")
    geometry: list[Any] = [[stride] * axes, [0] * axes, [dilation] * axes, transposed, [0] * axes, groups]
    output = aten.convolution(data, weight, None, *geometry)
    cost = cost_of(
        op("aten::convolution", {"input": data.shape, "weight": weight.shape}, output.shape, transposed=transposed, groups=groups)
    )
    expected = flop_registry[aten.convolution](data, weight, None, *geometry, out_val=output)
    assert 2 * cost.macs == expected


@without_deadline
@given(size, size, size, size, size, size)
def test_attention(batch: int, heads: int, queries: int, keys: int, width: int, values: int) -> None:
    q, k, v, out = (
        (batch, heads, queries, width),
        (batch, heads, keys, width),
        (batch, heads, keys, values),
        (batch, heads, queries, values),
    )
    expected = oracle("_scaled_dot_product_flash_attention", q, k, v, out)
    for name in ("modelstat::attention", "aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_flash_attention_for_cpu"):
        assert 2 * cost_of(op(name, {"query": q, "key": k, "value": v}, out)).macs == expected
