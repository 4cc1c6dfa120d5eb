"""Published language models, two layers deep, on several GPUs against closed forms."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("transformers", reason="the extra `hf` is not installed")

from modelstat.api import trace_spec
from modelstat.cost.registry import costs as costs_of
from modelstat.deploy.shards import Shards, shards
from modelstat.records import Trace
from modelstat.serving.cache import tensors
from modelstat.serving.phase import Phase, decode, prefill

LAYERS, CONTEXT, PROMPT, BATCH = 2, 4096, 512, 3
LLAMA_70B = (
    f"hf:llama(architectures='LlamaForCausalLM',vocab_size=128256,hidden_size=8192,intermediate_size=28672,num_hidden_layers={LAYERS},"
    "num_attention_heads=64,num_key_value_heads=8,max_position_embeddings=131072)"
)
VOCABULARY, WIDTH, INNER, KEYS = 128256, 8192, 28672, 8 * 128


def split(spec: str, phase: Phase, gpus: int) -> tuple[Trace, Shards]:
    trace = trace_spec(spec, None, BATCH, "bf16", phase=phase)
    return trace, shards(trace, costs_of(trace), gpus)


def exchanges(found: Shards) -> Counter[tuple[str, int, int]]:
    return Counter((one.kind, one.bytes, one.gpus) for one in found.collectives)


@pytest.mark.parametrize(("gpus", "sharing"), [(2, 1), (8, 1), (16, 2)])
def test_a_token_of_llama(gpus: int, sharing: int) -> None:
    """bf16: a table by rows, two all-reduces a layer, logits by columns; weights and cache in ``gpus`` parts.

    On 16 GPUs two share each of 8 heads of keys and values.
    """
    trace, found = split(LLAMA_70B, decode(CONTEXT), gpus)
    stream, logits = BATCH * 1 * WIDTH * 2, BATCH * 1 * VOCABULARY * 2
    assert exchanges(found) == {("all-reduce", stream, gpus): 1 + 2 * LAYERS, ("all-gather", logits, gpus): 1}
    tables, keys = 2 * VOCABULARY * WIDTH, LAYERS * 2 * WIDTH * KEYS
    rest = LAYERS * (2 * WIDTH * WIDTH + 3 * WIDTH * INNER)
    norms = (2 * LAYERS + 1) * WIDTH
    weights = sum(one.bytes for one in found.trace.parameters if one.kind == "parameter")
    assert weights == 2 * ((tables + rest + keys * sharing) // gpus + norms)
    cache = [spec.value for spec in tensors(trace)]
    assert sum(found.trace.values[value].bytes for value in cache) == 2 * LAYERS * BATCH * (CONTEXT + 1) * KEYS * 2 * sharing // gpus
    attended = [cost for cost in found.costs if cost.family == "attention"]
    # 64 heads in parts, each with 128 products a key and as many a value
    assert [cost.macs for cost in attended] == [BATCH * 64 // gpus * (CONTEXT + 1) * 2 * 128] * LAYERS
    # the query, the keys and values of the heads that a GPU has
    assert [cost.read for cost in attended] == [2 * BATCH * (WIDTH + 2 * (CONTEXT + 1) * KEYS * sharing) // gpus] * LAYERS
    assert found.split_share == 1.0


def test_a_prompt_of_llama() -> None:
    """All-reduces of all tokens; logits of the last one."""
    _, found = split(LLAMA_70B, prefill(PROMPT), 8)
    stream, logits = BATCH * PROMPT * WIDTH * 2, BATCH * VOCABULARY * 2
    assert exchanges(found) == {("all-reduce", stream, 8): 1 + 2 * LAYERS, ("all-gather", logits, 8): 1}


def test_a_prompt_of_gpt_2() -> None:
    """The thirds of its projection stay where they are. 50,257 words are on no four GPUs: the tied table is whole on each."""
    _, found = split(f"hf:gpt2(architectures='GPT2LMHeadModel',n_layer={LAYERS})", prefill(PROMPT), 4)
    assert exchanges(found) == {("all-reduce", BATCH * PROMPT * 768 * 2, 4): 2 * LAYERS}


def test_a_prompt_of_phi() -> None:
    """40 heads of queries, 10 of keys and 10 of values in one product, gate and up in another: sections of their own lengths."""
    spec = (
        f"hf:phi3(architectures='Phi3ForCausalLM',vocab_size=100352,hidden_size=5120,intermediate_size=17920,num_hidden_layers={LAYERS},"
        "num_attention_heads=40,num_key_value_heads=10,pad_token_id=0)"
    )
    for gpus in (2, 5, 10):
        _, found = split(spec, prefill(PROMPT), gpus)
        table = 100352 % gpus == 0
        expected = Counter({("all-reduce", BATCH * PROMPT * 5120 * 2, gpus): 2 * LAYERS + table})
        if table:
            expected["all-gather", BATCH * 100352 * 2, gpus] = 1
        assert exchanges(found) == expected


def test_a_prompt_of_experts() -> None:
    """Mixtral: the router is whole, each expert is in parts, and what two experts made of a token is added before it is added up."""
    spec = (
        f"hf:mixtral(architectures='MixtralForCausalLM',vocab_size=32000,hidden_size=4096,intermediate_size=14336,num_hidden_layers={LAYERS},"
        "num_attention_heads=32,num_key_value_heads=8,num_local_experts=8,num_experts_per_tok=2,sliding_window=None)"
    )
    trace, found = split(spec, prefill(PROMPT), 8)
    stream, logits = BATCH * PROMPT * 4096 * 2, BATCH * 32000 * 2
    assert exchanges(found) == {("all-reduce", stream, 8): 1 + 2 * LAYERS, ("all-gather", logits, 8): 1}
    experts = [one for one in found.trace.parameters if "experts" in one.name]
    assert sum(one.bytes for one in experts) == 2 * LAYERS * 8 * 3 * 4096 * 14336 // 8
    whole = [cost.macs for cost, mine in zip(costs_of(trace), found.costs, strict=True) if cost.macs and cost.macs == mine.macs]
    assert whole == [BATCH * PROMPT * 4096 * 8] * LAYERS, "the routers"
