"""Bytes and MACs of ops that torch really runs, against the bytes that its own tensors occupy and products written out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from modelstat.cost.registry import FAMILIES, cost_of, costs
from modelstat.trace.capture import capture
from tests.cost.recording import record, tensors

aten: Any = torch.ops.aten

# "Each input read once, each output written once", in torch's own bytes.
PLAIN: list[tuple[Callable[..., Any], list[Tensor]]] = [
    (torch.add, [torch.ones(4, 6), torch.ones(6)]),
    (torch.mul, [torch.ones(5, dtype=torch.float64), torch.ones(3, 5, dtype=torch.float64)]),
    (torch.eq, [torch.ones(4, 6), torch.ones(4, 6)]),
    (torch.mm, [torch.ones(4, 6), torch.ones(6, 5)]),
    (torch.bmm, [torch.ones(2, 4, 6, dtype=torch.bfloat16), torch.ones(2, 6, 5, dtype=torch.bfloat16)]),
    (F.linear, [torch.ones(4, 6), torch.ones(5, 6), torch.ones(5)]),
    (F.conv2d, [torch.ones(2, 3, 9, 9), torch.ones(4, 3, 3, 3), torch.ones(4)]),
    (F.conv_transpose2d, [torch.ones(2, 3, 9, 9), torch.ones(3, 4, 3, 3)]),
    (F.relu, [torch.ones(7, 3)]),
    (F.gelu, [torch.ones(7, 3, dtype=torch.float16)]),
    (lambda x: x.softmax(-1), [torch.ones(7, 3)]),
    (lambda x: x.sum(1), [torch.ones(7, 3)]),
    (lambda x: x.mean((2, 3)), [torch.ones(2, 3, 5, 5)]),
    (lambda x, y: torch.cat([x, y], 1), [torch.ones(2, 3), torch.ones(2, 5)]),
    (lambda x: x.half(), [torch.ones(9, 9)]),
    (lambda x: x.clone(), [torch.ones(9, 9, dtype=torch.int64)]),
    (lambda x: F.pad(x, (1, 1)), [torch.ones(3, 4)]),
    (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), [torch.ones(1, 3, 4, 4)]),
    (lambda x: F.avg_pool2d(x, 2), [torch.ones(1, 3, 8, 8)]),
    (lambda x: F.adaptive_avg_pool2d(x, (3, 2)), [torch.ones(1, 3, 8, 8)]),
    (lambda x: torch.fft.fft(x), [torch.ones(4, 16, dtype=torch.complex64)]),
    (lambda x: torch.sort(x), [torch.rand(4, 16)]),
    (lambda x: torch.cumsum(x, 0), [torch.ones(4, 16)]),
    (lambda x: x.t().contiguous(), [torch.ones(4, 16)]),
    (lambda c, x, y: torch.where(c, x, y), [torch.ones(3, dtype=torch.bool), torch.ones(3), torch.ones(3)]),
    (lambda x, grid: F.grid_sample(x, grid, align_corners=False), [torch.ones(1, 2, 5, 5), torch.zeros(1, 3, 3, 2)]),
    (lambda x, w, b: torch.native_layer_norm(x, [6], w, b, 1e-5), [torch.ones(4, 6), torch.ones(6), torch.ones(6)]),
    (
        lambda x, w, b, mean, var: torch.native_batch_norm(x, w, b, mean, var, False, 0.1, 1e-5),
        [torch.ones(2, 3, 5, 5), torch.ones(3), torch.zeros(3), torch.zeros(3), torch.ones(3)],
    ),
    (
        lambda q, k, v: aten._scaled_dot_product_flash_attention_for_cpu(q, k, v),
        [torch.ones(2, 4, 6, 8), torch.ones(2, 4, 7, 8), torch.ones(2, 4, 7, 8)],
    ),
    # Each row and element once: a table is read as a whole.
    (lambda table, rows: F.embedding(rows, table), [torch.ones(7, 5), torch.arange(7)]),
    (lambda x, places: x.gather(1, places), [torch.ones(2, 5), torch.arange(5).repeat(2, 1)]),
    (lambda x: torch.linalg.cholesky_ex(x), [torch.eye(4)]),
    (lambda a, b: torch.linalg.solve_triangular(a, b, upper=True), [torch.eye(4), torch.ones(4, 3)]),
    (F.mse_loss, [torch.ones(4, 6), torch.zeros(4, 6)]),
    (torch.bernoulli, [torch.full((4, 6), 0.5)]),
    (lambda x: aten.fake_quantize_per_tensor_affine_cachemask(x, 0.1, 0, 0, 255), [torch.ones(4, 6)]),
]

FAMILIES_WITHOUT = {"rnn", "sparse", "ssm", "view", "vision"}
"""Measured below (rnn, sparse, vision); without a kernel that runs here (ssm); without bytes (view)."""


@pytest.mark.parametrize(("call", "inputs"), PLAIN)
def test_bytes_of_torchs_own_tensors(call: Callable[..., Any], inputs: list[Tensor]) -> None:
    ops = record(call, *inputs)
    (cost,) = [cost_of(op) for op in ops]
    outputs = list(tensors(call(*inputs)))
    assert cost.known == "formula"
    assert cost.read == sum(tensor.element_size() * tensor.numel() for tensor in inputs)
    assert cost.write == sum(tensor.element_size() * tensor.numel() for tensor in outputs)


def test_every_family_runs() -> None:
    found = {cost_of(op).family for call, inputs in PLAIN for op in record(call, *inputs)}
    assert found == set(FAMILIES) - FAMILIES_WITHOUT


def occupied(*given: Tensor) -> int:
    return sum(tensor.untyped_storage().nbytes() for tensor in given)


def test_bytes_of_a_recurrent_layer() -> None:
    layer, x, states = nn.LSTM(12, 16), torch.ones(7, 3, 12), (torch.zeros(1, 3, 16), torch.zeros(1, 3, 16))
    trace = capture(layer, (x, states))
    (cost,) = (one for one in costs(trace) if one.macs)
    output, (hidden, cell) = layer(x, states)
    assert cost.read == occupied(x, *states, *layer.parameters())
    assert cost.write == sum(tensor.nbytes for tensor in (output, hidden, cell))


@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")
def test_bytes_of_a_sparse_product() -> None:
    matrix, x = torch.eye(5).to_sparse(), torch.ones(5, 3)
    (cost,) = (one for one in costs(capture(Product(), (matrix, x))) if one.macs)
    assert cost.read == occupied(matrix.indices(), matrix.values(), x)
    assert cost.write == torch.sparse.mm(matrix, x).nbytes


class Product(nn.Module):
    def forward(self, matrix: Tensor, x: Tensor) -> Tensor:
        return torch.sparse.mm(matrix, x)


def test_bytes_of_torchvisions_ops() -> None:
    ops = pytest.importorskip("torchvision.ops", reason="torchvision has the ops")
    x, boxes = torch.ones(1, 3, 8, 8), torch.tensor([[0.0, 0, 0, 4, 4], [0, 2, 2, 7, 7]])
    weight, offset, mask, bias = torch.ones(4, 3, 3, 3), torch.zeros(1, 18, 8, 8), torch.ones(1, 9, 8, 8), torch.ones(4)
    rows: list[tuple[Callable[..., Tensor], list[Tensor]]] = [
        (lambda x, boxes: ops.roi_align(x, boxes, 3), [x, boxes]),
        (
            lambda x, offset, weight, bias, mask: ops.deform_conv2d(x, offset, weight, bias, padding=1, mask=mask),
            [x, offset, weight, bias, mask],
        ),
    ]
    for call, inputs in rows:
        (cost,) = (cost_of(op) for op in record(call, *inputs))
        assert (cost.read, cost.write) == (occupied(*inputs), call(*inputs).nbytes)


X = torch.rand(2, 6, 32)
IMAGE = torch.rand(1, 4, 6, 6)
lstm = nn.LSTM(12, 16, num_layers=2, bidirectional=True, batch_first=True, proj_size=8)

# (call, inputs, MACs of all its ops): torch decides which ops it runs, the sum must not depend on it
MACS: list[tuple[Callable[..., Any], tuple[Any, ...], int]] = [
    (partial(torch.einsum, "bi,ir,rj->bj"), (torch.rand(10, 32), torch.rand(32, 4), torch.rand(4, 48)), 10 * 32 * 4 + 10 * 4 * 48),
    (partial(torch.einsum, "bhld,bhsd->bhls"), (torch.rand(2, 3, 5, 8), torch.rand(2, 3, 7, 8)), 2 * 3 * 5 * 7 * 8),
    # from left to right, which is also the cheapest order
    (
        partial(torch.einsum, "ai,ij,jk,kb->ab"), (torch.rand(2, 3), torch.rand(3, 4), torch.rand(4, 5), torch.rand(5, 6)),
        2 * 3 * 4 + 2 * 4 * 5 + 2 * 5 * 6,
    ),
    (torch.matmul, (torch.rand(2, 1, 6, 5), torch.rand(4, 5, 7)), 2 * 4 * 6 * 7 * 5),
    (partial(F.conv2d, stride=2, padding=1, groups=2), (IMAGE, torch.rand(6, 2, 3, 3)), 9 * 6 * 2 * 9),
    (torch.mv, (torch.rand(6, 9), torch.rand(9)), 54),
    (torch.dot, (torch.rand(9), torch.rand(9)), 9),
    (torch.addmv, (torch.rand(6), torch.rand(6, 9), torch.rand(9)), 54),
    (torch.addbmm, (torch.rand(5, 7), torch.rand(3, 5, 8), torch.rand(3, 8, 7)), 3 * 5 * 8 * 7),
    (nn.Linear(64, 32), (torch.rand(64),), 64 * 32),
    (nn.Conv1d(4, 8, 3, padding="same"), (torch.rand(1, 4, 10),), 10 * 8 * 12),
    (nn.Conv2d(24, 48, 5, padding=2, groups=24), (torch.rand(1, 24, 20, 20),), 400 * 48 * 25),
    (nn.Conv3d(2, 3, 3, dilation=2), (torch.rand(1, 2, 7, 7, 7),), 27 * 3 * 2 * 27),
    (nn.ConvTranspose1d(8, 4, 5, stride=3, padding=1, output_padding=1), (torch.rand(1, 8, 10),), 10 * 8 * 4 * 5),
    (nn.MultiheadAttention(32, 4, batch_first=True).eval(), (X, X, X), 12 * 4 * 1024 + 2 * 2 * 36 * 32),
    (nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval(), (X,), 12 * 8192 + 2 * 2 * 36 * 32),
    (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), (torch.rand(1, 4, 32, 16),), 4 * 32 * 32 * 32),
    (lstm, (torch.rand(4, 7, 12),), 28 * (2 * (64 * 20 + 128) + 2 * (64 * 24 + 128))),
    (nn.GRU(6, 10), (torch.rand(5, 2, 6),), 10 * 30 * 16),
    (nn.RNN(6, 10), (torch.rand(5, 2, 6),), 10 * 10 * 16),
    (nn.LSTMCell(6, 10), (torch.rand(3, 6),), 3 * 40 * 16),
    (nn.GRUCell(6, 10), (torch.rand(3, 6),), 3 * 30 * 16),
    (nn.Bilinear(3, 6, 4), (torch.rand(5, 3), torch.rand(5, 6)), 5 * 4 * 3 * 6),
    (lambda w, x: F.fold(w @ F.unfold(x, 3, padding=1), (6, 6), 1), (torch.rand(8, 36), IMAGE), 36 * 288),
    (F.affine_grid, (torch.rand(2, 2, 3), [2, 1, 5, 7]), 2 * 35 * 2 * 3),
    (torch.chain_matmul, (torch.rand(10, 100), torch.rand(100, 5), torch.rand(5, 50)), 10 * 100 * 5 + 10 * 5 * 50),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("call", "inputs", "macs"), MACS)
def test_macs_whatever_torch_runs(call: Callable[..., Any], inputs: tuple[Any, ...], macs: int) -> None:
    found = [cost_of(op) for op in record(call, *inputs)]
    assert all(cost.known != "unknown" for cost in found)
    assert sum(cost.macs for cost in found) == macs


# Calls without contractions: every op that they fall into is known.
KNOWN: list[Callable[[], Any]] = [
    # norms
    lambda: F.layer_norm(X, (32,)), lambda: F.rms_norm(X, (32,)), lambda: F.group_norm(IMAGE, 2), lambda: F.instance_norm(IMAGE),
    lambda: F.batch_norm(IMAGE, torch.zeros(4), torch.ones(4)), lambda: F.batch_norm(IMAGE, None, None, training=True),
    lambda: F.local_response_norm(IMAGE, 2), lambda: F.normalize(X),
    lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 4))(torch.rand(2, 3)),
    # activations
    lambda: F.glu(X), lambda: F.prelu(IMAGE, torch.rand(4)), lambda: F.rrelu(X), lambda: F.softsign(X), lambda: F.tanhshrink(X),
    lambda: F.logsigmoid(X), lambda: F.gumbel_softmax(X), lambda: F.softmin(X), lambda: F.log_softmax(X, -1),
    lambda: F.dropout(X, 0.5, True), lambda: F.alpha_dropout(X, 0.5, True),
    # pooling
    lambda: F.max_pool2d(IMAGE, 2, return_indices=True), lambda: F.lp_pool2d(IMAGE, 2, 2), lambda: F.adaptive_max_pool2d(IMAGE, 2),
    lambda: F.fractional_max_pool2d(IMAGE, 2, output_size=3),
    # reductions, sorting
    lambda: X.std(0), lambda: X.logsumexp(0), lambda: X.norm(), lambda: torch.cdist(X, X), lambda: F.pairwise_distance(X, X),
    lambda: torch.cdist(torch.rand(30, 4), torch.rand(30, 4)), lambda: F.cosine_similarity(X, X), lambda: torch.histc(X, 5),
    lambda: torch.cov(X[0]), lambda: torch.trapezoid(X), lambda: X.diff(), lambda: torch.topk(X, 3), lambda: X.median(),
    lambda: X.unique(), lambda: torch.bucketize(X, torch.arange(5.0)),
    # embedding, gathering, scattering
    lambda: F.embedding(torch.zeros(3, dtype=torch.int64), X[0]), lambda: F.embedding_bag(torch.zeros(2, 3, dtype=torch.int64), X[0]),
    lambda: F.one_hot(torch.arange(3)), lambda: X.gather(1, torch.zeros(2, 1, 32, dtype=torch.int64)), lambda: X[:, torch.tensor([0, 2])],
    lambda: X[X > 0.5], lambda: torch.zeros(5).index_add_(0, torch.tensor([1]), torch.ones(1)),
    lambda: torch.zeros(5).scatter_add_(0, torch.tensor([1]), torch.ones(1)), lambda: X.masked_fill(X > 0, 0.0),
    # moving
    lambda: F.pixel_shuffle(IMAGE, 2), lambda: F.channel_shuffle(IMAGE, 2), lambda: X.roll(1, 1).flip(0), lambda: torch.tril(X),
    lambda: X.repeat_interleave(2, 0), lambda: torch.meshgrid(torch.arange(3), torch.arange(2), indexing="ij"),
    lambda: F.interpolate(IMAGE, size=3, mode="area"), lambda: F.interpolate(IMAGE, size=3, mode="bicubic", antialias=True),
    # transforms, linear algebra, complex numbers
    lambda: torch.fft.rfft2(IMAGE), lambda: torch.stft(torch.rand(100), 16, window=torch.hann_window(16), return_complex=True),
    lambda: torch.linalg.svd(X), lambda: torch.linalg.inv(torch.eye(3)), lambda: torch.linalg.qr(X), lambda: torch.polar(X, X) * 2,
    lambda: torch.kron(X[0], X[0]), lambda: torch.cross(X[..., :3], X[..., :3], -1),
    # random numbers, losses, lists
    lambda: torch.randperm(5), lambda: torch.multinomial(X[0], 2), lambda: torch.rand(3).bernoulli_(0.5),
    lambda: F.cross_entropy(X[0], torch.zeros(6, dtype=torch.int64)), lambda: F.mse_loss(X, X), lambda: F.binary_cross_entropy(X, X),
    lambda: F.kl_div(X, X, reduction="batchmean"), lambda: F.smooth_l1_loss(X, X), lambda: torch._foreach_add([X, IMAGE], 1.0),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(len(KNOWN)))
def test_every_op_is_known(number: int) -> None:
    unknown = {op.name for op in record(KNOWN[number]) if cost_of(op).known == "unknown"}
    assert unknown == set()
