"""What an op returns, remembered: a walk that remembers records the same as one that works everything out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from modelstat.records import Trace
from modelstat.trace import memo
from modelstat.trace.capture import capture


class Call(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Tensor) -> Any:
        return self.function(*args)


def in_place(x: Tensor) -> Tensor:
    y = x + 1
    y.relu_().mul_(2)
    y[:, 0] = 3.0
    y.t_()
    y.unsqueeze_(0)
    return y.squeeze(0) * 2


def scalars(x: Tensor) -> list[Tensor]:
    """1, 1.0 and True are equal as keys of a dict, and are not for dtypes."""
    n = torch.ones(3, dtype=torch.int64)
    return [n * 1, n * 1.0, n * True, n + 2, n + 2.0, n / 2, n // 2, torch.full((2,), 1), torch.full((2,), 1.0), torch.full((2,), True)]


def conjugates(x: Tensor) -> list[Tensor]:
    z = torch.view_as_complex(x.reshape(-1, 2))
    return [z.conj() @ z, z @ z, z.conj().imag + 1, z.imag + 1]


def views(x: Tensor) -> list[Tensor]:
    a, b = x.chunk(2, 1)
    return [
        a + b,
        x.T.contiguous(),
        x.flatten(),
        x.contiguous().view(-1),
        x.expand(3, 2, 4) + x,
        x[:, 1:] * x[:, :-1],
        *x.unbind(0),
        x.as_strided((2, 2), (1, 3)),
    ]


def outs(x: Tensor) -> Tensor:
    out = torch.empty(2, 4)
    torch.add(x, 1, out=out)
    torch.sigmoid_(out)
    return out


def several(x: Tensor) -> Any:
    return x.max(1), x.sort(), torch.linalg.qr(x), F.max_pool1d(x, 2, return_indices=True), x.split([1, 3], 1)


def factories(x: Tensor) -> list[Tensor]:
    return [torch.arange(4), torch.zeros(2, 4, dtype=x.dtype), torch.ones_like(x), x.new_full((2,), 1), torch.rand(4), torch.eye(3)]


CALLS: list[Callable[..., Any]] = [in_place, scalars, conjugates, views, outs, several, factories]


def walk(call: Callable[..., Any], x: Tensor) -> Trace:
    return capture(Call(call), (x,))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("shape", [(2, 4), (4, 2)], ids=["rows", "transposed"])
def test_the_second_walk_is_like_the_first_and_like_one_without_a_memory(
    call: Callable[..., Any], shape: tuple[int, ...], forgetful: Callable[[], AbstractContextManager[None]]
) -> None:
    x = torch.zeros(shape)
    x = x if shape == (2, 4) else x.T  # the same sizes with other strides
    first, second = walk(call, x), walk(call, x)
    with forgetful():
        assert first == second == walk(call, x)


def test_the_default_dtype_is_part_of_the_question() -> None:
    def quotient(x: Tensor) -> Tensor:
        return torch.ones(3, dtype=torch.int64) / 2

    def dtypes() -> list[str]:
        return [op.outputs[0].dtype for op in walk(quotient, torch.zeros(1)).ops if op.name == "aten::div"]

    assert dtypes() == ["float32"]
    torch.set_default_dtype(torch.float64)
    try:
        assert dtypes() == ["float64"]
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_users_op_is_asked_every_time() -> None:
    asked: list[int] = []

    @torch.library.custom_op("modelstat_memo_tests::grow", mutates_args=())
    def grow(x: Tensor) -> Tensor:
        return x.clone()

    @grow.register_fake
    def _(x: Tensor) -> Tensor:
        asked.append(1)
        return torch.empty_like(x)

    for _time in range(2):
        walk(grow, torch.zeros(2))
    assert len(asked) == 2


def test_the_memory_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "LIMIT", 5)
    memo._outputs.clear()
    for size in range(1, 20):
        walk(lambda x: x.exp() + 1, torch.zeros(size))
    assert len(memo._outputs) <= 5
