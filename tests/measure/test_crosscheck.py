"""fvcore and FlopCounterMode beside our count: every difference that is explained, and those that are not."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from modelstat.cost.registry import costs
from modelstat.measure import crosscheck as module
from modelstat.measure.crosscheck import crosscheck
from modelstat.measure.explanations import EXTRA, MISSING, OTHER
from modelstat.report.crosscheck import Crosscheck, encode, verdict, write_table
from modelstat.trace.capture import capture

pytestmark = pytest.mark.filterwarnings("ignore:Sparse:UserWarning", "ignore:torch.ao.quantization is deprecated:DeprecationWarning")


class Call(nn.Module):
    """A function as a model."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x @ w

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError


def check(model: nn.Module, *inputs: Any, kwargs: dict[str, Any] | None = None) -> Crosscheck:
    model.eval()
    trace = capture(model, inputs, kwargs)
    return crosscheck(model, inputs, kwargs, trace, costs(trace))


def why(found: Crosscheck) -> set[str]:
    return {text for each in found.differences for text in each.explanations}


def zeros(*shape: int) -> torch.Tensor:
    return torch.zeros(shape)


def attention(q: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, q, q)


def of_nested(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    nested = torch.nested.nested_tensor([a, b], layout=torch.jagged).unflatten(-1, [2, 4]).transpose(1, 2)
    return attention(nested).values()


EYE = torch.eye(4)
SPARSE = EYE.to_sparse()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # compressed rows are in beta, torch says
    ROWS = EYE.to_sparse_csr()
EXPLAINED: list[tuple[Any, tuple[torch.Tensor, ...], dict[str, int], dict[str, int]]] = [
    # model, inputs, what fvcore counts more than we do by reason, what FlopCounterMode counts more
    (nn.BatchNorm2d(3), (zeros(2, 3, 4, 4),), {"batch norm": 2 * 2 * 3 * 16}, {}),
    (nn.LayerNorm(4), (zeros(2, 4),), {"layer norm": 5 * 2 * 4}, {}),
    (nn.GroupNorm(2, 4), (zeros(2, 4, 3),), {"group norm": 5 * 2 * 4 * 3}, {}),
    (nn.InstanceNorm2d(3), (zeros(2, 3, 4, 4),), {"instance norm": 4 * 2 * 3 * 16}, {}),
    (nn.AdaptiveAvgPool2d(1), (zeros(2, 3, 4, 4),), {"average pooling": 2 * 3 * 16}, {}),
    (nn.Upsample(scale_factor=2), (zeros(1, 3, 4, 4),), {"interpolation": 3 * 8 * 8}, {}),
    (Call(lambda x, g: F.grid_sample(x, g, align_corners=False)), (zeros(1, 3, 4, 4), zeros(1, 5, 5, 2)),
     {"grid sampling": 4 * 3 * 5 * 5}, {}),
    (Call(attention), (zeros(1, 2, 3, 4),), {"attention": -2 * 2 * 9 * 4}, {"attention kernel": -2 * 2 * 9 * 4}),
    (Call(Twice.apply), (zeros(2, 3), zeros(3, 4)), {"autograd functions": -2 * 3 * 4}, {}),
    (nn.LSTM(4, 3), (zeros(5, 2, 4),), {"no RNN": -10 * 12 * 7}, {"for RNNs": -10 * 12 * 7}),
    (nn.GRU(4, 3), (zeros(5, 2, 4),), {"no RNN": -10 * 9 * 7}, {}),
    (Call(torch.baddbmm), (zeros(2, 3, 5), zeros(2, 3, 4), zeros(2, 4, 5)), {"baddbmm": -2 * 3 * 4 * 5}, {}),
    (Call(torch.addbmm), (zeros(3, 5), zeros(2, 3, 4), zeros(2, 4, 5)), {"addbmm": -2 * 3 * 4 * 5}, {"addbmm": -2 * 3 * 4 * 5}),
    (Call(torch.mv), (zeros(3, 4), zeros(4)), {"matrix-vector": -3 * 4}, {"for mv": -3 * 4}),
    (Call(torch.dot), (zeros(4), zeros(4)), {"dot product": -4}, {"for dot": -4}),
    (Call(torch.addmv), (zeros(3), zeros(3, 4), zeros(4)), {"addmv": -3 * 4}, {"addmv": -3 * 4}),
    (Call(lambda t: F.affine_grid(t, [1, 3, 4, 4], False)), (zeros(1, 2, 3),), {"affine_grid": -16 * 2 * 3}, {"affine_grid": -16 * 2 * 3}),
    (nn.Bilinear(3, 4, 5), (zeros(2, 3), zeros(2, 4)), {"bilinear": -2 * 5 * 3 * 4}, {"trilinear": -2 * 5 * 3 * 4}),
    (Call(torch.cdist), (zeros(30, 4), zeros(30, 4)), {"distances": -900 * (4 + 2)}, {"distances": -900 * (4 + 2)}),
    (Call(lambda a, b: torch.tensordot(a, b, 1)), (zeros(3, 4), zeros(4, 5)), {"tensordot": -3 * 4 * 5}, {}),
    (Call(torch.inner), (zeros(3, 4), zeros(2, 4)), {"inner": -3 * 4 * 2}, {}),
    (Call(torch.cov), (zeros(3, 5),), {"covariance": -3 * 5 * 3}, {}),
    (Call(lambda *ab: torch.linalg.multi_dot(ab)), (zeros(2, 3), zeros(3, 4), zeros(4, 5)), {"chain": -2 * 3 * 4 - 2 * 4 * 5}, {}),
    (Call(lambda a: torch.linalg.matrix_power(a, 3)), (EYE,), {"power": -2 * 4 * 4 * 4}, {}),
    (nn.Conv3d(2, 3, 3, padding="same"), (zeros(1, 2, 4, 4, 4),), {"padding in words": -64 * 3 * 2 * 27}, {}),
    (Call(torch.matmul), (zeros(2, 1, 3, 4), zeros(5, 4, 6)), {"broadcast": 2 * 3 * 4 * 6 - 2 * 5 * 3 * 4 * 6}, {}),
    (Call(lambda a, b: torch.einsum("i,j->ij", a, b)), (zeros(4), zeros(5)), {"sums nothing": 4 * 5 // 2}, {}),
    # torch multiplies from the left, 2 x 3 x 40 + 2 x 40 x 2; the right-hand product first needs 3 x 40 x 2 + 2 x 3 x 2.
    (
        Call(lambda a, b, c: torch.einsum("ij,jk,kl->il", a, b, c)), (zeros(2, 3), zeros(3, 40), zeros(40, 2)),
        {"cheapest order": 252 - 400}, {},
    ),
    (Call(torch.sparse.mm), (SPARSE, zeros(4, 2)), {"sparse": -4 * 2}, {"sparse": -4 * 2}),
    (Call(torch.matmul), (ROWS, zeros(4, 2)), {}, {"as a dense one": 4 * 4 * 2 - 4 * 2}),
    (Call(torch.addmm), (zeros(4, 2), ROWS, zeros(4, 2)), {}, {"as a dense one": 4 * 4 * 2 - 4 * 2}),
]  # fmt: skip


@pytest.mark.parametrize(("model", "inputs", "fvcore", "flop_counter"), EXPLAINED)
def test_a_difference_has_its_amount_and_its_reason(
    model: nn.Module, inputs: tuple[torch.Tensor, ...], fvcore: dict[str, int], flop_counter: dict[str, int]
) -> None:
    found = check(model, *inputs)
    assert not found.unexplained
    for name, expected in (("fvcore", fvcore), ("FlopCounterMode", flop_counter)):
        if name in found.failures:
            assert not expected
            continue
        assert sum(each.difference[name] or 0 for each in found.differences) == sum(expected.values())
        texts = [text for text in why(found) if text.startswith(name)]
        assert len(texts) == len(expected)
        assert all(any(words in text for text in texts) for words in expected)


def test_deformable_and_quantised_layers() -> None:
    ops = pytest.importorskip("torchvision.ops", reason="torchvision has deformable convolution")
    found = check(ops.DeformConv2d(4, 6, 3, padding=1), zeros(1, 4, 5, 5), zeros(1, 18, 5, 5))
    assert [each.difference for each in found.differences] == [{"fvcore": -25 * 6 * 36, "FlopCounterMode": -25 * 6 * 36}]
    assert why(found) == {"fvcore knows no deformable convolution", "FlopCounterMode has no formula for deformable convolution"}
    quantised = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(4, 3)), {nn.Linear}, dtype=torch.qint8)
    found = check(quantised, zeros(2, 4))
    assert why(found) == {"FlopCounterMode has no formula for quantised layers"}
    assert "Got int" in found.failures["fvcore"]


def test_every_row_of_the_table_explains_something() -> None:
    seen: set[str] = set()
    for model, inputs, _, _ in EXPLAINED:
        seen |= why(check(model, *inputs))
    apart = {"deformable", "quantised", "nested"}  # the tests beside this one; nested attention runs on no other counter
    missing = {row.text for row in (*EXTRA, *MISSING, *OTHER)} - seen
    assert {text for text in missing if not any(word in text for word in apart)} == set()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.fc = nn.Linear(8, 5)
        self.spare = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor, *, scale: float = 1.0) -> dict[str, torch.Tensor]:
        x = self.norm(self.conv(x)).flatten(2).transpose(1, 2) * scale
        y = self.attention(x, x, x, need_weights=False)[0]
        return {"out": self.fc(y) + F.linear(x, self.spare.weight)}


