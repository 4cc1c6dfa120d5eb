"""Ops that fall apart are written from memory as they are written when they run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.flop_counter import FlopCounterMode

from modelstat.records import Trace
from modelstat.trace.capture import capture
from modelstat.trace.sequences import Remains, Sequences


class Call(nn.Module):
    lengths: Tensor

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.one, self.two = nn.Linear(4, 6), nn.Linear(6, 4, bias=False)
        self.square = nn.Parameter(torch.ones(4, 4))
        self.frozen = nn.Parameter(torch.ones(3, 4, 4), requires_grad=False)
        self.cube = nn.Parameter(torch.ones(3, 4, 4))
        self.register_buffer("lengths", torch.tensor([2, 3]))

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


X = torch.ones(2, 3, 4)


def linears(m: Call, x: Tensor) -> Any:
    return m.one(x), m.one(x[0]), m.one(x[0, 0]), m.one(x.transpose(0, 1)), m.two(m.one(x)), F.linear(x, m.square), m.one(x[:0])


def products(m: Call, x: Tensor) -> Any:
    row = x[0, 0]
    return x @ m.square, x @ row, row @ row, m.square @ row, row @ m.square, x[:, None] @ m.frozen, x[:, None] @ m.cube, x @ x.mT


def einsums(m: Call, x: Tensor) -> Any:
    return (
        torch.einsum("bij,jk->bik", x, m.square),
        torch.einsum("bij,bkj->bik", x, x + 1),
        torch.einsum("bij,jk,kl->bil", x, m.square, m.square + 1),
        torch.einsum("bij->b", x),
        torch.einsum("bij->jib", x),  # a view of the operand
        torch.einsum("bii->bi", x[:, :, :3]),
        torch.einsum("bij->bij", x),
        torch.einsum("i,j->ij", x[0, 0], x[1, 1]),
    )


def chained(m: Call, x: Tensor) -> Any:
    """Results that are changed and looked at through views; some are let go at once."""
    y = m.one(x)
    y += 1
    z = torch.einsum("bij->jib", y)
    z.mul_(2)
    m.two(y)
    del y
    kept = [m.two(z.permute(2, 1, 0)) for _ in range(2)]
    kept[0].view(-1)[:3].zero_()
    return kept[1] + kept[0]


def weights_in_disguise(m: Call, x: Tensor) -> Any:
    """Casts and views of a parameter are still that parameter's module's."""
    half = m.one.weight.to(torch.bfloat16)
    turned = torch.einsum("ij->ji", m.two.weight)
    return F.linear(x.bfloat16(), half), x @ turned[:, :4].contiguous()[:4].t(), F.linear(x, turned[:, :4]), turned @ x[0, 0, :1].expand(4)


def one_tensor_twice(m: Call, x: Tensor) -> Any:
    return torch.einsum("bij,bij->b", x, x), x[0, :, :3] @ x[0, :, :3], m.square @ m.square, F.linear(m.square, m.square)


def known_values(m: Call, x: Tensor) -> Any:
    positions = torch.arange(4).float()
    angles = torch.einsum("i,j->ij", positions, m.lengths.float())
    return x @ angles, x[:, : int((m.lengths @ m.lengths).item()) - 11]


def other_states(m: Call, x: Tensor) -> Any:
    results = [m.one(x)]
    with torch.inference_mode():
        results += [m.one(x), torch.einsum("bij,jk->bik", x, m.square)]
    with torch.autocast("cpu", torch.bfloat16):
        results += [m.one(x), x @ m.square, torch.einsum("bij,jk->bik", x, m.square)]
    with torch.enable_grad():
        results += [m.one(x), x[:, None] @ m.cube]
    results.append(torch.vmap(m.one)(x))
    results.append(torch.func.grad(lambda y: m.one(y).sum())(x))
    results.append(torch.func.functional_call(m.one, {"weight": m.one.weight * 2}, (x,)))
    return results


def with_a_mode_of_the_users(m: Call, x: Tensor) -> Any:
    with FlopCounterMode(display=False) as counter:
        y = m.one(x)
    return y[:, :, : counter.get_total_flops() // (2 * 6 * 4 * 6)]


def into_another(m: Call, x: Tensor) -> Any:
    out = torch.empty(2, 3, 4)
    torch.matmul(x, m.square, out=out)
    return out + m.one(x).sum()


def views_of_parameters(m: Call, x: Tensor) -> Any:
    """They have gradients, also where these are off, and who has any decides which factors of a product are folded."""
    same, diagonal = torch.einsum("ij->ij", m.square), torch.einsum("ii->i", m.square)
    return m.cube.transpose(0, 1) @ same, x @ diagonal, same.requires_grad, diagonal.requires_grad


def derivatives_carried_along(m: Call, x: Tensor) -> Any:
    with forward_ad.dual_level():
        made = F.linear(forward_ad.make_dual(x * 1, x * 2), m.one.weight)
        tangents = forward_ad.unpack_dual(made).tangent
    return tangents, torch.func.jvp(m.one, (x,), (x,))[1], torch.func.jacfwd(m.two)(torch.ones(6) * x[0, 0, 0])


def traced_inside(m: Call, x: Tensor) -> Any:
    return make_fx(lambda y: m.one(y * 2).view(-1))(x)(x)


def autocast_of_another_device(m: Call, x: Tensor) -> Any:
    with torch.autocast("cuda", enabled=False):
        there, weight = x.cpu(), m.one.weight.cpu()
        plain = F.linear(there, weight)
        with torch.autocast("cpu", torch.bfloat16):
            return plain, F.linear(there, weight), F.scaled_dot_product_attention(there, there, there)


CALLS: list[Callable[..., Any]] = [
    linears, products, einsums, chained, weights_in_disguise, one_tensor_twice, known_values, other_states, with_a_mode_of_the_users,
    into_another, views_of_parameters, derivatives_carried_along, traced_inside, autocast_of_another_device,
]  # fmt: skip
Forgetful = Callable[[], AbstractContextManager[None]]
WAYS: dict[str, dict[str, Any]] = {
    "plain": {}, "training": {"training": True}, "half": {"precision_name": "bf16"}, "autocast": {"precision_name": "amp-fp16"},
}  # fmt: skip


def told(walk: Callable[[], Trace]) -> Trace | str:
    try:
        return walk()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_walk_is_like_the_first(call: Callable[..., Any], way: str, forgetful: Forgetful) -> None:
    model = Call(call)
    with forgetful():
        plain = told(lambda: capture(model, (X,), **WAYS[way]))
    for _ in range(4):
        assert told(lambda: capture(model, (X,), **WAYS[way])) == plain


def test_what_a_callback_computes_is_not_recorded() -> None:
    """It is told of every fiftieth op, in the middle of a call that is written from memory."""
    model = Call(lambda m, x: [m.one(x) for _ in range(40)])

    def progress(count: int) -> None:
        nn.Linear(7, 7)(torch.ones(3, 7))
        F.scaled_dot_product_attention(X, X, X)

    first = capture(model, (X,))
    assert [capture(model, (X,), progress=progress) for _ in range(3)] == [first] * 3


@pytest.mark.parametrize(("call", "calls"), [(linears, 8), (products, 6), (einsums, 5), (chained, 4), (one_tensor_twice, 1)])
def test_the_third_walk_writes_from_memory(call: Callable[..., Any], calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All calls but of one tensor with itself, of a row with a matrix, whose result torch squeezes in place, and of views."""
    model, written = Call(call), []
    for _ in range(2):
        capture(model, (X,))
    own = Sequences._written

    def listened(self: Sequences, remains: Remains, operands: Any) -> Tensor:
        written.append(remains)
        return own(self, remains, operands)

    monkeypatch.setattr(Sequences, "_written", listened)
    capture(model, (X,))
    assert len(written) == calls


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_inference_mode_has_sequences_of_its_own(call: Callable[..., Any], forgetful: Forgetful) -> None:
    model = Call(call)

    def walk() -> Trace:
        with torch.inference_mode():
            return capture(model, (X,))

    with forgetful():
        plain = told(walk)
    for _ in range(3):
        told(lambda: capture(model, (X,)))
        assert told(walk) == plain


def test_factors_fold_by_who_has_gradients() -> None:
    """Torch makes one matrix product of x (2, 3, 4) and of a square that has gradients, and a batch of them with one that has none."""

    def walk(trains: bool) -> list[str]:
        model = Call(lambda m, x: x.transpose(0, 1) @ m.square)
        model.square.requires_grad_(trains)
        return [op.name for op in capture(model, (X,)).ops]

    first = walk(True), walk(False)
    assert [(walk(True), walk(False)) for _ in range(3)] == [first] * 3
