"""Fleets of a language model: every figure follows from the passes that `modelstat.serve` reports, and more demand never needs less."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("transformers", reason="the extra `hf` is not installed")

import modelstat
from modelstat.api import trace_spec
from modelstat.deploy.fleet import BATCHES, HEADROOM
from modelstat.deploy.prices import Prices
from modelstat.deploy.serving_sizing import ServingDemand, ServingSizing, SizedServing, size
from modelstat.errors import InputError, UsageError
from modelstat.hardware.database import find
from modelstat.hardware.gpu import Gpu
from modelstat.predict.execution import Execution
from modelstat.serving.serving import Serving, serving
from modelstat.serving.steps import Step, Steps

LAYERS, WIDTH, INNER, WORDS, HEADS, SHARED = 2, 64, 128, 1000, 8, 2
SPEC = (
    f"hf:llama(vocab_size={WORDS},hidden_size={WIDTH},intermediate_size={INNER},num_hidden_layers={LAYERS},num_attention_heads={HEADS},"
    f"num_key_value_heads={SHARED},max_position_embeddings=2048)"
)
PROMPT, GENERATE = 1024, 128
RUN = Execution("compile", cuda_graph=True)
NAMES = ("a100-sxm-80", "h100-sxm", "4090", "l4")


class Kept(Steps):
    """Keeps each batch: the same model is sized again and again here."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.kept: dict[int, Step] = {}

    def step(self, batch: int) -> Step:
        if batch not in self.kept:
            self.kept[batch] = super().step(batch)
        return self.kept[batch]


@pytest.fixture(scope="module")
def steps() -> Steps:
    return Kept(lambda phase, batch: trace_spec(SPEC, None, batch, "bf16", phase=phase), PROMPT, GENERATE, RUN)


@pytest.fixture(scope="module")
def model(steps: Steps) -> Serving:
    return serving(steps.alone, (), RUN, batch=1, prompt=PROMPT, generate=GENERATE)


def demand(qps: float = 1000.0, ttft: float | None = None, tpot: float | None = None) -> ServingDemand:
    return ServingDemand(qps, PROMPT, GENERATE, ttft, tpot)


def changed(**fields: object) -> Gpu:
    return msgspec.structs.replace(find("a100-sxm-80"), **fields)


def check(one: SizedServing, asked: ServingDemand) -> None:
    """Recompute a row from the report of one GPU at its batch."""
    (gpu,) = modelstat.serve(
        SPEC, gpu=one.gpu, precision="bf16", batch=one.batch, prompt=PROMPT, generate=GENERATE, execution=RUN
    ).gpus
    assert gpu.first_token is not None
    assert gpu.token is not None
    prompt, step = gpu.first_token.predicted_seconds, gpu.token.predicted_seconds
    assert prompt is not None
    assert step is not None
    assert (one.prompt_seconds, one.step_seconds) == pytest.approx((prompt, step), rel=1e-12)
    assert one.tokens_per_second == pytest.approx(gpu.tokens_per_second)
    assert one.needed_bytes == gpu.needed_bytes
    assert one.fits is gpu.fits is True
    assert one.tpot_seconds == pytest.approx(step + (one.batch - 1) * prompt / (GENERATE - 1))
    assert one.ttft_seconds == pytest.approx(step / 2 + one.batch * prompt**2 / (2 * (GENERATE - 1) * step) + prompt)
    rate = one.tokens_per_second / GENERATE
    assert one.requests_per_second == pytest.approx(rate)
    assert one.gpus == ceil(asked.qps * (1 + HEADROOM) / rate)
    assert one.utilisation == pytest.approx(asked.qps / rate / one.gpus)
    assert one.utilisation <= 1 / (1 + HEADROOM)
    assert one.gpu.tdp_w is not None
    assert one.power_watts == one.gpus * one.gpu.tdp_w
    assert one.joules_per_token == pytest.approx(one.gpus * one.gpu.tdp_w / (asked.qps * GENERATE))


@pytest.mark.parametrize(("ttft", "tpot"), [(None, None), (None, 1e-3), (2e-3, None), (2e-3, 5e-4)])
def test_every_figure(steps: Steps, model: Serving, ttft: float | None, tpot: float | None) -> None:
    asked = demand(ttft=ttft, tpot=tpot)
    found = size(steps, model, [find(name) for name in NAMES], asked)
    assert found.ranked
    assert len(found.ranked) + len(found.out) == len(NAMES)
    for one in found.ranked:
        check(one, asked)
        assert ttft is None or one.ttft_seconds <= ttft
        assert tpot is None or one.tpot_seconds <= tpot
    keys = [(one.gpus, one.power_watts, one.tpot_seconds) for one in found.ranked]
    assert keys == sorted(keys), "fewest GPUs first, then least power"


