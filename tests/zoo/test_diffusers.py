"""diffusers: UNets and diffusion transformers, a sample. All of them are surveyed by scripts/survey, see docs/coverage.md."""

from __future__ import annotations

import pytest

pytest.importorskip("diffusers", reason="diffusers is not installed")

from modelstat.api import trace_spec
from modelstat.cost.registry import costs
from modelstat.errors import BuildError, InputError, UnknownModelError
from modelstat.records import Trace
from modelstat.sources import parse
from modelstat.sources.diffusers import DiffusersSource
from modelstat.sources.recipe import recipes


def macs(trace: Trace) -> int:
    return sum(cost.macs for cost in costs(trace))


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        ("UNet2DModel", "sample timestep"),
        ("UNet2DConditionModel", "sample timestep encoder_hidden_states"),
        ("DiTTransformer2DModel(num_layers=2)", "hidden_states timestep class_labels"),
        ("SD3Transformer2DModel(num_layers=2)", "hidden_states encoder_hidden_states pooled_projections timestep"),
        ("CogVideoXTransformer3DModel(num_layers=1)", "hidden_states encoder_hidden_states timestep"),
        (
            "FluxTransformer2DModel(num_layers=1, num_single_layers=1)",
            "hidden_states encoder_hidden_states pooled_projections timestep img_ids txt_ids",
        ),
    ],
)
def test_denoising_networks_are_walked_without_values(model: str, inputs: str) -> None:
    trace = trace_spec(f"diffusers:{model}")
    assert trace.run == "fake"
    assert [given.name for given in trace.inputs] == inputs.split()
    assert [op.name for op, cost in zip(trace.ops, costs(trace), strict=True) if cost.known == "unknown"] == []


def test_a_block_of_a_diffusion_transformer_costs_what_its_formula_says() -> None:
    one, two = (trace_spec(f"diffusers:DiTTransformer2DModel(num_layers={layers})") for layers in (1, 2))
    width, tokens = 16 * 72, (32 // 2) ** 2
    # attention, a feed-forward net of four times the width, and six modulations from an embedding of time and class
    attention = 4 * tokens * width**2 + 2 * tokens**2 * width
    modulation = 256 * width + width**2 + width * 6 * width
    assert macs(two) - macs(one) == attention + 8 * tokens * width**2 + modulation


def test_a_sample_of_another_size_takes_the_place_of_the_recipes() -> None:
    trace = trace_spec("diffusers:UNet2DConditionModel", "4x32x32", 2)
    assert {given.name: given.shape for given in trace.inputs} == {
        "sample": (2, 4, 32, 32), "timestep": (2,), "encoder_hidden_states": (2, 77, 1280),
    }  # fmt: skip
    assert trace.outputs == ((2, 4, 32, 32),)


def test_mistakes_name_the_way_out() -> None:
    nearest = "'diffusers:UNet2DCondition' is not a model of diffusers; the nearest are diffusers:UNet2DCond"
    with pytest.raises(UnknownModelError, match=nearest):
        parse("diffusers:UNet2DCondition").build()
    with pytest.raises(BuildError, match=r"diffusers cannot build UNet2DModel\(chanels=3\): TypeError"):
        parse("diffusers:UNet2DModel(chanels=3)").build()
    with pytest.raises(InputError, match="no input is known for OmniGenTransformer2DModel, give it with --input"):
        parse("diffusers:OmniGenTransformer2DModel").build()


def test_every_recipe_belongs_to_a_model() -> None:
    assert set(recipes("diffusers")) <= set(DiffusersSource.names())
