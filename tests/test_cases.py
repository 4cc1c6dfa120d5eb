"""Small models from public bug reports, with closed-form answers: params and MACs, exactly.

Each file of ``cases/`` has ``build() -> (model, inputs)``, sometimes ``KWARGS``, and ``EXPECT``, derived in a comment beside it.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch

from modelstat.cost.registry import costs
from modelstat.records import Trace
from modelstat.trace.capture import capture

CASES = Path(__file__).parent / "cases"

BASIC = [
    "01_conv2d_bias", "03_conv2d_depthwise_multiplier", "05_conv2d_stride_odd", "07_conv1d_audio", "09_conv_transpose2d_stride2",
    "11_conv_transpose1d_outpad", "13_root_is_a_leaf", "15_linear_unbatched_vector", "17_matmul_broadcast", "19_addmm_baddbmm",
    "21_einsum_three_operands", "23_nn_parameter_non_leaf", "35_attention_at_operator", "39_shared_layer_two_parents",
    "41_shared_activation_nested_lists", "43_unused_submodule", "45_buffers_are_not_params", "47_frozen_bn_inside_training_model",
    "49_ghost_module_vs_conv", "51_needs_kwargs_none_int", "53_two_inputs_siamese", "61_custom_autograd_function", "75_no_parameters",
    "77_attribute_collision", "79_unfold_im2col", "81_module_dict_forward_method", "83_efficientnet_se_block",
]  # fmt: skip
"""Made of convolution, linear, matmul, norm, activation, pooling and shared or nested modules."""

FURTHER = [
    "25_lstm_bidir_2layer_proj", "27_rnn_packed_sequence", "29_mha_self_attention", "31_transformer_encoder_fastpath", "33_sdpa_causal",
    "37_kv_cache_decode_step", "55_long_and_bool_inputs", "57_interpolate_scale_factor", "59_deform_conv2d", "63_torch_compiled_module",
    "65_weight_norm_parametrized", "67_complex_linear", "69_sparse_mm", "71_data_dependent_branch", "73_dynamic_quantized_linear",
]  # fmt: skip
"""Attention, RNNs, embeddings, resampling, sparse, quantised, complex and data-dependent models."""


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"case_{name}", CASES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def trace_of(case: ModuleType) -> Trace:
    torch.manual_seed(0)
    model, inputs = case.build()
    return capture(model, inputs, getattr(case, "KWARGS", {}))


@pytest.mark.parametrize("name", BASIC + FURTHER)
@pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")
def test_case_has_the_expected_params_and_macs(name: str) -> None:
    case = load(name)
    trace = trace_of(case)
    cost = costs(trace)
    params = sum(parameter.elements for parameter in trace.parameters if parameter.kind == "parameter")
    assert (params, sum(one.macs for one in cost)) == (case.EXPECT["params"], case.EXPECT["macs"])
    assert [op.name for op, one in zip(trace.ops, cost, strict=True) if one.known == "unknown"] == []


def test_every_case_is_in_the_table() -> None:
    assert sorted(BASIC + FURTHER) == sorted(path.stem for path in CASES.glob("*.py"))


def test_calls_follow_the_modules() -> None:
    for name in ("53_two_inputs_siamese", "71_data_dependent_branch"):
        case = load(name)
        calls = {module.path: module.calls for module in trace_of(case).modules}
        assert {path: calls[path] for path in case.EXPECT["calls"]} == case.EXPECT["calls"]


def test_buffers_are_not_params() -> None:
    case = load("45_buffers_are_not_params")
    buffers = [parameter for parameter in trace_of(case).parameters if parameter.kind == "buffer"]
    assert sum(buffer.elements for buffer in buffers) == case.EXPECT["buffers"]
    assert sum(buffer.bytes for buffer in buffers) == case.EXPECT["buffer_bytes"]


def test_packed_weights_are_logical_params() -> None:
    case = load("73_dynamic_quantized_linear")
    packed = [parameter for parameter in trace_of(case).parameters if parameter.kind == "packed"]
    assert sum(parameter.bytes for parameter in packed) == case.EXPECT["weight_bytes_int8"]


def test_embedding_reads_the_rows_it_touches() -> None:
    case = load("55_long_and_bool_inputs")
    trace = trace_of(case)
    (embedding,) = (cost for op, cost in zip(trace.ops, costs(trace), strict=True) if op.name == "aten::embedding")
    assert embedding.read == case.EXPECT["embedding_read_bytes"]
