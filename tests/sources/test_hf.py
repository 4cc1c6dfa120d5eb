"""The origin ``hf``: configurations with products that can be recomputed, inputs, errors, and never the network."""

# mypy: disable-error-code="union-attr,arg-type,operator,attr-defined"
# Attributes of built models are whatever the model gives them.
from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

transformers = pytest.importorskip("transformers", reason="the extra `hf` is not installed")

import torch  # noqa: E402

from modelstat.api import trace_spec  # noqa: E402
from modelstat.cost.registry import costs  # noqa: E402
from modelstat.errors import (  # noqa: E402
    BuildError,
    InputError,
    MissingExtraError,
    ModelFileError,
    UnknownModelError,
    UsageError,
)
from modelstat.records import Trace  # noqa: E402
from modelstat.sources import parse, weightless  # noqa: E402
from modelstat.sources.hf import HfSource  # noqa: E402
from modelstat.sources.recipe import recipes  # noqa: E402

SMALL_GPT2 = {
    "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 64, "n_head": 4, "n_layer": 3, "n_positions": 256,
    "vocab_size": 1000,
}  # fmt: skip


def macs(trace: Trace) -> int:
    return sum(cost.macs for cost in costs(trace))


def params(trace: Trace) -> int:
    return sum(parameter.elements for parameter in trace.parameters if parameter.kind == "parameter")


def config_file(folder: Path, fields: dict[str, Any]) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(fields))
    return path


def transformer_macs(tokens: int, width: int, hidden: int, layers: int) -> int:
    """Four projections, the scores and their product with the values, and two layers of a feed-forward net."""
    return layers * (4 * tokens * width**2 + 2 * tokens**2 * width + 2 * tokens * width * hidden)


def test_bert_has_the_parameters_and_macs_of_its_formula() -> None:
    trace = trace_spec("hf:bert")
    width, hidden, layers = 768, 3072, 12
    embeddings = (30522 + 512 + 2) * width + 2 * width
    layer = 4 * (width**2 + width) + 2 * width * hidden + hidden + width + 4 * width
    assert params(trace) == embeddings + layers * layer + width**2 + width
    # 128 tokens, and the pooler on the first of them
    assert macs(trace) == transformer_macs(128, width, hidden, layers) + width**2
    assert trace.run == "fake"
    assert trace.inputs[0].name == "input_ids"
    assert trace.notes == ("input input_ids=1x128:int64: an example for BertModel",)
    assert not trace.training


def test_a_configuration_file_picks_its_class(tmp_path: Path) -> None:
    path = config_file(tmp_path, SMALL_GPT2)
    for spec in (f"hf:{path}", f"hf:{tmp_path}"):
        trace = trace_spec(spec, "128:int64", 2)
        assert trace.modules[0].type == "GPT2LMHeadModel"
        assert trace.inputs[0].shape == (2, 128)
        assert macs(trace) == 2 * (transformer_macs(128, 64, 256, 3) + 128 * 64 * 1000)


@pytest.mark.parametrize("chosen", ["['GPT2ForSequenceClassification']", "'GPT2ForSequenceClassification'"])
def test_another_head_is_an_argument(tmp_path: Path, chosen: str) -> None:
    config_file(tmp_path, {**SMALL_GPT2, "pad_token_id": 0})
    trace = trace_spec(f"hf:{tmp_path}(architectures={chosen})", "128:int64", 2)
    assert trace.modules[0].type == "GPT2ForSequenceClassification"
    assert macs(trace) == 2 * (transformer_macs(128, 64, 256, 3) + 128 * 64 * 2)  # two labels


def test_a_class_is_an_architecture_too() -> None:
    base, head = trace_spec("hf:bert(num_hidden_layers=1)"), trace_spec("hf:BertForSequenceClassification(num_hidden_layers=1)")
    assert head.modules[0].type == "BertForSequenceClassification"
    assert macs(head) - macs(base) == 768 * 2
    assert params(head) - params(base) == 768 * 2 + 2


def test_eager_attention_falls_apart_and_costs_the_same_macs() -> None:
    fused, eager = trace_spec("hf:bert(num_hidden_layers=2)"), trace_spec("hf:bert(num_hidden_layers=2, attn_implementation='eager')")
    assert macs(fused) == macs(eager)
    assert [sum(op.name == "modelstat::attention" for op in trace.ops) for trace in (fused, eager)] == [2, 0]


def test_arguments_reach_nested_configurations() -> None:
    trace = trace_spec("hf:clip(text_config={'num_hidden_layers': 1}, vision_config={'num_hidden_layers': 2})")
    layers = [module.path for module in trace.modules if module.type == "CLIPEncoderLayer"]
    assert sum(path.startswith("text_model") for path in layers) == 1
    assert sum(path.startswith("vision_model") for path in layers) == 2


def test_fewer_layers_need_fewer_layer_types(tmp_path: Path) -> None:
    spec = "hf:qwen3(num_hidden_layers=6, hidden_size=64, intermediate_size=96, num_attention_heads=4)"
    fields = parse(spec).build().model.config.to_dict()
    assert len(fields["layer_types"]) == 6
    config_file(tmp_path, {**fields, "architectures": ["Qwen3ForCausalLM"]})
    assert len(parse(f"hf:{tmp_path}(num_hidden_layers=2)").build().model.model.layers) == 2


