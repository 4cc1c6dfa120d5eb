"""The model files: parameters as published."""

from __future__ import annotations

from math import prod
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="the extra `hf` is not installed")

from modelstat.sources import parse

FOLDER = Path(__file__).parents[2] / "zoo_configs"

PUBLISHED = {
    "deepseek_v3": 671_026_404_352,
    "flux_transformer": 11_891_178_560,
    "gemma2_9b": 9_241_705_984,
    "gpt2": 124_439_808,
    "llama2_7b": 6_738_415_616,
    "llama3.1_405b": 405_853_388_800,
    "llama3.1_70b": 70_553_706_496,
    "llama3.1_8b": 8_030_261_248,
    "mistral_7b": 7_241_732_096,
    "mixtral_8x7b": 46_702_792_704,
    "phi4": 14_659_507_200,
    "qwen2.5_72b": 72_706_203_648,
    "qwen2.5_7b": 7_615_616_512,
    "qwen3_30b_a3b": 30_532_122_624,
    "sdxl_unet": 2_567_463_684,
    "t5_base": 222_903_552,
    "vit_large": 304_326_632,
    "whisper_large_v3": 1_543_490_560,
}
"""Elements of the tensors in the published checkpoints (DeepSeek-V3 without the layer that predicts a second token)."""


def params(name: str) -> int:
    if name in ("flux_transformer", "sdxl_unet"):
        pytest.importorskip("diffusers", reason="diffusers is not installed")
    built = parse(str(FOLDER / f"{name}.yaml")).build()
    return sum(parameter.numel() for parameter in built.model.parameters())


@pytest.mark.parametrize(("name", "published"), PUBLISHED.items())
def test_params_are_the_published_ones(name: str, published: int) -> None:
    assert params(name) == published


def gated(width: int, inner: int) -> int:
    """Gate, up and down projection."""
    return 3 * width * inner


def grouped(width: int, heads: int, key_heads: int, channels: int) -> int:
    """Projections of queries, keys, values and outputs."""
    return width * channels * (2 * heads + 2 * key_heads)


# Two embeddings, and of each layer: attention, feed-forward and two norms; one norm at the end.
LLAMA_70B = 2 * 128256 * 8192 + 80 * (grouped(8192, 64, 8, 128) + gated(8192, 28672) + 2 * 8192) + 8192
LLAMA2_7B = 2 * 32000 * 4096 + 32 * (grouped(4096, 32, 32, 128) + gated(4096, 11008) + 2 * 4096) + 4096
# The router is 8 x width.
MIXTRAL = 2 * 32000 * 4096 + 32 * (grouped(4096, 32, 8, 128) + 8 * gated(4096, 14336) + 8 * 4096 + 2 * 4096) + 4096
# Biases of queries, keys and values.
QWEN_7B = 2 * 152064 * 3584 + 28 * (grouped(3584, 28, 4, 128) + (28 + 2 * 4) * 128 + gated(3584, 18944) + 2 * 3584) + 3584
# Two norms of a head's channels.
QWEN3 = 2 * 151936 * 2048 + 48 * (grouped(2048, 32, 4, 128) + 2 * 128 + 128 * gated(2048, 768) + 128 * 2048 + 2 * 2048) + 2048
# One embedding, which is the output matrix too, and four norms in a layer.
GEMMA = 256000 * 3584 + 42 * (grouped(3584, 16, 8, 256) + gated(3584, 14336) + 4 * 3584) + 3584
# Queries and latents go through a norm between two matrices; 3 layers are dense, 58 have 256 experts, a shared one and a router.
LATENT = 7168 * 1536 + 1536 + 1536 * 128 * 192 + 7168 * (512 + 64) + 512 + 512 * 128 * 256 + 128 * 128 * 7168
DEEPSEEK = (
    2 * 129280 * 7168 + 61 * (LATENT + 2 * 7168) + 3 * gated(7168, 18432) + 58 * (257 * gated(7168, 2048) + 256 * 7168) + 7168
)


@pytest.mark.parametrize(
    ("name", "closed"),
    [
        ("llama3.1_70b", LLAMA_70B),
        ("llama2_7b", LLAMA2_7B),
        ("mixtral_8x7b", MIXTRAL),
        ("qwen2.5_7b", QWEN_7B),
        ("qwen3_30b_a3b", QWEN3),
        ("gemma2_9b", GEMMA),
        ("deepseek_v3", DEEPSEEK),
    ],
)
def test_published_params_are_their_closed_forms(name: str, closed: int) -> None:
    assert PUBLISHED[name] == closed


def test_every_file_says_where_its_numbers_are_from() -> None:
    for path in FOLDER.glob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        assert text.startswith("# "), path.name
        assert "\nsource:" in text, path.name


def test_an_unknown_field_is_refused_and_one_that_only_the_layers_ask_for_is_not() -> None:
    from modelstat.errors import UsageError

    # Qwen3MoeConfig declares no head_dim; its attention reads one.
    with pytest.raises(UsageError, match="no field 'head_dims'"):
        parse("hf:qwen3_moe(head_dims=128)").build()
    small = parse("hf:qwen3_moe(head_dim=32,num_hidden_layers=1,hidden_size=64,num_attention_heads=4,vocab_size=64)").build()
    shape = dict(small.model.named_parameters())["layers.0.self_attn.q_proj.weight"].shape
    assert prod(shape) == 4 * 32 * 64