@pytest.mark.parametrize("limit", ["memory", "ttft", "tpot"])
def test_the_next_batch_would_not_do(steps: Steps, model: Serving, limit: str) -> None:
    """With just what 24 sequences take, 24 are taken, and the row says what 32 would exceed."""
    gpu, batch = find("a100-sxm-80"), 24
    step = steps.step(batch)
    steady = steps.steady(step, gpu)
    if limit == "memory":
        gpu = changed(memory_gb=step.needed_bytes * (1 + 1e-9) / 0.95 / 2**30)
    asked = demand(
        ttft=steady.ttft_seconds if limit == "ttft" else None, tpot=steady.tpot_seconds if limit == "tpot" else None
    )
    (one,) = size(steps, model, [gpu], asked).ranked
    assert (one.batch, one.limit) == (batch, limit)


def test_the_largest_batch_that_is_tried_has_no_limit(steps: Steps, model: Serving) -> None:
    (one,) = size(steps, model, [find("h100-sxm")], demand()).ranked
    assert (one.batch, one.limit) == (BATCHES[-1], None)


def test_a_batch_that_is_slower_than_a_smaller_one_is_not_taken(steps: Steps, model: Serving) -> None:
    (one,) = size(steps, model, [find("l4")], demand()).ranked
    rates = {batch: steps.steady(steps.step(batch), one.gpu).requests_per_second for batch in BATCHES}
    assert one.requests_per_second == max(rates.values())
    assert one.limit == ("throughput" if one.batch < BATCHES[-1] else None)


def test_the_memory_of_a_row_is_weights_caches_and_activations(steps: Steps, model: Serving) -> None:
    """bf16: two tables, and in each layer four projections, three feed-forward products and two norms; one norm at the end."""
    head = WIDTH // HEADS
    layer = 2 * WIDTH * WIDTH + 2 * WIDTH * SHARED * head + 3 * WIDTH * INNER + 2 * WIDTH
    weights = 2 * (2 * WORDS * WIDTH + LAYERS * layer + WIDTH)
    # The last token is never put into the cache.
    sequence = LAYERS * 2 * SHARED * head * 2 * (PROMPT + GENERATE - 1)
    assert model.weight_bytes - weights in range(1024), "beside them: the rotary embedding's frequencies"
    assert model.kv_sequence_bytes == sequence
    needed = [steps.step(batch).needed_bytes for batch in (1, 512)]
    working = needed[0] - model.weight_bytes - sequence
    assert working > 0
    assert needed[1] >= model.weight_bytes + 512 * sequence + working


QPS, TIME = st.floats(1.0, 1e6), st.floats(1e-4, 0.1)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(qps=QPS, more=st.floats(1.0, 100.0), ttft=TIME, tpot=TIME, looser=st.floats(1.0, 10.0))
def test_more_demand_never_needs_fewer_and_looser_limits_never_more(
    steps: Steps, model: Serving, qps: float, more: float, ttft: float, tpot: float, looser: float
) -> None:
    gpus = [find(name) for name in NAMES]

    def needed(asked: ServingDemand) -> dict[str, int]:
        found = size(steps, model, gpus, asked)
        for one in found.ranked:
            assert one.gpus * one.requests_per_second >= (1 + HEADROOM) * asked.qps * (1 - 1e-12)
            assert (one.gpus - 1) * one.requests_per_second < (1 + HEADROOM) * asked.qps * (1 + 1e-12) or one.gpus == 1
        return {one.gpu.key: one.gpus for one in found.ranked}

    base = needed(demand(qps, ttft, tpot))
    busier, free = needed(demand(qps * more, ttft, tpot)), needed(demand(qps, ttft * looser, tpot * looser))
    assert base.keys() == busier.keys()
    assert base.keys() <= free.keys()
    for key, count in base.items():
        assert busier[key] >= count
        assert free[key] <= count