def test_modules_of_one_model() -> None:
    """6 x 6 input, so 16 positions: what is missing is 2 x 16 x 16 x 8 of attention, at the module that runs it."""
    found = check(Net(), zeros(1, 3, 6, 6), kwargs={"scale": 2.0})
    rows = {each.path: each.difference for each in found.differences}
    missing = -2 * 16 * 16 * 8
    linear = 16 * 8 * 5  # F.linear with the weight of a layer that is not called: theirs at the root, ours at the layer
    assert rows["norm"] == {"fvcore": 2 * 16 * 8, "FlopCounterMode": 0}
    assert rows["attention"] == {"fvcore": missing, "FlopCounterMode": missing}
    assert set(rows) == {"norm", "attention"}
    total = 16 * 8 * 27 + 16 * 4 * 64 - missing + 2 * linear
    assert found.macs == total
    assert found.counted == {"fvcore": total + missing + 2 * 16 * 8, "FlopCounterMode": total + missing}
    assert verdict(found) == "fvcore and FlopCounterMode: 2 of 7 modules differ, 2 explained"


def test_a_tied_head_and_a_shared_layer_are_explained() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(10, 4)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return F.linear(self.embedding(ids), self.embedding.weight)

    found = check(Tied(), torch.zeros(2, 3, dtype=torch.long))
    assert [(each.path, each.difference) for each in found.differences] == [
        ("", {"fvcore": 6 * 40, "FlopCounterMode": 6 * 40}),
        ("embedding", {"fvcore": -6 * 40, "FlopCounterMode": -6 * 40}),
    ]
    assert not found.unexplained
    assert {text.partition(": ")[2] for text in why(found)} == {module.HELD}

    first, second = nn.Sequential(nn.Linear(4, 4)), nn.Sequential(nn.Linear(4, 4))
    second[0] = first[0]
    found = check(nn.Sequential(first, second), zeros(2, 4))
    assert not found.unexplained
    assert found.counted == {"fvcore": 2 * 2 * 16, "FlopCounterMode": 2 * 2 * 16}


