"""Fused attention leaves its output as a GPU's kernel lays it out, so that what follows copies where it copies there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from modelstat.records import Op, Trace
from modelstat.trace.capture import capture
from tests.modes.counting import Call

B, H, L, E = 2, 3, 5, 8
"""Batch, heads, tokens and channels of a head."""

LAYOUTS: dict[str, Callable[[torch.dtype], Tensor]] = {
    "heads first": lambda dtype: torch.zeros(B, H, L, E, dtype=dtype),
    "heads of a token side by side": lambda dtype: torch.zeros(B, L, H, E, dtype=dtype).transpose(1, 2),
    "a third of one projection": lambda dtype: torch.zeros(B, L, 3, H, E, dtype=dtype).permute(2, 0, 3, 1, 4)[0],
    "tokens before the batch": lambda dtype: torch.zeros(L, B * H, E, dtype=dtype).transpose(0, 1).view(B, H, L, E),
    "one query for all": lambda dtype: torch.zeros(1, H, L, E, dtype=dtype).expand(B, H, L, E),
}
"""Queries of shape (B, H, L, E) as models make them."""


def attention_of(trace: Trace) -> Op:
    (op,) = (op for op in trace.ops if op.name == "modelstat::attention")
    return op


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[int, ...]:
    """Strides of the output in a trace, of a model that makes views of what it is given."""
    trace = capture(Call(lambda m, q, k, v, mask: F.scaled_dot_product_attention(q, k, v, mask)), (q, k, v, mask))
    return attention_of(trace).outputs[0].strides


@pytest.mark.parametrize("layout", LAYOUTS)
def test_half_precision_returns_the_layout_of_the_query(layout: str) -> None:
    """As torch's shape functions of the flash kernel and of cuDNN's have it."""
    query, other = LAYOUTS[layout](torch.float16), torch.zeros(B, H, 7, E, dtype=torch.float16)
    meta, keys = query.to("meta"), other.to("meta")
    flash = torch.ops.aten._scaled_dot_product_flash_attention(meta, keys, keys)[0]
    cudnn = torch.ops.aten._scaled_dot_product_cudnn_attention(meta, keys, keys, None, False)[0]
    assert attend(query, other, other) == flash.stride() == cudnn.stride()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("dtype", "masked"), [(torch.float32, False), (torch.float32, True), (torch.float16, True)])
def test_else_the_heads_of_a_token_lie_side_by_side(layout: str, dtype: torch.dtype, masked: bool) -> None:
    """As torch's shape function of the memory-efficient kernel has it, whatever the query looks like."""
    query, other = LAYOUTS[layout](dtype), torch.zeros(B, H, 7, E, dtype=dtype)
    mask = torch.zeros(L, 7, dtype=dtype) if masked else None
    efficient = torch.ops.aten._scaled_dot_product_efficient_attention(query.to("meta"), other.to("meta"), other.to("meta"), None, False)[0]
    assert attend(query, other, other, mask) == efficient.stride() == (L * H * E, E, H * E, 1)


def test_values_of_another_width_are_not_for_flash() -> None:
    q, v = torch.zeros(B, H, L, E, dtype=torch.float16), torch.zeros(B, H, L, 2 * E, dtype=torch.float16)
    assert attend(q, q, v) == (L * H * 2 * E, 2 * E, H * 2 * E, 1)


def copies(model: nn.Module, *inputs: Any) -> int:
    names = [op.name for op in capture(model.eval(), inputs).ops if not op.view]
    return sum(name in ("aten::clone", "aten::copy_") for name in names)


def joined(m: Any, q: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, q, q).transpose(1, 2).reshape(B, L, H * E)


@pytest.mark.parametrize(
    ("layout", "dtype", "expected"),
    [
        ("heads of a token side by side", torch.float16, 0),
        ("a third of one projection", torch.bfloat16, 0),
        ("a third of one projection", torch.float32, 0),
        # A query that was made contiguous comes back so, and its heads have to be brought together again; the other kernel does it itself.
        ("heads first", torch.float16, 1),
        ("heads first", torch.float32, 0),
    ],
)
def test_joining_the_heads_copies_only_where_they_lie_apart(layout: str, dtype: torch.dtype, expected: int) -> None:
    assert copies(Call(joined), LAYOUTS[layout](dtype)) == expected


@pytest.mark.parametrize(("dtype", "expected"), [(torch.float16, 0), (torch.float32, 1)])
def test_multi_head_attention_keeps_its_tokens_before_the_batch(dtype: torch.dtype, expected: int) -> None:
    """nn.MultiheadAttention takes q, k and v of (L, B, D) out of one projection, a copy, and joins the heads to (L, B, D) again."""
    layer = nn.MultiheadAttention(H * E, H).to(dtype)
    model = Call(lambda m, x: m.attention(x, x, x, need_weights=False)[0], attention=layer)
    assert copies(model, torch.zeros(L, B, H * E, dtype=dtype)) == 1 + expected
