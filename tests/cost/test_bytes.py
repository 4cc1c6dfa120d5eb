"""MemRead and MemWrite, one op of every family: products of its shapes, at 4 bytes for a float32 and 8 for an index.

The families' own files have the exceptions; tests/cost/test_real_calls.py compares with the bytes of torch's own tensors.
"""

from __future__ import annotations

import pytest

from modelstat.cost.registry import FAMILIES, cost_of
from modelstat.records import Op
from tests.cost.ops import op, tensor, unary

HEADS = {"query": (2, 4, 10, 16), "key": (2, 2, 12, 16), "value": (2, 2, 12, 24)}
SCAN = {"u": (2, 32, 100), "delta": (2, 32, 100), "A": (32, 16), "B": (2, 16, 100), "C": (2, 16, 100)}
CELL = {"input": (3, 7, 12), "h0": (1, 3, 16), "weight_ih": (48, 12), "weight_hh": (48, 16), "bias_ih": (48,), "bias_hh": (48,)}
DEFORMED = {"input": (2, 8, 12, 12), "weight": (16, 8, 3, 3), "offset": (2, 18, 12, 12), "mask": (2, 9, 12, 12), "bias": (16,)}
PACKED = {"weight_shape": [32, 64], "weight_dtype": "qint8", "weight_bytes": 32 * 64, "bias": True}

# the op, bytes read, bytes written
ROWS: dict[str, tuple[Op, int, int]] = {
    "activation": (unary("aten::gelu", (4, 6), "float16"), 2 * 24, 2 * 24),
    "attention": (
        op("modelstat::attention", HEADS, (2, 4, 10, 24)),
        4 * (2 * 4 * 10 * 16 + 2 * 2 * 12 * (16 + 24)), 4 * 2 * 4 * 10 * 24,
    ),
    "convolution": (
        op("aten::convolution", {"input": (2, 4, 9, 9), "weight": (6, 2, 3, 3), "bias": (6,)}, (2, 6, 7, 7), groups=2),
        4 * (2 * 4 * 81 + 6 * 2 * 9 + 6), 4 * 2 * 6 * 49,
    ),
    "copy": (op("aten::cat", {"tensors": [(2, 3), (2, 5)]}, (2, 8), dim=1), 4 * (6 + 10), 4 * 16),
    "elementwise": (op("aten::add", {"self": (4, 6), "other": (6,)}, (4, 6)), 4 * (24 + 6), 4 * 24),
    "embedding": (op("aten::embedding", {"weight": (50, 12), "indices": tensor((4,), "int64")}, (4, 12)), 4 * 4 * 12 + 8 * 4, 4 * 48),
    "fft": (op("aten::_fft_r2c", {"self": (3, 64)}, tensor((3, 33), "complex64"), dim=[1], onesided=True), 4 * 3 * 64, 8 * 3 * 33),
    "gather": (op("aten::index_select", {"self": (100, 8), "index": tensor((5,), "int64")}, (5, 8), dim=0), 4 * 40 + 8 * 5, 4 * 40),
    "linalg": (op("aten::linalg_solve_triangular", {"self": (2, 5, 5), "B": (2, 5, 3)}, (2, 5, 3)), 4 * (50 + 30), 4 * 30),
    "loss": (op("aten::mse_loss", {"self": (8, 10), "target": (8, 10)}, (8, 10), reduction=0), 4 * 2 * 80, 4 * 80),
    "matmul": (op("aten::bmm", {"self": (3, 5, 8), "mat2": (3, 8, 7)}, (3, 5, 7)), 4 * 3 * (5 * 8 + 8 * 7), 4 * 3 * 35),
    "norm": (
        op("aten::native_layer_norm", {"input": (4, 64), "weight": (64,), "bias": (64,)}, (4, 64), (4, 1), (4, 1), unused=(1, 2)),
        4 * (256 + 64 + 64), 4 * 256,
    ),
    "pooling": (
        op("aten::max_pool2d_with_indices", {"self": (1, 4, 8, 8)}, (1, 4, 4, 4), tensor((1, 4, 4, 4), "int64"), kernel_size=[2, 2]),
        4 * 256, (4 + 8) * 64,
    ),
    "quantized": (op("quantized::linear_dynamic", {"X": (4, 64)}, (4, 32), **PACKED), 4 * 256 + 32 * 64 + 4 * 32, 4 * 128),  # type: ignore[arg-type]
    "random": (op("aten::native_dropout", {"input": (40,)}, (40,), tensor((40,), "bool"), train=True), 4 * 40, (4 + 1) * 40),
    "reduction": (op("aten::sum", {"self": (4, 8, 10)}, (4, 8), dim=[2]), 4 * 320, 4 * 32),
    "resample": (op("aten::upsample_bilinear2d", {"self": (1, 4, 6, 6)}, (1, 4, 12, 12)), 4 * 144, 4 * 576),
    "rnn": (
        op("modelstat::gru_layer", CELL, (3, 7, 16), (1, 3, 16), steps=21, gates=3, hidden=16, batch=3),
        4 * (3 * 7 * 12 + 48 + 48 * 12 + 48 * 16 + 2 * 48), 4 * (3 * 7 * 16 + 48),
    ),
    "softmax": (unary("aten::_softmax", (4, 8, 10), dim=-1), 4 * 320, 4 * 320),
    "sort": (op("aten::topk", {"self": (4, 100)}, (4, 5), tensor((4, 5), "int64"), k=5), 4 * 400, (4 + 8) * 20),
    "sparse": (op("aten::mm", {"self": (20, 30), "mat2": (30, 8)}, (20, 8), nnz=50), 50 * (4 + 2 * 8) + 4 * 240, 4 * 160),
    "ssm": (op("mamba_ssm::selective_scan_fwd", SCAN, (2, 32, 100)), 4 * (2 * 6400 + 512 + 2 * 3200), 4 * 6400),
    "view": (op("aten::_local_scalar_dense", {"self": ()}), 4, 0),
    "vision": (
        op("torchvision::deform_conv2d", DEFORMED, (2, 16, 12, 12), use_mask=True),
        4 * (2 * 8 * 144 + 16 * 8 * 9 + 2 * 18 * 144 + 2 * 9 * 144 + 16), 4 * 2 * 16 * 144,
    ),
}  # fmt: skip


@pytest.mark.parametrize("family", ROWS)
def test_bytes(family: str) -> None:
    made, read, write = ROWS[family]
    assert (cost_of(made).read, cost_of(made).write) == (read, write)


def test_every_family_has_a_row() -> None:
    assert sorted(ROWS) == sorted(FAMILIES)
    # A sparse product is a product by name.
    found = {family: cost_of(made).family for family, (made, _, _) in ROWS.items()}
    assert found == {family: family for family in ROWS} | {"sparse": "matmul"}
