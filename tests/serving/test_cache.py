"""Decode is a walk of the real model with its cache: what is kept, what is read, what is written."""

from __future__ import annotations

from math import prod

import pytest

pytest.importorskip("transformers", reason="the extra `hf` is not installed")

from modelstat.api import trace_spec
from modelstat.cost.registry import costs
from modelstat.errors import InputError, UsageError
from modelstat.memory.peak import peak_memory
from modelstat.records import Trace
from modelstat.serving.cache import CACHE, cache_bytes, checked_format, stored, tensors, token_bytes
from modelstat.serving.phase import Phase, decode, prefill

LAYERS, WIDTH, HEADS, KEY_HEADS, CHANNELS, INNER, VOCABULARY = 2, 64, 8, 2, 8, 128, 1000
SHAPE = (
    f"vocab_size={VOCABULARY},hidden_size={WIDTH},intermediate_size={INNER},num_hidden_layers={LAYERS},"
    f"num_attention_heads={HEADS},num_key_value_heads={KEY_HEADS},max_position_embeddings=512"
)
LLAMA = f"hf:llama({SHAPE})"
MISTRAL = f"hf:mistral({SHAPE},sliding_window=32)"
GEMMA = f"hf:gemma2({SHAPE},head_dim={CHANNELS},sliding_window=32,attn_implementation='eager')"

MATRICES = LAYERS * (2 * WIDTH * WIDTH + 2 * WIDTH * KEY_HEADS * CHANNELS + 3 * WIDTH * INNER)
POSITION = 2 * KEY_HEADS * CHANNELS * 2
"""Bytes of keys and values at one position of one layer in bf16."""


def traced(spec: str, phase: Phase, batch: int = 3) -> Trace:
    return trace_spec(spec, None, batch, "bf16", phase=phase)


def macs(trace: Trace) -> int:
    return sum(cost.macs for cost in costs(trace))


@pytest.mark.parametrize("context", [1, 100, 511])
def test_one_token_meets_every_matrix_and_the_whole_cache(context: int) -> None:
    trace = traced(LLAMA, decode(context))
    scores = LAYERS * HEADS * (context + 1) * 2 * CHANNELS
    assert macs(trace) == 3 * (MATRICES + VOCABULARY * WIDTH + scores)
    assert cache_bytes(trace) == 3 * LAYERS * POSITION * (context + 1)
    assert token_bytes(trace) == LAYERS * POSITION


def test_a_prompt_is_read_whole_and_yields_the_logits_of_its_last_position() -> None:
    trace = traced(LLAMA, prefill(64))
    assert macs(trace) == 3 * (64 * MATRICES + VOCABULARY * WIDTH + LAYERS * HEADS * 64 * 64 * 2 * CHANNELS)
    assert (3, 1, VOCABULARY) in trace.outputs
    assert cache_bytes(trace) == 3 * LAYERS * POSITION * 64


def test_the_cache_is_an_input_that_no_op_makes_and_grouped_queries_share() -> None:
    trace = traced(LLAMA, decode(100))
    given = costs(trace)
    attention = [(op, cost) for op, cost in zip(trace.ops, given, strict=True) if op.name == "modelstat::attention"]
    assert len(attention) == LAYERS
    for op, cost in attention:
        key = op.tensor("key")
        assert key is not None
        assert key.shape == (3, KEY_HEADS, 101, CHANNELS)
        assert trace.values[key.value].kind == "input"
        assert (trace.values[key.value].birth, trace.values[key.value].death) == (-1, len(trace.ops))
        # The cache once, and the queries: keys and values of 2 heads serve 8.
        assert cost.read == 3 * (101 * POSITION + HEADS * CHANNELS * 2)
    for op, cost in zip(trace.ops, given, strict=True):
        assert op.name != CACHE or (cost.known == "free" and cost.bytes == 0)
    # A new position is written where it belongs: nothing of the cache is copied.
    assert [op.inputs[0].shape for op in trace.ops if op.name == "aten::copy_"] == [(3, KEY_HEADS, 1, CHANNELS)] * 2 * LAYERS


def test_the_cache_is_held_from_the_first_op_to_the_last() -> None:
    short, long = (peak_memory(traced(LLAMA, decode(context))) for context in (100, 400))
    assert long.activation_bytes - short.activation_bytes == 3 * LAYERS * POSITION * 300