def test_prices_rank(steps: Steps, model: Serving) -> None:
    gpus = [find(name) for name in ("a100-sxm-80", "l4", "h100-sxm")]
    found = size(steps, model, gpus, demand(), prices=Prices({"l4": 0.5, "a100-sxm-80": 400.0}, "EUR"))
    assert [one.gpu.key for one in found.ranked] == ["l4", "a100-sxm-80", "h100-sxm"], "without a price last"
    cheap, _, unpriced = found.ranked
    assert cheap.cost_per_hour == 0.5 * cheap.gpus
    # 1000 answers of 128 tokens a second are 460.8 million tokens an hour.
    assert cheap.cost_per_million_tokens == pytest.approx(0.5 * cheap.gpus / 460.8)
    assert unpriced.cost_per_hour is None
    assert found.currency == "EUR"


def test_reasons(steps: Steps, model: Serving) -> None:
    weights = model.weight_bytes
    tiny, full, slow = changed(key="tiny", memory_gb=1e-4), changed(key="full", memory_gb=weights / 0.95 / 2**30), changed(
        key="slow", bandwidth_gbs=0.1
    )
    found = size(steps, model, [tiny, full, slow, find("v100")], demand(ttft=2e-3, tpot=1e-3))
    assert not found.ranked
    reasons = [one.reason for one in found.out]
    room = 0.95 * 1e-4 * 2**30
    assert reasons[0].startswith("weights do not fit: ")
    assert reasons[0].endswith(f"; {ceil(weights / room)} of them would hold the weights")
    assert reasons[1].startswith("no sequence fits: one needs ")
    assert reasons[2].startswith("time per token too long: ")
    assert reasons[3] == "no bfloat16 peak: no figure in column bf16_tensor"
    (late,) = size(steps, model, [slow], demand(ttft=2e-3)).out
    assert late.reason.startswith("first token too late: ")


def test_memory_that_is_the_machines(steps: Steps, model: Serving) -> None:
    (one,) = size(steps, model, [changed(memory_gb=None)], demand()).ranked
    assert one.fits is None
    assert one.batch == BATCHES[-1]


def test_it_can_be_read_back(steps: Steps, model: Serving) -> None:
    found = size(steps, model, [find("l4"), find("v100")], demand(tpot=0.1))
    assert msgspec.json.decode(msgspec.json.encode(found), type=ServingSizing) == found


def test_in_python(tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text("[hourly]\nl4 = 0.5\n")
    asked = {"gpu": "l4", "precision": "bf16", "prompt": PROMPT, "generate": GENERATE, "mode": "compile", "cuda_graph": True}
    (one,) = modelstat.size_serving(SPEC, qps=1000, prices=prices, **asked).ranked  # type: ignore[arg-type]
    check(one, demand())
    assert one.cost_per_hour == 0.5 * one.gpus
    by_tokens = modelstat.size_serving(SPEC, tokens=1000 * GENERATE, **asked).ranked[0]  # type: ignore[arg-type]
    assert by_tokens.gpus == one.gpus
    smaller = modelstat.size_serving(SPEC, qps=1000, kv_cache="int8", **asked)  # type: ignore[arg-type]
    assert smaller.model.kv_sequence_bytes * 2 == LAYERS * 2 * SHARED * (WIDTH // HEADS) * 2 * (PROMPT + GENERATE - 1)
    light = modelstat.size_serving(SPEC, qps=1000, weights="int8", **asked)  # type: ignore[arg-type]
    assert light.model.weight_bytes < smaller.model.weight_bytes


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "add --qps REQUESTS/S, or --tokens"),
        ({"qps": 1, "tokens": 1}, "give one of both"),
        ({"qps": 0}, "--qps 0: give the requests a second"),
        ({"tokens": -1}, "--tokens -1: give the tokens a second"),
        ({"qps": float("nan")}, "--qps nan"),
        ({"qps": 1, "ttft": 0.0}, "--ttft 0: give a time above 0"),
        ({"qps": 1, "tpot": float("inf")}, "--tpot inf: give a time above 0"),
        ({"qps": 1, "generate": 1}, "--generate 1: a size needs answers of at least 2 tokens"),
        ({"qps": 1, "kv_cache": "int4"}, "choose from fp8, int8"),
    ],
)
def test_demands_that_are_none(given: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        modelstat.size_serving(SPEC, **given)  # type: ignore[arg-type]


def test_requests_that_are_too_long() -> None:
    with pytest.raises(InputError, match="beyond the 2048 positions"):
        modelstat.size_serving(SPEC, qps=1, prompt=2000, generate=100, gpu="l4", precision="bf16")
    with pytest.raises(InputError, match="--prompt 0"):
        modelstat.size_serving(SPEC, qps=1, prompt=0)
