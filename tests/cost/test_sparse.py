from __future__ import annotations

from modelstat.cost.registry import cost_of
from tests.cost.ops import op


def test_work_follows_the_non_zeros() -> None:
    moved = 20 * (4 + 2 * 8) + 4 * 20 * 8
    for name, inputs in (
        ("aten::_sparse_addmm", {"self": (20, 8), "mat1": (20, 20), "mat2": (20, 8)}),
        ("aten::addmm", {"self": (20, 8), "mat1": (20, 20), "mat2": (20, 8)}),
    ):
        cost = cost_of(op(name, inputs, (20, 8), nnz=20, beta=0))
        assert (cost.macs, cost.flops, cost.read, cost.write) == (20 * 8, 2 * 20 * 8, moved, 4 * 160)
    product = cost_of(op("aten::mm", {"self": (20, 20), "mat2": (20, 8)}, (20, 8), nnz=20))
    assert (product.macs, product.read) == (20 * 8, moved)


def test_an_addend_is_a_bias() -> None:
    cost = cost_of(op("aten::_sparse_addmm", {"self": (20, 8), "mat1": (20, 20), "mat2": (20, 8)}, (20, 8), nnz=20))
    assert (cost.flops, cost.read) == (2 * 160 + 160, 20 * 20 + 4 * 160 + 4 * 160)


def test_sparse_times_vector() -> None:
    assert cost_of(op("aten::mv", {"self": (20, 30), "vec": (30,)}, (20,), nnz=50)).macs == 50


def test_sampled_product() -> None:
    inputs = {"self": (10, 12), "mat1": (10, 6), "mat2": (6, 12)}
    cost = cost_of(op("aten::sparse_sampled_addmm", inputs, (10, 12), nnz=15))
    assert (cost.macs, cost.flops, cost.activations) == (15 * 6, 2 * 90 + 15, 15)


def test_two_of_four() -> None:
    cost = cost_of(op("aten::_sparse_semi_structured_linear", {"input": (4, 64), "weight": (32, 32), "meta": (32, 4)}, (4, 32)))
    assert cost.macs == 4 * 32 * (64 // 2)


def test_layouts_and_softmax() -> None:
    assert cost_of(op("aten::_to_dense", {"self": (20, 20)}, (20, 20), nnz=20)).flops == 0
    assert cost_of(op("aten::_sparse_softmax", {"self": (20, 20)}, (20, 20), nnz=20)).flops == 100