@pytest.mark.parametrize(("context", "seen"), [(10, 11), (30, 31), (31, 32), (100, 32)])
def test_a_window_bounds_what_is_kept_and_seen(context: int, seen: int) -> None:
    trace = traced(MISTRAL, decode(context))
    assert {spec.shape for spec in tensors(trace)} == {(3, KEY_HEADS, seen, CHANNELS)}
    assert macs(trace) == 3 * (MATRICES + VOCABULARY * WIDTH + LAYERS * HEADS * seen * 2 * CHANNELS)


def test_layers_with_and_without_a_window_keep_their_own() -> None:
    trace = traced(GEMMA, decode(100))
    assert [spec.shape[2] for spec in tensors(trace)] == [32, 32, 101, 101]


def test_of_a_prompt_longer_than_its_window_only_the_window_is_kept() -> None:
    trace = traced(MISTRAL, prefill(100))
    assert {spec.shape[2] for spec in tensors(trace)} == {32}


@pytest.mark.parametrize("form", ["fp8", "int8"])
def test_a_smaller_cache_moves_fewer_bytes_and_no_fewer_flops(form: str) -> None:
    trace = traced(LLAMA, decode(100))
    small = stored(trace, checked_format(form))
    assert cache_bytes(small) * 2 == cache_bytes(trace)
    before, after = costs(trace), costs(small)
    assert [cost.flops for cost in before] == [cost.flops for cost in after]
    assert [cost.dtype for cost in before if cost.unit == "matmul"] == [cost.dtype for cost in after if cost.unit == "matmul"]
    # Read by attention, written once for the new position.
    saved = 3 * LAYERS * POSITION // 2 * (101 + 1)
    assert sum(cost.bytes for cost in before) - sum(cost.bytes for cost in after) == saved
    assert peak_memory(trace).activation_bytes - peak_memory(small).activation_bytes == cache_bytes(small)


def test_latents_are_kept_and_not_the_keys_that_are_made_of_them() -> None:
    spec = (
        f"hf:deepseek_v3(vocab_size={VOCABULARY},hidden_size=64,intermediate_size=128,moe_intermediate_size=32,num_hidden_layers=1,"
        "num_attention_heads=8,num_key_value_heads=8,n_routed_experts=8,num_experts_per_tok=2,n_group=2,topk_group=1,"
        "first_k_dense_replace=1,q_lora_rank=32,kv_lora_rank=16,qk_nope_head_dim=8,qk_rope_head_dim=4,v_head_dim=8)"
    )
    trace = traced(spec, decode(100))
    assert [spec.shape for spec in tensors(trace)] == [(3, 1, 101, 16), (3, 1, 101, 4)]
    assert token_bytes(trace) == (16 + 4) * 2
    assert cache_bytes(trace) == prod((3, 101, 16 + 4, 2))


@pytest.mark.parametrize(
    ("spec", "phase", "error", "message"),
    [
        (LLAMA, decode(512), InputError, "--context 512 and one more is beyond the 512 positions"),
        (LLAMA, prefill(513), InputError, "--prompt 513 is beyond the 512 positions"),
        ("resnet50", decode(8), UsageError, "--phase is for language models of transformers"),
        ("hf:bert", decode(8), UsageError, "BertModel does not generate text"),
        ("hf:vit", prefill(8), UsageError, "ViTModel does not generate text"),
        ("hf:t5", decode(8), UsageError, "T5Model has an encoder"),
        ("hf:mamba", decode(8), UsageError, "layers of the kind linear_attention"),
    ],
)
def test_what_a_phase_cannot_do_is_refused(spec: str, phase: Phase, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        traced(spec, phase)


def test_a_phase_makes_its_own_input() -> None:
    with pytest.raises(UsageError, match="leave it out and give --context"):
        trace_spec(LLAMA, "16:int64", phase=decode(16))


@pytest.mark.parametrize("phase", [prefill, decode])
def test_no_tokens_are_no_phase(phase: object) -> None:
    assert callable(phase)
    with pytest.raises(InputError, match="at least 1"):
        phase(0)


def test_a_configuration_without_architectures_gets_its_head() -> None:
    trace = traced(LLAMA, decode(4))
    assert "LlamaForCausalLM is walked: a phase needs the head" in trace.notes
    named = traced(f"hf:LlamaForCausalLM({SHAPE})", decode(4))
    assert macs(named) == macs(trace)