def test_a_wrong_count_stands_out() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8 * 16, 5)).eval()
    trace = capture(model, (zeros(1, 3, 6, 6),))
    wrong = [msgspec.structs.replace(cost, macs=cost.macs - 1) if cost.family == "matmul" else cost for cost in costs(trace)]
    found = crosscheck(model, (zeros(1, 3, 6, 6),), None, trace, wrong)
    assert found.unexplained == 1
    (row,) = (each for each in found.differences if each.unexplained)
    assert (row.path, row.difference, row.unexplained) == ("3", {"fvcore": 1, "FlopCounterMode": 1}, ("fvcore", "FlopCounterMode"))
    file = io.StringIO()
    write_table([found], file)
    assert "UNEXPLAINED (fvcore) UNEXPLAINED (FlopCounterMode)" in file.getvalue()
    assert file.getvalue().endswith("fvcore and FlopCounterMode: 2 of 3 modules differ, 1 explained, 1 UNEXPLAINED\n")


def test_the_model_comes_back_as_it_was() -> None:
    model = Net()
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    trace = capture(model, (zeros(1, 3, 6, 6),))
    model.train()
    crosscheck(model, (zeros(1, 3, 6, 6),), {}, trace, costs(trace))
    assert all(torch.equal(state[name], tensor) for name, tensor in model.state_dict().items())
    assert all(child.training for child in model.modules())
    assert not any(child._forward_hooks or child._forward_pre_hooks for child in model.modules())


def test_what_cannot_be_run_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with torch.device("meta"):
        model = nn.Linear(4, 4)
    found = check(model, zeros(2, 4))
    assert found.counted == {"fvcore": None, "FlopCounterMode": None}
    assert "no weights" in found.failures["fvcore"]
    assert verdict(found) == "no other counter ran"
    with torch.device("meta"):
        large = nn.Linear(50_000, 50_000, bias=False)
    assert "10.0 GB of weights are too large" in check(large, zeros(1, 50_000)).failures["fvcore"]
    monkeypatch.setattr(module, "LARGEST_WORK", 7)
    assert "0 GMACs are too many" in check(nn.Linear(4, 4), zeros(2, 4)).failures["FlopCounterMode"]


def test_the_table_and_the_json() -> None:
    found = check(Net(), zeros(1, 3, 6, 6))
    file = io.StringIO()
    write_table([found, found], file)
    table = file.getvalue()
    assert table.count("Net, batch as given: MACs of each module's own ops") == 2
    (line,) = (line for line in table.split("\n\n")[1].splitlines() if line.startswith("attention"))
    assert " ".join(line.split()) == "attention (MultiheadAttention) 8.19 k 4.10 k -4.10 k 4.10 k -4.10 k [2] [3]"
    assert "[2] fvcore knows no attention" in table
    data = json.loads(encode([found]))
    assert data["schema"] == "modelstat-crosscheck/1"
    assert data["unexplained"] == 0
    assert [row["path"] for row in data["differences"]] == ["norm", "attention"]
    assert len(json.loads(encode([found, found]))) == 2
