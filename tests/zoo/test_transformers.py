"""transformers: a sample of its architectures, of every kind of input. All of them are surveyed by scripts/survey, see docs/coverage.md."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

transformers = pytest.importorskip("transformers", reason="the extra `hf` is not installed")

from modelstat.api import trace_spec  # noqa: E402
from modelstat.cost.registry import costs  # noqa: E402

DATA = Path(__file__).parent / "data"
SAMPLE = {
    # text: encoders, decoders, both, state space, linear attention, experts
    "albert": "input_ids", "deberta-v2": "input_ids", "gpt_neox": "input_ids", "bart": "input_ids decoder_input_ids",
    "mamba2(num_hidden_layers=2)": "input_ids", "rwkv(num_hidden_layers=2)": "input_ids", "gemma3_text(num_hidden_layers=7)": "input_ids",
    "qwen3_moe(num_hidden_layers=2)": "input_ids", "deepseek_v3(num_hidden_layers=4)": "input_ids",
    "gpt_oss(num_hidden_layers=2)": "input_ids", "switch_transformers": "input_ids decoder_input_ids", "funnel": "input_ids",
    "longformer(num_hidden_layers=2)": "input_ids",
    # images
    "beit": "pixel_values", "swinv2": "pixel_values", "segformer": "pixel_values", "detr": "pixel_values", "mask2former": "pixel_values",
    # video and sound
    "videomae": "pixel_values", "wav2vec2": "input_values", "whisper": "input_features decoder_input_ids", "encodec": "input_values",
    # several
    "clip": "input_ids pixel_values",
    "qwen2_vl(text_config={'num_hidden_layers': 2})": "input_ids mm_token_type_ids pixel_values image_grid_thw",
    "sam": "pixel_values input_points input_labels",
}  # fmt: skip
"""Architecture -> the inputs of its recipe."""


@pytest.mark.parametrize("architecture", SAMPLE)
def test_architectures_are_walked_without_values(architecture: str) -> None:
    trace = trace_spec(f"hf:{architecture}", precision="bf16")
    assert trace.run == "fake"
    assert [given.name for given in trace.inputs] == SAMPLE[architecture].split()
    cost = costs(trace)
    assert sum(one.macs for one in cost) > 0
    assert [op.name for op, one in zip(trace.ops, cost, strict=True) if one.known == "unknown"] == []
    # What the model has, it uses: a module that is never called would be a recipe that is not complete.
    assert trace.modules[0].calls == 1


@pytest.mark.parametrize("batch", [1, 3])
def test_macs_grow_with_the_batch(batch: int) -> None:
    for architecture in ("vit(num_hidden_layers=2)", "t5", "whisper"):
        single = sum(one.macs for one in costs(trace_spec(f"hf:{architecture}")))
        assert sum(one.macs for one in costs(trace_spec(f"hf:{architecture}", batch=batch))) == batch * single


def test_what_is_listed_as_not_traced_exists() -> None:
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    with (DATA / "transformers_failures.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["model"] for row in rows if row["model"] not in MODEL_MAPPING_NAMES] == []
    assert all(row["reason"] for row in rows)
    # 80 % of all architectures are traced; what is listed is less than the rest.
    assert len(rows) <= 0.2 * len(MODEL_MAPPING_NAMES)
