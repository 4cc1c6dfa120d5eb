from __future__ import annotations

import pytest

from modelstat.cost.registry import cost_of
from tests.cost.ops import op, tensor

N = 2 * 16 * 8 * 8
STATISTICS = {"weight": (16,), "bias": (16,), "running_mean": (16,), "running_var": (16,)}


def test_batch_norm_at_inference() -> None:
    batch_norm = op("aten::native_batch_norm", {"input": (2, 16, 8, 8), **STATISTICS}, (2, 16, 8, 8), (0,), (0,), training=False)
    cost = cost_of(batch_norm)
    assert (cost.flops, cost.macs, cost.read, cost.write) == (2 * N, 0, 4 * (N + 4 * 16), 4 * N)


def test_batch_norm_in_training_updates_its_statistics() -> None:
    shapes = ((2, 16, 8, 8), (16,), (16,))
    silent = op("aten::native_batch_norm", {"input": shapes[0], **STATISTICS}, *shapes, unused=(1, 2), training=True)
    cost = cost_of(silent)
    assert (cost.flops, cost.read, cost.write) == (7 * N, 4 * (N + 4 * 16), 4 * (N + 2 * 16))
    saying = op(
        "aten::_native_batch_norm_legit", {"input": shapes[0], **STATISTICS}, *shapes, unused=(1, 2), training=True,
        mutates=("running_mean", "running_var"),
    )  # fmt: skip
    assert (cost_of(saying).read, cost_of(saying).write) == (cost.read, cost.write)


def test_instance_norm_has_no_statistics_to_keep() -> None:
    cost = cost_of(op("aten::native_batch_norm", {"input": (1, 32, 8, 8)}, (1, 32, 8, 8), (32,), (32,), unused=(1, 2), training=True))
    assert (cost.flops, cost.write) == (7 * 32 * 64, 4 * 32 * 64)


@pytest.mark.parametrize("name", ["aten::_native_batch_norm_legit_no_training", "aten::_batch_norm_no_update", "aten::batch_norm_elemt"])
def test_inference_variants(name: str) -> None:
    assert cost_of(op(name, {"input": (2, 16, 8, 8), **STATISTICS}, (2, 16, 8, 8))).flops == 2 * N


def test_update_variant() -> None:
    cost = cost_of(
        op("aten::_batch_norm_with_update", {"input": (2, 16, 8, 8), **STATISTICS}, (2, 16, 8, 8), mutates=("running_mean", "running_var"))
    )
    assert (cost.flops, cost.write) == (7 * N, 4 * (N + 32))


@pytest.mark.parametrize(("affine", "flops"), [((), 5), (("weight",), 6), (("weight", "bias"), 7)])
@pytest.mark.parametrize("name", ["aten::native_layer_norm", "aten::native_group_norm"])
def test_layer_and_group_norm(name: str, affine: tuple[str, ...], flops: int) -> None:
    inputs = {"input": (4, 10, 64), **dict.fromkeys(affine, (64,))}
    cost = cost_of(op(name, inputs, (4, 10, 64), (4, 10, 1), (4, 10, 1), unused=(1, 2)))
    assert (cost.flops, cost.write, cost.unit) == (4 * 10 * 64 * flops, 4 * 2560, "vector")
    assert cost.read == 4 * (2560 + 64 * len(affine))


def test_rms_norm() -> None:
    assert cost_of(op("aten::_fused_rms_norm", {"input": (4, 64), "weight": (64,)}, (4, 64), (4, 1), unused=(1,))).flops == 4 * 256
    assert cost_of(op("aten::_fused_rms_norm", {"input": (4, 64)}, (4, 64), (4, 1), unused=(1,))).flops == 3 * 256


def test_weight_norm() -> None:
    assert cost_of(op("aten::_weight_norm_interface", {"v": (8, 12), "g": (8, 1)}, (8, 12), (8, 1))).flops == 3 * 96


def test_renorm_of_the_rows_that_are_looked_up() -> None:
    table = tensor((100, 16))
    cost = cost_of(op("aten::embedding_renorm_", {"self": table, "indices": tensor((5,), "int64")}, table, mutates=("self",)))
    assert (cost.flops, cost.read, cost.write) == (3 * 5 * 16, 4 * 80 + 40, 4 * 80)
