"""Attention: two contractions with a softmax between them.

Counted as the full square of queries and keys, causal or not, as torch's FlopCounterMode and the papers do; with
``costs(trace, causal="half")`` as what a flash kernel runs of it. Per score (one query-key pair of one head): softmax 5, scale 1, and
1 for the addition of a mask. The scores are outputs of a contraction like the result, whether a kernel writes them to memory or not,
so a fused and an eager attention agree.
"""

from __future__ import annotations

from math import prod

from modelstat.cost.operands import operand
from modelstat.cost.registry import CAUSAL_HALF, Work, register
from modelstat.records import Op, TensorSpec

SOFTMAX_AND_SCALE = 5 + 1
"""FLOPs per score."""


def causal_pairs(queries: int, keys: int) -> int:
    """Query-key pairs below a causal mask that starts in the upper left corner: query i sees min(i + 1, keys) keys.

    >>> causal_pairs(32, 32) == 32 * 33 // 2
    True
    """
    triangle = min(queries, keys)
    return triangle * (triangle + 1) // 2 + max(queries - keys, 0) * keys


def attention_macs(batch: int, heads: int, L: int, S: int, E: int, Ev: int, causal_half: bool = False) -> int:  # noqa: N803
    """MACs of softmax(Q K^T) V for L queries and S keys of E channels per head, and values of Ev.

    ``causal_half``: only the pairs that a causal mask leaves, instead of the full square.
    """
    pairs = causal_pairs(L, S) if causal_half else L * S
    return batch * heads * pairs * (E + Ev)


def query_key_pairs(op: Op, rows: int, queries: int, keys: int) -> int:
    """Pairs that are scored by ``rows`` queries (of all heads and samples), ``queries`` of them in each sequence of ``keys`` keys."""
    if op.argument(CAUSAL_HALF) and op.argument("is_causal"):
        return rows // max(queries, 1) * causal_pairs(queries, keys)
    return rows * keys


def pairs_heads_last(op: Op, query: TensorSpec, key: TensorSpec) -> int:
    """Pairs that are scored by query (B, L, H, E) and key (B, S, H, E), of all heads, or by packed sequences (total, H, E).

    The lengths of packed sequences are values: the trace may carry the number of query-key pairs per head as the argument ``pairs``;
    otherwise every query meets ``max_k`` keys, an upper bound that is exact for sequences of one length.
    """
    *batch, rows, heads, _ = query.shape
    if "pairs" in op.arguments:
        counted = "causal_pairs" if op.argument(CAUSAL_HALF) and op.argument("is_causal") else "pairs"
        return int(op.argument(counted, op.arguments["pairs"])) * heads
    keys = key.shape[-3]
    longest = op.argument("max_k") or op.argument("max_seqlen_k") or op.argument("max_seqlen_kv")
    packed = any(op.tensor(name) is not None for name in ("cum_seq_q", "cu_seqlens_q", "cu_seq_q", "cu_seqlens_k"))
    if packed and longest:
        keys = min(keys, int(longest))
    return query_key_pairs(op, prod(batch) * rows * heads, rows, keys)


def _work(pairs: int, result: int, channels: int, value_channels: int, masked: bool, dropout: float = 0.0) -> Work:
    """The Work of attention over query-key ``pairs`` (heads and batch included) that yields ``result`` elements."""
    per_score = SOFTMAX_AND_SCALE + masked + (2 if dropout else 0)  # dropout multiplies by a mask and rescales
    return Work(macs=pairs * (channels + value_channels), flops=pairs * per_score, outputs=pairs + result)


def _dropout(op: Op) -> float:
    return float(op.argument("dropout_p", 0.0) or 0.0)


@register(
    "attention",
    "modelstat::attention", "aten::scaled_dot_product_attention", "aten::_scaled_dot_product_attention_math",
    "aten::_scaled_dot_product_attention_math_for_mps", "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_flash_attention_for_cpu", "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_cudnn_attention", "aten::_scaled_dot_product_fused_attention_overrideable",
    "aten::_triton_scaled_dot_attention", "flex_attention", "higher_order::flex_attention", "modelstat::flex_attention",
)  # fmt: skip
def dot_product_attention(op: Op) -> Work:
    """query (..., Hq, L, E), key (..., Hkv, S, E), value (..., Hkv, S, Ev) -> (..., Hq, L, Ev).

    Grouped queries share keys and values but not work: Hq heads are computed.
    """
    query, key, value = operand(op, "query", "q"), operand(op, "key", "k"), operand(op, "value", "v")
    rows = prod(op.outputs[0].shape[:-1])  # the output's batch: queries and keys may broadcast against each other
    pairs = query_key_pairs(op, rows, query.shape[-2], key.shape[-2])
    mask = op.tensor("attn_mask") or op.tensor("attn_bias")
    return _work(pairs, rows * value.shape[-1], query.shape[-1], value.shape[-1], mask is not None, _dropout(op))


