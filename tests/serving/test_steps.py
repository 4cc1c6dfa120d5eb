"""Passes at any batch from a few walks: equal to what a walk at that batch records, for dense models and for routed experts."""

from __future__ import annotations

import msgspec
import pytest

pytest.importorskip("transformers", reason="the extra `hf` is not installed")

from modelstat.api import trace_spec
from modelstat.cost.operands import touched
from modelstat.cost.registry import costs
from modelstat.hardware.database import find
from modelstat.predict.execution import Execution
from modelstat.predict.prediction import predict
from modelstat.records import Trace
from modelstat.serving.cache import stored
from modelstat.serving.phase import Phase, decode, prefill
from modelstat.serving.serving import needed_bytes, sequence_bytes, traces
from modelstat.serving.steps import Steps

LLAMA = (
    "hf:llama(vocab_size=1000,hidden_size=64,intermediate_size=128,num_hidden_layers=2,num_attention_heads=8,num_key_value_heads=2,"
    "max_position_embeddings=512)"
)
EXPERTS, CHOICES, WIDTH, INNER, LAYERS = 8, 2, 64, 128, 2
MIXTRAL = (
    f"hf:mixtral(vocab_size=1000,hidden_size={WIDTH},intermediate_size={INNER},num_hidden_layers={LAYERS},num_attention_heads=8,"
    f"num_key_value_heads=2,num_local_experts={EXPERTS},num_experts_per_tok={CHOICES})"
)
WINDOW = (
    "hf:mistral(vocab_size=1000,hidden_size=64,intermediate_size=128,num_hidden_layers=2,num_attention_heads=8,num_key_value_heads=2,"
    "max_position_embeddings=512,sliding_window=48)"
)
RUN = Execution("compile", cuda_graph=True)


class Walks:
    """Walks a model, and remembers at which phases and batches."""

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self.done: list[tuple[Phase, int]] = []

    def __call__(self, phase: Phase, batch: int) -> Trace:
        self.done.append((phase, batch))
        return trace_spec(self.spec, None, batch, "bf16", phase=phase)


@pytest.mark.parametrize("batch", [1, 2, 5, 64])
@pytest.mark.parametrize("spec", [LLAMA, MIXTRAL, WINDOW], ids=["dense", "experts", "window"])
def test_a_batch_is_what_a_walk_at_that_batch_records(spec: str, batch: int) -> None:
    steps = Steps(Walks(spec), 40, 24, RUN)
    found, walked = steps.traces(batch), traces(Walks(spec), batch, 40, 24)
    assert found == walked
    step = steps.step(batch)
    assert step.needed_bytes == needed_bytes(walked, batch, sequence_bytes(walked, batch))
    for name in ("h100-sxm", "4090"):
        gpu = find(name)
        parts = [predict(trace, costs(trace), gpu, RUN).seconds for trace in (walked.first, walked.last) if trace is not None]
        assert step.seconds(gpu) == sum(part or 0.0 for part in parts) / 2
        assert steps.steady(step, gpu).prompt_seconds == predict(walked.prompt, costs(walked.prompt), gpu, RUN).seconds


def test_larger_batches_need_no_walk_of_their_own() -> None:
    walks = Walks(LLAMA)
    steps = Steps(walks, 40, 24, RUN)
    for batch in (1, 2, 4, 64, 1024):
        steps.step(batch)
    # 40 positions before the first token that is written, 40 + 24 - 2 before the last
    assert sorted(walks.done, key=str) == sorted(
        [(prefill(40), 1), *((decode(past, request=(40, 24)), batch) for past in (40, 62) for batch in (1, 2, 3))], key=str
    )


@pytest.mark.parametrize("batch", [2, 16, 64])
def test_experts_are_read_as_often_as_the_batch_meets_them(batch: int) -> None:
    """8 (1 - (1 - 2/8)^B) matrices of each of the two grouped products of a layer: not affine in the batch."""
    last = Steps(Walks(MIXTRAL), 40, 24, RUN).traces(batch).last
    assert last is not None
    products = [cost.read for op, cost in zip(last.ops, costs(last), strict=True) if "choices" in op.arguments]
    met = touched(EXPERTS, CHOICES, batch)
    # gate and up in one, and down; each with its rows, and the offsets of its 8 groups
    rows = CHOICES * batch
    expected = LAYERS * (met * 3 * WIDTH * INNER * 2 + rows * (WIDTH + INNER) * 2)
    assert sum(products) == pytest.approx(expected, abs=LAYERS * 2 * EXPERTS * 8 + 4)


def test_two_tokens_are_one_pass() -> None:
    steps = Steps(Walks(LLAMA), 40, 2, RUN)
    assert len(steps.step(4).passes) == 1


def test_a_smaller_cache_stays_small_at_every_batch() -> None:
    steps = Steps(lambda phase, batch: stored(Walks(LLAMA)(phase, batch), "int8"), 40, 24, RUN)
    found, walked = steps.traces(16).last, stored(trace_spec(LLAMA, None, 16, "bf16", phase=decode(62)), "int8")
    assert found is not None
    assert msgspec.structs.replace(found, notes=()) == msgspec.structs.replace(walked, notes=())
