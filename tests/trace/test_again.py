"""A walk records the same whether it works every op out or remembers it from another walk, and whatever ran before it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from modelstat.records import Trace
from modelstat.trace.capture import capture

CASES = sorted((Path(__file__).parents[1] / "cases").glob("*.py"))
Forgetful = Callable[[], AbstractContextManager[None]]
WAYS: dict[str, dict[str, Any]] = {
    "plain": {}, "training": {"training": True}, "autocast": {"precision_name": "amp-bf16"}, "channels last": {"channels_last": True},
}  # fmt: skip

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of torch.ao and torch.jit
    pytest.mark.filterwarnings("ignore::UserWarning"),  # of quantised, sparse, resized and nested tensors
]


def told(walk: Callable[[], Trace]) -> Trace | str:
    """The trace, or what was raised instead."""
    try:
        return walk()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def same(walk: Callable[[], Trace], forgetful: Forgetful) -> Trace | str:
    """Asserts that four walks in a row, which remember more and more, are like one that remembers nothing."""
    with forgetful():
        plain = told(walk)
    for _ in range(4):
        found = told(walk)
        assert found == plain
        assert msgspec.json.encode(found) == msgspec.json.encode(plain)  # (0.0 equals -0.0)
    return plain


@pytest.mark.parametrize("way", ["plain", "training"])
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_small_models(path: Path, way: str, forgetful: Forgetful) -> None:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    case = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(case)
    model, inputs = case.build()
    same(lambda: capture(model, inputs, getattr(case, "KWARGS", {}), **WAYS[way]), forgetful)


class Call(nn.Module):
    lengths: Tensor

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.ones(4))
        self.linear, self.norm = nn.Linear(4, 4), nn.BatchNorm2d(4)
        self.register_buffer("lengths", torch.tensor([2, 3]))

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def out_of_itself_and_of_another(m: Call, x: Tensor) -> Any:
    first = torch.add(x, 1, out=x)
    other = torch.empty(2, 4)
    second = torch.add(x, 1, out=other)
    return first * 2, second * 3, other + 1


def out_of_a_part(m: Call, x: Tensor) -> Any:
    y = x.reshape(4, 2).clone()
    torch.sum(y, 1, out=y[:, 0])
    other = torch.empty(4)
    return torch.sum(y, 1, out=other) * 2, other + 1


def out_that_grows(m: Call, x: Tensor) -> Any:
    outs = [torch.empty(0), torch.empty(0)]
    for out in outs:
        torch.add(x, 1, out=out)
    return [out * 2 for out in outs]


def inference_inside(m: Call, x: Tensor) -> Any:
    with torch.inference_mode():
        made = F.linear(x, m.linear.weight).relu()
        turned, of_outside = made.t(), x.t()
        twice = of_outside.t()
    return made.t() * 1, turned.t() + 1, of_outside * 1, twice + 1, made.view(-1).clone(), of_outside.t().t()


def gradients_on_and_off(m: Call, x: Tensor) -> Any:
    one = x * m.weight
    with torch.no_grad():
        two = x * m.weight + 1
    with torch.enable_grad():
        three = x * m.weight
    return one, two, three


def data_replaced(m: Call, x: Tensor) -> Any:
    y = x * 2
    y.data = x + 1
    z = y * 2
    y.data = torch.ones(3, 3) * x[0, 0]
    m.weight.data = x[0] * 2
    return y * 2, z, x * m.weight


def resized_and_set(m: Call, x: Tensor) -> Any:
    y, z = x * 2, x * 3
    y.resize_(8)
    w = y * 2
    y.resize_(20)
    z.set_(y.untyped_storage(), 1, (3,), (1,))
    return w, y * 2, z * 2


def views_of_views(m: Call, x: Tensor) -> Any:
    a = x * 1
    b = a[:, 1:]
    c = b[1:]
    d = c.t()
    d.add_(1)
    e = a.view(-1)[3:]
    e.mul_(2)
    return a, b, c, d, e, x.view(torch.int8) * 2, x.as_strided((2, 2), (1, 3)), x.unfold(1, 2, 1)


def in_place(m: Call, x: Tensor) -> Any:
    y = x + 1
    y += y
    y[0] = y[1]
    y[:, 0].fill_(3)
    y.t_()
    y.unsqueeze_(0)
    y.transpose_(1, 2)
    return y


def conjugated_and_negated(m: Call, x: Tensor) -> Any:
    z = torch.view_as_complex(x.reshape(-1, 2).contiguous())
    c = z.conj()
    n = c.imag
    return n * 2, n.contiguous(), c.clone(), c.resolve_conj(), torch.neg(n), (z * c).real, torch._neg_view(x).t().contiguous()


def default_dtypes(m: Call, x: Tensor) -> Any:
    n = torch.ones(3, dtype=torch.int64)
    before = n / 2
    torch.set_default_dtype(torch.float64)
    between = n / 2
    torch.set_default_dtype(torch.float32)
    return before, between, n / 2


def casts(m: Call, x: Tensor) -> Any:
    results = [m.linear(x)]
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype):
            results += [m.linear(x), m.linear(x)]
    return (*results, m.linear(x))


def known_values(m: Call, x: Tensor) -> Any:
    i = torch.arange(3)
    j = i + 1
    k = (i * x[0, 0]).long()
    zeros = torch.zeros(4)
    shared = zeros.view(2, 2)
    zeros.add_(x[0])
    part = x[:, : int(j.sum()) - 2]
    i.copy_(k)
    mask = torch.arange(4) > 1
    return i * 2 + k, shared + 1, part, torch.zeros(int(m.lengths.sum())), x[:, mask], (x * 2)[:, mask], x.new_zeros(3) + x[0, 0]


def one_value_twice(m: Call, x: Tensor) -> Any:
    a = x[0]
    return torch.cat([a, a]), torch.cat([a, x[1]]), torch.stack([a, a]), a + a, a + x[1]


def let_go(m: Call, x: Tensor) -> Any:
    kept = []
    for _ in range(5):
        x = x * 1.5
        kept.append(x)
    del kept[1:3]
    return kept[0] + 1


def goes_on_after_errors(m: Call, x: Tensor) -> Any:
    for wrong in (lambda: x @ x, lambda: x.view(3)):
        with pytest.raises(RuntimeError):
            wrong()  # type: ignore[no-untyped-call]
    return x * 2


def by_chance(m: Call, x: Tensor) -> Any:
    generator = torch.Generator()
    return F.dropout(x, 0.5, True), F.dropout(x, 0.5, True), torch.rand_like(x), torch.rand(3, generator=generator), torch.randn(3)


def signed_zeros(m: Call, x: Tensor) -> Any:
    return x * 0.0, x * -0.0


def inference_tensors_kept(m: Call, x: Tensor) -> Any:
    with torch.inference_mode():
        made = m.weight * 2
    return x * made.view(1, 4)


def norms(m: Call, x: Tensor) -> Any:
    y = x.reshape(2, 4, 1, 1)
    return m.norm(y), F.batch_norm(y, torch.zeros(4), torch.ones(4), training=True), F.batch_norm(y, None, None, training=True)


def walked_inside(m: Call, x: Tensor) -> Any:
    return x * len(capture(nn.Linear(4, 3), (torch.zeros(2, 4),)).ops)


CALLS = (
    out_of_itself_and_of_another, out_of_a_part, out_that_grows, inference_inside, gradients_on_and_off, data_replaced, resized_and_set,
    views_of_views, in_place, conjugated_and_negated, default_dtypes, casts, known_values, one_value_twice, let_go, goes_on_after_errors,
    by_chance, signed_zeros, inference_tensors_kept, norms, walked_inside,
)  # fmt: skip


@pytest.mark.parametrize("way", [*WAYS, "inference"])
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_odd_ops(call: Callable[..., Any], way: str, forgetful: Forgetful) -> None:
    def walk() -> Trace:
        return capture(Call(call).eval(), (torch.zeros(2, 4),), **WAYS.get(way, {}))

    with torch.inference_mode(way == "inference"):
        found = same(walk, forgetful)
    if way == "plain":
        assert isinstance(found, Trace), found


def test_what_a_walk_inside_another_does_is_not_recorded() -> None:
    names = [op.name for op in capture(Call(walked_inside), (torch.zeros(2, 4),)).ops]
    assert "aten::addmm" not in names
    assert names[-1] == "aten::mul"


class Special(Tensor):
    """A tensor of a class of its own, of which torch itself makes the fake."""


class Changing(nn.Module):
    """Changes a buffer and the gradient of a parameter, both of a class of their own."""

    table: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.ones(4, 3).as_subclass(Special))
        self.weight = type("Weight", (nn.Parameter,), {})(torch.ones(4, 3))

    def forward(self, x: Tensor) -> Tensor:
        gradient = self.weight.grad
        self.table.t_()
        y: Tensor = x @ self.weight if gradient is None else x @ gradient
        return y @ self.table if self.table.shape[0] == 3 else y


@pytest.mark.parametrize("training", [False, True])
def test_what_one_walk_writes_to_no_other_reads(training: bool) -> None:
    model = Changing()
    first, second, third = (capture(model, (torch.zeros(2, 4),), training=training) for _ in range(3))
    assert first == second == third
    assert first.outputs == ((2, 4),)  # (2, 4) x (4, 3) x (3, 4)


def test_a_trace_is_its_owners() -> None:
    """What is remembered of an op is in no trace."""
    for _ in range(3):
        trace = capture(Call(lambda m, x: x * 2), (torch.zeros(2, 4),))
        (op,) = trace.ops
        assert op.arguments["other"] == 2
        op.arguments["other"] = 999
