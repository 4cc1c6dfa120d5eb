"""Several GPUs that share each layer: the passes of one of them at any batch are its part of a walk, and the exchanges follow."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers", reason="the extra `hf` is not installed")

from modelstat.api import trace_spec
from modelstat.cost.registry import costs
from modelstat.deploy.links import link_between
from modelstat.deploy.shards import Shards, shards
from modelstat.errors import UsageError
from modelstat.hardware.database import find
from modelstat.predict.execution import Execution
from modelstat.predict.prediction import predict
from modelstat.records import Trace
from modelstat.serving.cache import cache_bytes
from modelstat.serving.group import Group
from modelstat.serving.phase import Phase
from modelstat.serving.serving import needed_bytes, phases, sequence_bytes, traces
from modelstat.serving.steps import Steps

LAYERS, WIDTH, INNER, WORDS, HEADS, SHARED = 2, 64, 128, 1000, 8, 2
SHAPE = (
    f"vocab_size={WORDS},hidden_size={WIDTH},intermediate_size={INNER},num_hidden_layers={LAYERS},num_attention_heads={HEADS},"
    f"num_key_value_heads={SHARED}"
)
SPECS = {"dense": f"hf:llama({SHAPE})", "experts": f"hf:mixtral({SHAPE},num_local_experts=8,num_experts_per_tok=2)"}
RUN = Execution("compile", cuda_graph=True)
PROMPT, GENERATE = 40, 24
ITEM = 2
"""Bytes of a bf16."""


def walk(spec: str, phase: Phase, batch: int) -> Trace:
    return trace_spec(spec, None, batch, "bf16", phase=phase)


def grouped(spec: str, gpus: int) -> Steps:
    whole = Steps(lambda phase, batch: walk(spec, phase, batch), PROMPT, GENERATE, RUN)
    return Steps(Group(whole.walk, gpus), PROMPT, GENERATE, RUN)


def part(trace: Trace, gpus: int) -> Shards:
    return shards(trace, costs(trace), gpus)


@pytest.mark.parametrize("batch", [1, 2, 5, 64])
@pytest.mark.parametrize("gpus", [2, 4])
@pytest.mark.parametrize("spec", SPECS)
def test_a_batch_is_the_part_of_a_walk_at_that_batch(spec: str, gpus: int, batch: int) -> None:
    """Four GPUs have two heads of keys and values between them: each of these is on two."""
    steps = grouped(SPECS[spec], gpus)
    found, walked = steps.traces(batch), traces(lambda phase, size: walk(SPECS[spec], phase, size), batch, PROMPT, GENERATE)
    assert found.prompt == part(walked.prompt, gpus).trace
    assert walked.first is not None
    assert walked.last is not None
    first, last = part(walked.first, gpus), part(walked.last, gpus)
    assert (found.first, found.last) == (first.trace, last.trace)
    step = steps.step(batch)
    assert step.needed_bytes == needed_bytes(found, batch, sequence_bytes(found, batch))
    gpu = find("h100-sxm")
    link = link_between(gpu)
    parts = []
    for each in (first, last):
        alone = predict(each.trace, each.costs, gpu, RUN).seconds
        assert alone is not None
        parts.append(alone + sum(one.seconds(link) for one in each.collectives))
    assert step.seconds(gpu) == pytest.approx(sum(parts) / 2, rel=1e-9)


@pytest.mark.parametrize("batch", [1, 7])
def test_exchanges_in_closed_form(batch: int) -> None:
    """Two all-reduces of the features a layer, two of them a batch; the columns of so small a last layer stay whole."""
    group = Group(lambda phase, size: walk(SPECS["dense"], phase, size), 2)
    steps = Steps(group, PROMPT, GENERATE, RUN)
    last = phases(PROMPT, GENERATE).last
    assert last is not None
    steps.step(batch)
    found = group.exchanges(last, batch)
    assert [(one.kind, one.bytes) for one in found] == [("all-reduce", batch * WIDTH * ITEM)] * (2 * LAYERS)


@pytest.mark.parametrize(("gpus", "heads"), [(1, 2), (2, 1), (4, 1)])
def test_each_has_its_heads_of_the_cache(gpus: int, heads: int) -> None:
    steps = grouped(SPECS["dense"], gpus)
    last = steps.traces(3).last
    assert last is not None
    # Keys and values, the token that is written included: all but the last one of the answer.
    assert cache_bytes(last) == 2 * LAYERS * 3 * (PROMPT + GENERATE - 1) * heads * (WIDTH // HEADS) * ITEM


def test_what_cannot_be_shared() -> None:
    with pytest.raises(UsageError, match="3"):
        grouped(SPECS["dense"], 3)
    steps = grouped(SPECS["dense"], 2)
    with pytest.raises(UsageError, match="neither interconnect nor PCIe"):
        steps.step(1).seconds(find("jetson-nano"))