def test_a_cache_is_kept_only_where_asked() -> None:
    plain, cached = (parse(f"hf:gpt2({arguments})").build().model for arguments in ("n_layer=1", "n_layer=1, use_cache=True"))
    assert (plain.config.use_cache, cached.config.use_cache) == (False, True)
    outputs = {spec: len(trace_spec(f"hf:gpt2({spec})").outputs) for spec in ("n_layer=1", "n_layer=1, use_cache=True")}
    assert outputs["n_layer=1"] == 1


def test_a_file_may_ask_for_another_dtype(tmp_path: Path) -> None:
    config_file(tmp_path, {**SMALL_GPT2, "torch_dtype": "bfloat16"})
    assert trace_spec(f"hf:{tmp_path}").precision == "bf16"
    assert trace_spec(f"hf:{tmp_path}", precision="fp32").precision == "fp32"


@pytest.mark.parametrize("precision", [None, "bf16", "fp16", "amp-bf16"])
def test_experts_are_grouped_matmuls_in_every_precision(precision: str | None) -> None:
    arguments = "num_hidden_layers=1, hidden_size=64, intermediate_size=96, num_attention_heads=4, num_key_value_heads=2, vocab_size=100"
    trace = trace_spec(f"hf:mixtral({arguments})", "16:int64", precision=precision)
    assert trace.run == "fake"
    grouped = [cost.macs for op, cost in zip(trace.ops, costs(trace), strict=True) if op.name == "aten::_grouped_mm"]
    # 16 tokens, 2 experts each: gate and up together, then down
    assert grouped == [16 * 2 * 64 * 2 * 96, 16 * 2 * 96 * 64]


def test_the_input_of_a_text_is_its_ids() -> None:
    for text in ("32:int64", "32"):
        (given,) = trace_spec("hf:bert(num_hidden_layers=1)", text, 3).inputs
        assert (given.name, given.shape, given.dtype) == ("input_ids", (3, 32), "int64")


def test_a_decoder_gets_ids_of_the_same_length() -> None:
    trace = trace_spec("hf:t5(num_layers=1, num_decoder_layers=1)", "24:int64", 2)
    assert {given.name: given.shape for given in trace.inputs} == {"input_ids": (2, 24), "decoder_input_ids": (2, 24)}


def test_inputs_by_name_are_all_that_there_are() -> None:
    trace = trace_spec("hf:bert(num_hidden_layers=1)", "input_ids=8:int64,attention_mask=8:int64")
    assert [given.name for given in trace.inputs] == ["input_ids", "attention_mask"]


def test_an_image_model_is_built_for_the_size_that_it_is_given() -> None:
    trace = trace_spec("hf:vit(num_hidden_layers=1)", "3x96x96", 2)
    assert trace.notes[0] == "built with image_size=96"
    assert trace.outputs[0] == (2, (96 // 16) ** 2 + 1, 768)


def test_a_picture_in_a_text_goes_through_the_vision_tower() -> None:
    small = "{'num_hidden_layers': 1, 'hidden_size': 64, 'intermediate_size': 96, 'num_attention_heads': 4, 'num_key_value_heads': 4}"
    trace = trace_spec(f"hf:llava(text_config={small}, vision_config={{'num_hidden_layers': 2}}, vision_feature_layer=-1)")
    assert trace.run == "fake"
    assert {given.name for given in trace.inputs} == {"input_ids", "pixel_values"}
    assert [module.calls for module in trace.modules if module.type == "CLIPEncoderLayer"] == [1, 1]


def test_more_tokens_than_positions_are_noted() -> None:
    assert trace_spec("hf:opt(num_hidden_layers=1, max_position_embeddings=64)", "96:int64").notes == (
        "96 tokens are more than the 64 positions of the configuration",
    )


def test_parsing_and_keys_load_nothing(tmp_path: Path) -> None:
    path = config_file(tmp_path, SMALL_GPT2)
    program = (
        "import sys; from modelstat.sources import parse\n"
        f"for spec in ('hf:bert', {f'hf:{path}'!r}, 'diffusers:UNet2DModel'): parse(spec).key()\n"
        "sys.exit(str(sorted({'torch', 'transformers', 'diffusers'} & set(sys.modules)) or ''))"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert finished.stderr.strip() in ("", "[]")


def test_the_key_follows_the_content_of_the_file(tmp_path: Path) -> None:
    path = config_file(tmp_path, SMALL_GPT2)
    first = parse(f"hf:{path}").key()
    assert first["origin"] == "hf"
    assert parse(f"hf:{tmp_path}").key() == first
    config_file(tmp_path, {**SMALL_GPT2, "n_layer": 4})
    assert parse(f"hf:{path}").key() != first
    assert parse("hf:bert").key() != parse("hf:bert(num_hidden_layers=2)").key()


def test_the_network_is_never_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants as hub

    def refuse(*args: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(hub, "HF_HUB_OFFLINE", False)
    for spec in ("hf:bert(num_hidden_layers=1)", "hf:timm_wrapper", "hf:detr"):
        parse(spec).build()
    assert "HF_HUB_OFFLINE" not in os.environ
    assert hub.HF_HUB_OFFLINE is False


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("hf:berd", UnknownModelError, "'hf:berd' is not a model of transformers; the nearest are hf:bert"),
        ("hf:BertForSequenceClasification", UnknownModelError, "the nearest are hf:BertForSequenceClassification"),
        ("hf:openai/gpt2", ModelFileError, "openai/gpt2 does not exist: checkpoints are never downloaded, name a local config.json"),
        ("hf:bert(num_hidden_layer=2)", UsageError, "BertConfig has no field 'num_hidden_layer', did you mean num_hidden_layers"),
        ("hf:bert(architectures=['BertForNothing'])", UnknownModelError, "transformers has no class 'BertForNothing', the nearest are"),
        ("hf:bert(hidden_size=100)", BuildError, r"transformers cannot build hf:bert\(hidden_size=100\)"),
        ("hf:detr(use_pretrained_backbone=True)", UsageError, "leave use_pretrained_backbone out, trained weights are never loaded"),
    ],
)
def test_mistakes_name_the_way_out(spec: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        parse(spec).build()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "line 1 is not JSON"),
        ("[]", "a configuration is a mapping with a model_type"),
        ('{"hidden_size": 3}', "a configuration is a mapping with a model_type"),
    ],
)
def test_a_file_that_is_no_configuration(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises(ModelFileError, match=message):
        parse(f"hf:{path}")


def test_code_of_a_checkpoint_is_not_run(tmp_path: Path) -> None:
    config_file(tmp_path, {"model_type": "my-own", "auto_map": {"AutoModel": "modeling.Own"}})
    with pytest.raises(UnknownModelError, match="knows no model_type 'my-own', code of a checkpoint's own is not run"):
        parse(f"hf:{tmp_path}").build()


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HfSource, "installed", classmethod(lambda cls: False))
    wanted = re.escape("transformers is not installed, a transformers model needs it: install the extra")
    with pytest.raises(MissingExtraError, match=wanted):
        parse("hf:bert").build()


