"""Expected routing: what a batch meets of the experts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("transformers", reason="the extra `hf` is not installed")

from modelstat.api import trace_spec
from modelstat.cost.operands import touched
from modelstat.cost.registry import costs
from modelstat.serving.experts import Experts, experts
from modelstat.serving.phase import decode, prefill

WIDTH, INNER, LAYERS, EXPERTS, CHOICES = 64, 128, 2, 8, 2
MIXTRAL = (
    f"hf:mixtral(vocab_size=1000,hidden_size={WIDTH},intermediate_size={INNER},num_hidden_layers={LAYERS},num_attention_heads=8,"
    f"num_key_value_heads=2,num_local_experts={EXPERTS},num_experts_per_tok={CHOICES})"
)
EXPERT = 3 * WIDTH * INNER
"""Parameters of one expert: gate, up and down."""


def met(batch: int) -> Experts:
    found = experts(trace_spec(MIXTRAL, None, batch, "bf16", phase=decode(16)))
    assert found is not None
    return found


# 8 (1 - (1 - 2/8)^t), by hand for t = 1, 2, 3: each token misses an expert with 3/4.
@pytest.mark.parametrize(("batch", "expected"), [(1, 2.0), (2, 8 * (1 - 9 / 16)), (3, 8 * (1 - 27 / 64))])
def test_a_batch_meets_the_expected_number_of_experts(batch: int, expected: float) -> None:
    found = met(batch)
    assert (found.experts, found.choices) == (EXPERTS, CHOICES)
    assert found.touched == pytest.approx(expected)
    assert found.touched_bytes == pytest.approx(LAYERS * expected * EXPERT * 2, rel=1e-9)


def test_the_bytes_of_the_model_are_those_of_the_experts_that_are_met() -> None:
    """From one token to two, all that grows beside the activations is the number of experts."""
    moved = []
    for batch in (1, 2):
        trace = trace_spec(MIXTRAL, None, batch, "bf16", phase=decode(16))
        moved.append(sum(cost.read for op, cost in zip(trace.ops, costs(trace), strict=True) if "choices" in op.arguments))
    rows = LAYERS * CHOICES * (WIDTH + INNER) * 2  # one more token's inputs of the two products
    assert moved[1] - moved[0] == pytest.approx(rows + LAYERS * (8 * (1 - 9 / 16) - 2) * EXPERT * 2)


def test_active_parameters_leave_out_the_experts_that_a_token_does_not_meet() -> None:
    trace = trace_spec(MIXTRAL, None, 1, "bf16", phase=decode(16))
    params = sum(each.elements for each in trace.parameters if each.kind == "parameter")
    assert met(1).active_params == params - LAYERS * (EXPERTS - CHOICES) * EXPERT


def test_a_long_prompt_meets_all_of_them() -> None:
    found = experts(trace_spec(MIXTRAL, None, 1, "bf16", phase=prefill(256)))
    assert found is not None
    assert found.touched == pytest.approx(EXPERTS)


def test_a_dense_model_has_none() -> None:
    assert experts(trace_spec("hf:gpt2(n_layer=1)", None, 1, "bf16", phase=decode(16))) is None


@given(st.integers(1, 256), st.integers(1, 256), st.integers(1, 4096))
def test_never_more_than_there_are_and_never_fewer_than_one_token_meets(size: int, choices: int, tokens: int) -> None:
    choices = min(choices, size)
    found = touched(size, choices, tokens)
    assert choices * (1 - 1e-9) <= found <= min(size, choices * tokens) * (1 + 1e-9)
    assert touched(size, choices, tokens + 1) >= found