@register(
    "attention",
    "aten::_flash_attention_forward", "aten::_flash_attention_forward_no_dropout_inplace", "aten::_efficient_attention_forward",
    "torch_attn::_varlen_attn", "torch_attn::_varlen_attn_out", "flash_attn::_flash_attn_forward",
    "flash_attn::_flash_attn_varlen_forward", "xformers::efficient_attention_forward_cutlass", "modelstat::varlen_attention",
)  # fmt: skip
def attention_heads_last(op: Op) -> Work:
    """query (B, L, H, E), key (B, S, H, E), value (B, S, H, Ev), or packed sequences (total, H, E) with cumulated lengths."""
    query, key, value = operand(op, "query", "q"), operand(op, "key", "k"), operand(op, "value", "v")
    pairs, channels = pairs_heads_last(op, query, key), query.shape[-1]
    masked = op.tensor("bias") is not None or op.tensor("attn_bias") is not None
    return _work(pairs, prod(query.shape[:-1]) * value.shape[-1], channels, value.shape[-1], masked, _dropout(op))


@register("attention", "aten::_cudnn_attention_forward")
def cudnn_attention(op: Op) -> Work:
    """Heads before positions when dense (B, H, L, E), after them when packed (total, H, E)."""
    dense = len(operand(op, "query").shape) == 4
    return dot_product_attention(op) if dense else attention_heads_last(op)


def _rows(tensor: TensorSpec) -> tuple[int, int]:
    """Batch and length of (B, L, D), or (1, total) of nested sequences as (total, D)."""
    return (prod(tensor.shape[:-2]), tensor.shape[-2]) if len(tensor.shape) > 2 else (1, tensor.shape[0])


def _self_attention(query: TensorSpec, key: TensorSpec, value: TensorSpec, heads: int, masked: bool) -> Work:
    """In-projections, attention and out-projection with biases, all of width D."""
    width = query.shape[-1]
    batch, queries = _rows(query)
    keys = _rows(key)[1]
    projected = query.elements * 2 + key.elements + value.elements  # in-projections of q, k, v and the out-projection
    inner = _work(batch * heads * queries * keys, query.elements, width // heads, width // heads, masked)
    return Work(
        macs=projected * width + inner.macs,
        bias=projected,
        flops=inner.flops,
        outputs=projected + (inner.outputs or 0),
    )


@register("attention", "aten::_native_multi_head_attention", "aten::_triton_multi_head_attention")
def multi_head_attention(op: Op) -> Work:
    """nn.MultiheadAttention in one op: query (B, L, D), key and value (B, S, D), weights (3 D, D) and (D, D), with biases."""
    query, key, value = operand(op, "query"), operand(op, "key"), operand(op, "value")
    return _self_attention(query, key, value, int(op.argument("num_head", 1)), op.tensor("mask") is not None)


@register("attention", "aten::_transformer_encoder_layer_fwd")
def encoder_layer(op: Op) -> Work:
    """nn.TransformerEncoderLayer in one op: self-attention, a feed-forward net of width F, two additions, two LayerNorms of 7.

    src (B, L, D); ffn_weight_1 (F, D); the activation is relu (1) or gelu (5).
    """
    src = operand(op, "src")
    width = src.shape[-1]
    hidden = operand(op, "ffn_weight_1").shape[0]
    tokens = src.elements // max(width, 1)
    attention = _self_attention(src, src, src, int(op.argument("num_heads", 1)), op.tensor("mask") is not None)
    activation = 5 if op.argument("use_gelu", False) else 1
    feed_forward = tokens * (hidden + width)  # outputs of its two linear layers
    return Work(
        macs=attention.macs + 2 * tokens * hidden * width,
        bias=attention.bias + feed_forward,
        flops=attention.flops + tokens * (activation * hidden + 2 * width + 2 * 7 * width),
        outputs=(attention.outputs or 0) + feed_forward,
    )


@register("attention", "aten::_transform_bias_rescale_qkv")
def bias_and_scale(op: Op) -> Work:
    """Adds the bias to q, k and v, and scales q."""
    qkv = operand(op, "qkv").elements
    return Work(flops=qkv + qkv // 3)
