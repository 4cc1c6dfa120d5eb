"""Small models from public bug reports, with closed-form answers: params and MACs, exactly, however they are called.

Each file of ``cases/`` has ``build() -> (model, inputs)``, sometimes ``KWARGS``, and ``EXPECT``, derived in a comment beside it.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

from modelstat.cost.record import Cost
from modelstat.cost.registry import costs
from modelstat.measure.crosscheck import crosscheck
from modelstat.predict.roofline import roofline
from modelstat.records import Trace
from modelstat.report.document import never_called
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

UNBATCHED = {
    "15_linear_unbatched_vector": "one vector",
    "19_addmm_baddbmm": "inputs of 10 rows and of 3 matrices",
    "27_rnn_packed_sequence": "the lengths of the sequences decide",
    "69_sparse_mm": "rows are the nodes of a graph",
}
"""Where dim 0 of the inputs is not one batch, and what it is."""

UNSCRIPTABLE = {
    "25_lstm_bidir_2layer_proj", "35_attention_at_operator", "51_needs_kwargs_none_int", "61_custom_autograd_function",
    "63_torch_compiled_module", "65_weight_norm_parametrized", "77_attribute_collision",
}  # fmt: skip
"""What torch.jit.script refuses."""

pytestmark = [
    pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.* is deprecated"),
]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"case_{name}", CASES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def built(case: ModuleType) -> tuple[nn.Module, tuple[Any, ...]]:
    torch.manual_seed(0)
    model, inputs = case.build()
    return model, inputs


def trace_of(case: ModuleType) -> Trace:
    model, inputs = built(case)
    return capture(model, inputs, getattr(case, "KWARGS", {}))


def params(trace: Trace) -> int:
    return sum(parameter.elements for parameter in trace.parameters if parameter.kind == "parameter")


def counts(trace: Trace) -> tuple[int, int]:
    return params(trace), sum(cost.macs for cost in costs(trace))


def contractions(trace: Trace) -> list[Cost]:
    return [cost for cost in costs(trace) if cost.macs]


@pytest.mark.parametrize("name", BASIC + FURTHER)
def test_case_has_the_expected_params_and_macs(name: str) -> None:
    case = load(name)
    trace = trace_of(case)
    cost = costs(trace)
    assert counts(trace) == (case.EXPECT["params"], case.EXPECT["macs"])
    assert [op.name for op, one in zip(trace.ops, cost, strict=True) if one.known == "unknown"] == []


def test_every_case_is_in_the_table() -> None:
    assert sorted(BASIC + FURTHER) == sorted(path.stem for path in CASES.glob("*.py"))


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("name", [name for name in BASIC + FURTHER if name not in UNBATCHED])
def test_macs_grow_with_the_batch_and_params_do_not(name: str, batch: int) -> None:
    case = load(name)
    model, inputs = built(case)
    own = next(each.shape[0] for each in inputs if isinstance(each, torch.Tensor))

    def at_batch(tensor: Any) -> Any:
        return tensor[[row % own for row in range(batch)]] if isinstance(tensor, torch.Tensor) else tensor

    trace = capture(model, tuple(at_batch(each) for each in inputs), getattr(case, "KWARGS", {}))
    assert counts(trace) == (case.EXPECT["params"], case.EXPECT["macs"] * batch // own)


AROUND: list[Callable[[], Any]] = [
    torch.enable_grad,
    torch.no_grad,
    torch.inference_mode,
    lambda: torch.autocast("cpu", torch.bfloat16),
    lambda: torch.device("meta"),
    contextlib.nullcontext,
]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", BASIC + FURTHER)
def test_params_and_macs_are_the_same_in_every_mode(name: str, training: bool) -> None:
    case = load(name)
    model, inputs = built(case)
    model.train(training)
    for around in AROUND:
        with around():
            trace = capture(model, inputs, getattr(case, "KWARGS", {}))
        assert counts(trace) == (case.EXPECT["params"], case.EXPECT["macs"])


@pytest.mark.parametrize("wrapped", [lambda model: torch.compile(model, backend="eager"), nn.DataParallel], ids=["compile", "DataParallel"])
@pytest.mark.parametrize("name", [name for name in BASIC + FURTHER if name != "63_torch_compiled_module"])  # compiled already
def test_a_wrapper_changes_nothing(name: str, wrapped: Callable[[nn.Module], nn.Module]) -> None:
    case = load(name)
    model, inputs = built(case)
    trace = capture(wrapped(model), inputs, getattr(case, "KWARGS", {}))
    assert counts(trace) == (case.EXPECT["params"], case.EXPECT["macs"])
    assert [module.path for module in trace.modules] == [module.path for module in trace_of(case).modules]


@pytest.mark.parametrize("name", [name for name in BASIC + FURTHER if name not in UNSCRIPTABLE])
def test_a_scripted_model_has_the_same_counts(name: str) -> None:
    case = load(name)
    model, inputs = built(case)
    scripted = torch.jit.script(model)
    before = scripted(*inputs, **getattr(case, "KWARGS", {}))
    trace = capture(scripted, inputs, getattr(case, "KWARGS", {}))
    assert counts(trace) == (case.EXPECT["params"], case.EXPECT["macs"])
    torch.testing.assert_close(scripted(*inputs, **getattr(case, "KWARGS", {})), before)


@pytest.mark.parametrize("name", BASIC + FURTHER)
def test_other_counters_differ_only_where_it_is_explained(name: str) -> None:
    case = load(name)
    model, inputs = built(case)
    trace = capture(model, inputs, getattr(case, "KWARGS", {}))
    found = crosscheck(model, inputs, getattr(case, "KWARGS", {}), trace, costs(trace))
    assert found.unexplained == 0
    assert set(found.failures) <= ({"fvcore"} if name == "73_dynamic_quantized_linear" else set())


@pytest.mark.parametrize("name", [name for name in BASIC + FURTHER if "bias_adds" in load(name).EXPECT])
def test_biases_are_flops_and_no_macs(name: str) -> None:
    case = load(name)
    assert sum(cost.flops - 2 * cost.macs for cost in contractions(trace_of(case))) == case.EXPECT["bias_adds"]


@pytest.mark.parametrize("name", BASIC + FURTHER)
def test_a_mac_is_two_flops_and_a_complex_one_eight(name: str) -> None:
    case = load(name)
    each = 8 if "real_macs" in case.EXPECT else 2
    assert each * case.EXPECT["macs"] == case.EXPECT["flops"]
    assert sum(cost.flops for cost in contractions(trace_of(case))) >= case.EXPECT["flops"]
    if "real_macs" in case.EXPECT:
        assert sum(cost.flops for cost in contractions(trace_of(case))) == 2 * case.EXPECT["real_macs"]
        assert sum(parameter.bytes for parameter in trace_of(case).parameters) == case.EXPECT["params_bytes"]


def test_calls_follow_the_modules() -> None:
    for name in ("53_two_inputs_siamese", "71_data_dependent_branch"):
        case = load(name)
        calls = {module.path: module.calls for module in trace_of(case).modules}
        assert {path: calls[path] for path in case.EXPECT["calls"]} == case.EXPECT["calls"]


def test_buffers_are_not_params() -> None:
    for name in ("45_buffers_are_not_params", "77_attribute_collision"):
        case = load(name)
        buffers = [parameter for parameter in trace_of(case).parameters if parameter.kind == "buffer"]
        assert sum(buffer.elements for buffer in buffers) == case.EXPECT["buffers"]
        assert sum(buffer.bytes for buffer in buffers) == case.EXPECT.get("buffer_bytes", 8 * case.EXPECT["buffers"])


def test_packed_weights_are_logical_params() -> None:
    case = load("73_dynamic_quantized_linear")
    trace = trace_of(case)
    packed = [parameter for parameter in trace.parameters if parameter.kind == "packed"]
    biases = sum(op.outputs[0].shape[-1] for op in trace.ops if op.name.startswith("quantized::linear"))
    assert sum(parameter.bytes for parameter in packed) == case.EXPECT["weight_bytes_int8"]
    assert sum(parameter.elements for parameter in packed) + biases == case.EXPECT["params_logical"]


def test_embedding_reads_the_rows_it_touches() -> None:
    case = load("55_long_and_bool_inputs")
    trace = trace_of(case)
    (embedding,) = (cost for op, cost in zip(trace.ops, costs(trace), strict=True) if op.name == "aten::embedding")
    assert embedding.read == case.EXPECT["embedding_read_bytes"]


def test_causal_attention_counts_in_full_or_what_a_flash_kernel_runs() -> None:
    case = load("33_sdpa_causal")
    trace = trace_of(case)
    assert sum(cost.macs for cost in costs(trace)) == case.EXPECT["macs"]
    assert sum(cost.macs for cost in costs(trace, causal="half")) == case.EXPECT["macs_causal"]
    full = load("35_attention_at_operator")  # a mask that is not declared causal is none of its business
    assert sum(cost.macs for cost in costs(trace_of(full), causal="half")) == full.EXPECT["macs"]


def test_a_decode_step_reads_its_cache_and_is_bound_by_memory_everywhere() -> None:
    from modelstat.hardware.database import all_gpus

    case = load("37_kv_cache_decode_step")
    trace = trace_of(case)
    returned = [value.bytes for value in trace.values if value.output]
    assert sum(sorted(returned)[1:]) == case.EXPECT["kv_cache_bytes"]  # all but the hidden state
    bounds = {roofline(trace, costs(trace), gpu).bound for gpu in all_gpus()}
    assert bounds <= {"memory", None}


def test_a_layer_that_is_not_called_has_params_and_is_named() -> None:
    case = load("43_unused_submodule")
    trace = trace_of(case)
    called = {module.path for module in trace.modules if module.calls}
    assert never_called(trace) == ["unused"]
    own = [each.elements for each in trace.parameters if trace.modules[each.module].path in called]
    assert sum(own) == case.EXPECT["params_called"]


def test_frozen_parameters_are_params() -> None:
    case = load("31_transformer_encoder_fastpath")
    trainable = sum(each.elements for each in trace_of(case).parameters if each.trainable)
    assert trainable == case.EXPECT["trainable"]


def test_modes_stay_as_they_are() -> None:
    case = load("47_frozen_bn_inside_training_model")
    model, inputs = built(case)
    trace = capture(model, inputs)
    assert [module.training for module in model.modules()] == case.EXPECT["modes"]
    assert [module.training for module in trace.modules] == case.EXPECT["modes"]


def test_a_ghost_module_beside_the_convolution_it_replaces() -> None:
    case = load("49_ghost_module_vs_conv")
    plain = capture(nn.Conv2d(64, 128, 3, padding=1, bias=False), (torch.zeros(1, 64, 14, 14),))
    assert counts(plain)[1] == case.EXPECT["macs_plain_conv"]
    assert round(case.EXPECT["macs_plain_conv"] / case.EXPECT["macs"], 2) == 1.97


def test_the_samples_of_resampling_and_deformable_convolution() -> None:
    case = load("57_interpolate_scale_factor")
    outputs = {op.name: op.outputs[0].elements for op in trace_of(case).ops}
    assert outputs["aten::upsample_bilinear2d"] == case.EXPECT["bilinear_elements"]
    case = load("59_deform_conv2d")
    (op,) = (op for op in trace_of(case).ops if op.name == "torchvision::deform_conv2d")
    # Each sample has two offsets, which all channels of the input share.
    assert op.inputs[op.names.index("offset")].elements // 2 * op.inputs[0].shape[1] == case.EXPECT["bilinear_samples"]


def test_attributes_and_hooks_of_the_users_are_left_alone() -> None:
    case = load("77_attribute_collision")
    model, inputs = built(case)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    hooks = list(model.conv._forward_hooks.values())  # type: ignore[union-attr]
    capture(model, inputs)
    after = model.state_dict()
    assert (after.keys() == state.keys() and all(torch.equal(after[name], state[name]) for name in state)) is case.EXPECT[
        "state_dict_unchanged"
    ]
    assert (list(model.conv._forward_hooks.values()) == hooks) is case.EXPECT["user_hook_kept"]  # type: ignore[union-attr]
    assert model.seen == []
    model(*inputs)
    assert model.seen == [(1, 4, 4, 4)]