def test_inputs_that_do_not_fit() -> None:
    with pytest.raises(InputError, match="a batch is at least 1"):
        parse("hf:bert").build(batch=0)
    with pytest.raises(InputError, match="no input is known for BarkFineModel, give it with --input"):
        parse("hf:BarkFineModel").build()


def test_no_weight_is_allocated_for_a_model_of_seventy_billion() -> None:
    built = parse("hf:llama(hidden_size=8192, intermediate_size=28672, num_hidden_layers=80, num_attention_heads=64)").build()
    assert sum(parameter.numel() for parameter in built.model.parameters()) > 60e9
    assert sum(parameter.nbytes for parameter in built.model.parameters() if not parameter.is_meta) < 100e6
    assert not built.model.training


def test_a_model_that_must_run_for_real_loses_layers_until_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    source = parse("hf:bert(num_hidden_layers=8, hidden_size=64, num_attention_heads=4, intermediate_size=128, vocab_size=100)")
    full = source.build(weights=True)
    size = sum(tensor.nbytes for tensor in full.model.parameters())
    assert len(full.model.encoder.layer) == 8
    assert not full.model.get_parameter("pooler.dense.weight").is_meta
    monkeypatch.setattr(weightless, "memory_bytes", lambda: 0.6 * size / 0.25)
    shrunk = source.build(weights=True)
    assert len(shrunk.model.encoder.layer) in (2, 4)
    assert shrunk.notes[-1].startswith(f"shrunk from 8 to {len(shrunk.model.encoder.layer)} layers")
    monkeypatch.setattr(weightless, "memory_bytes", lambda: 1e3)
    with pytest.raises(BuildError, match="must run for real, and 0 GB of weights with one layer do not fit this machine"):
        source.build(weights=True)


def test_a_trace_says_that_its_model_was_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    # Durations of sounds, which decide how long they are, come from an activation.
    spec = "hf:vits(hidden_size=32, num_attention_heads=2, ffn_dim=64, upsample_initial_channel=64, flow_size=32)"
    monkeypatch.setattr(weightless, "memory_bytes", lambda: 12e6)
    trace = trace_spec(spec, "8:int64", cache=False)
    assert trace.run == "real"
    assert any(note.startswith("shrunk from 6 to ") for note in trace.notes)


def test_every_recipe_belongs_to_a_model() -> None:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    names = [name for name in recipes("hf") if not name.startswith("@")]
    assert [name for name in names if name not in CONFIG_MAPPING_NAMES and not hasattr(transformers, name)] == []


def test_integers_of_a_recipe_have_values_and_all_else_is_weightless() -> None:
    built = parse("hf:clip").build(batch=2)
    assert built.batch == 2
    assert not built.kwargs["input_ids"].is_meta
    assert built.kwargs["input_ids"].dtype == torch.int64
    assert built.kwargs["pixel_values"].is_meta
