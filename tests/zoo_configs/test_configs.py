"""Every model file of the project: it builds without weights, and has the parameters of its formula."""

from __future__ import annotations

from pathlib import Path

import pytest

from modelstat.sources import parse

CONFIGS = Path(__file__).parents[2] / "zoo_configs"
ELSEWHERE = {
    "deepseek_v3", "flux_transformer", "gemma2_9b", "gpt2", "llama2_7b", "llama3.1_405b", "llama3.1_70b", "llama3.1_8b", "mistral_7b",
    "mixtral_8x7b", "phi4", "qwen2.5_72b", "qwen2.5_7b", "qwen3_30b_a3b", "sdxl_unet", "t5_base", "vit_large", "whisper_large_v3",
}  # fmt: skip
"""Models of transformers and diffusers, see tests/zoo/test_zoo_configs.py."""

FILES = sorted({path.stem for path in CONFIGS.glob("*.yaml")} - ELSEWHERE)


def bert(layers: int, width: int, vocabulary: int, positions: int) -> int:
    """Embeddings with a norm, layers of 12 w**2 + 13 w, and a head: a dense layer, a norm, and one bias per word (its weight is tied)."""
    embeddings = (vocabulary + positions + 2) * width + 2 * width
    return embeddings + layers * (12 * width**2 + 13 * width) + width**2 + width + 2 * width + vocabulary


def gpt2(layers: int, width: int, vocabulary: int, positions: int) -> int:
    """Embeddings, layers of 12 w**2 + 13 w, a norm at the end; the head is the embedding."""
    return (vocabulary + positions) * width + layers * (12 * width**2 + 13 * width) + 2 * width


def switch(layers: int, width: int, hidden: int, heads: int, experts: int, vocabulary: int) -> int:
    """T5 with experts in every second layer, on both sides; no biases. heads are heads x 128; 32 buckets of positions on each side."""
    attention = 4 * width * heads * 128
    dense, sparse = 2 * width * hidden, experts * 2 * width * hidden + width * experts
    side = layers // 2 * (dense + sparse)
    encoder = layers * (attention + 2 * width) + side + width
    decoder = layers * (2 * attention + 3 * width) + side + width
    return vocabulary * width + encoder + decoder + 2 * 32 * heads


PARAMS = {
    "bert_large": bert(24, 1024, 30522, 512),
    "gpt2_large": gpt2(36, 1280, 50257, 1024),
    "gpt3_xl": gpt2(24, 3072, 50257, 2048),
    "gpt3_2.7b": gpt2(32, 2560, 50257, 2048),
    # OPT's positions start at 2
    "opt_1.3b": gpt2(24, 2048, 50272, 2048 + 2),
    "switch_xl4": switch(24, 1024, 16384, 32, 4, 32128),
    "resnet18": 11_689_512,
    "resnet50": 25_557_032,
    "vgg16": 138_357_544,
    "mobilenet_v2": 3_504_872,
    "resnet50_ghost": 13_949_096,
}
"""Formulas, and torchvision's published numbers."""


def test_the_files_are_those() -> None:
    pairs = {f"{name}_{rule}" for name in ("resnet18", "resnet50", "vgg16", "mobilenet_v2") for rule in ("ghost", "separable")}
    assert set(FILES) == {*PARAMS, *pairs, "enocr", "enocr_ghost"}


@pytest.mark.parametrize("name", FILES)
def test_a_model_file_builds_without_weights(name: str) -> None:
    pytest.importorskip("transformers" if name.startswith(("bert", "gpt", "opt", "switch")) else "torchvision")
    source = parse(str(CONFIGS / f"{name}.yaml"))
    built = source.build()
    params = {id(parameter): parameter.numel() for parameter in built.model.parameters()}
    if name in PARAMS:
        assert sum(params.values()) == PARAMS[name]
    assert any(swap.after for swap in built.swaps) == name.endswith(("_ghost", "_separable"))
    assert not built.model.training
