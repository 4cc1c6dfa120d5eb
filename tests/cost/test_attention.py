from __future__ import annotations

from typing import Any

import pytest

from modelstat.cost.attention import attention_macs, causal_pairs
from modelstat.cost.registry import cost_of
from tests.cost.ops import op, tensor


def qkv(
    heads: int = 4, queries: int = 32, keys: int = 32, width: int = 16, values: int = 16, kv_heads: int | None = None
) -> dict[str, Any]:
    kv_heads = kv_heads or heads
    return {"query": (1, heads, queries, width), "key": (1, kv_heads, keys, width), "value": (1, kv_heads, keys, values)}


def test_the_full_square_even_when_causal() -> None:
    plain = cost_of(op("modelstat::attention", qkv(), (1, 4, 32, 16), is_causal=False))
    causal = cost_of(op("modelstat::attention", qkv(), (1, 4, 32, 16), is_causal=True))
    scores = 4 * 32 * 32
    assert plain == causal
    assert plain.macs == scores * (16 + 16)
    assert plain.flops == 2 * scores * 32 + scores * (5 + 1)
    assert plain.activations == scores + 4 * 32 * 16
    assert plain.madd == plain.flops - plain.activations
    assert (plain.read, plain.write) == (3 * 4 * 4 * 32 * 16, 4 * 4 * 32 * 16)
    assert (plain.unit, plain.family) == ("matmul", "attention")


def test_what_is_strictly_needed() -> None:
    assert attention_macs(1, 4, 32, 32, 16, 16) == 4 * 32 * 32 * 32
    assert attention_macs(1, 4, 32, 32, 16, 16, causal_half=True) == 4 * (32 * 33 // 2) * 32


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (5, 5), (3, 8), (8, 3)])
def test_causal_pairs_are_a_sum_over_rows(queries: int, keys: int) -> None:
    assert causal_pairs(queries, keys) == sum(min(row + 1, keys) for row in range(queries))


def test_grouped_queries_share_bytes_but_not_work() -> None:
    cost = cost_of(
        op("modelstat::attention", qkv(heads=8, queries=1, keys=128, width=8, values=8, kv_heads=2), (1, 8, 1, 8), enable_gqa=True)
    )
    assert cost.macs == 8 * 1 * 128 * (8 + 8)
    assert cost.read == 4 * (8 * 8 + 2 * 2 * 128 * 8)


def test_values_of_another_width_mask_and_dropout() -> None:
    inputs = {**qkv(queries=10, keys=20, width=16, values=24), "attn_mask": (10, 20)}
    cost = cost_of(op("modelstat::attention", inputs, (1, 4, 10, 24), dropout_p=0.1))
    scores = 4 * 10 * 20
    assert (cost.macs, cost.flops) == (scores * 40, 2 * scores * 40 + scores * (6 + 1 + 2))


@pytest.mark.parametrize(
    "name",
    [
        "aten::scaled_dot_product_attention", "aten::_scaled_dot_product_flash_attention_for_cpu",
        "aten::_scaled_dot_product_flash_attention",
        "aten::_scaled_dot_product_efficient_attention", "aten::_scaled_dot_product_cudnn_attention",
        "aten::_scaled_dot_product_attention_math", "aten::_scaled_dot_product_fused_attention_overrideable", "flex_attention",
        "aten::_cudnn_attention_forward",
    ],
)  # fmt: skip
def test_every_fused_variant(name: str) -> None:
    assert cost_of(op(name, qkv(), (1, 4, 32, 16))).macs == 4 * 32 * 32 * 32


@pytest.mark.parametrize(
    "name", ["aten::_flash_attention_forward", "aten::_efficient_attention_forward", "flash_attn::_flash_attn_forward"]
)
def test_heads_after_positions(name: str) -> None:
    inputs = {"query": (2, 10, 4, 16), "key": (2, 20, 4, 16), "value": (2, 20, 4, 16)}
    assert cost_of(op(name, inputs, (2, 10, 4, 16), max_q=10, max_k=20)).macs == 2 * 4 * 10 * 20 * 32


def test_packed_sequences() -> None:
    lengths = tensor((4,), "int32")
    inputs = {"query": (30, 4, 16), "key": (30, 4, 16), "value": (30, 4, 16), "cu_seq_q": lengths, "cu_seq_k": lengths}
    bound = cost_of(op("torch_attn::_varlen_attn", inputs, (30, 4, 16), max_q=15, max_k=15))
    exact = cost_of(op("torch_attn::_varlen_attn", inputs, (30, 4, 16), max_q=15, max_k=15, pairs=15**2 + 10**2 + 5**2))
    assert bound.macs == 4 * 30 * 15 * 32
    assert exact.macs == 4 * 350 * 32


def test_multi_head_attention_in_one_op() -> None:
    inputs = {
        "query": (2, 10, 64), "key": (2, 10, 64), "value": (2, 10, 64), "qkv_weight": (192, 64), "qkv_bias": (192,),
        "proj_weight": (64, 64), "proj_bias": (64,),
    }  # fmt: skip
    cost = cost_of(op("aten::_native_multi_head_attention", inputs, (2, 10, 64), embed_dim=64, num_head=4))
    scores = 2 * 4 * 10 * 10
    assert cost.macs == 20 * 4 * 64 * 64 + 2 * 2 * 100 * 64
    assert cost.flops == 2 * cost.macs + 20 * 4 * 64 + scores * 6


def test_encoder_layer_in_one_op() -> None:
    inputs = {
        "src": (2, 6, 32), "qkv_weight": (96, 32), "qkv_bias": (96,), "proj_weight": (32, 32), "proj_bias": (32,),
        "norm_weight_1": (32,), "norm_bias_1": (32,), "norm_weight_2": (32,), "norm_bias_2": (32,),
        "ffn_weight_1": (64, 32), "ffn_bias_1": (64,), "ffn_weight_2": (32, 64), "ffn_bias_2": (32,),
    }  # fmt: skip
    cost = cost_of(op("aten::_transformer_encoder_layer_fwd", inputs, (2, 6, 32), embed_dim=32, num_heads=4, use_gelu=False))
    scores = 2 * 4 * 6 * 6
    assert cost.macs == 12 * (4 * 32 * 32 + 2 * 32 * 64) + 2 * 2 * 36 * 32
    biases = 12 * (4 * 32 + 64 + 32)
    assert cost.flops == 2 * cost.macs + biases + scores * 6 + 12 * (64 + 2 * 32 + 2 * 7 * 32)
