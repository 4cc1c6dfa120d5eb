"""Ops kept whole: where their routes lead, and where they do not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from modelstat.records import Trace
from modelstat.trace.capture import capture
from modelstat.trace.routes import KEY, routed

X = torch.zeros(5, 2, 3, 4, 8)


class Call(nn.Module):
    """Runs a function."""

    def __init__(self, function: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def names(function: Callable[[torch.Tensor], Any], x: torch.Tensor = X) -> list[str]:
    return [op.name for op in capture(Call(function), (x,)).ops if not op.view]


def attention(x: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(x, x, x)


def in_mode(mode: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    def call(x: torch.Tensor) -> torch.Tensor:
        with mode:
            return attention(x)

    return call


@pytest.mark.parametrize(
    "function",
    [
        attention,
        lambda x: torch.ops.aten.scaled_dot_product_attention(x, x, x),
        lambda x: torch.ops.aten.scaled_dot_product_attention.default(x, x, x),
        in_mode(torch.inference_mode()),
        in_mode(torch.enable_grad()),
    ],
)
def test_one_op_however_it_is_called(function: Callable[[torch.Tensor], Any]) -> None:
    assert names(function) == ["modelstat::attention"]


def test_autocast_casts_before() -> None:
    """Query, key and value are one tensor, cast once for each."""
    assert names(in_mode(torch.autocast("cpu", torch.bfloat16))) == ["aten::_to_copy"] * 3 + ["modelstat::attention"]


FUSED = "aten::_scaled_dot_product_flash_attention_for_cpu"


@pytest.mark.parametrize(
    ("function", "attentions"),
    [
        (lambda x: torch.func.grad(lambda y: attention(y).sum())(x[0]), [FUSED, f"{FUSED}_backward"]),
        (lambda x: torch.func.vjp(attention, x[0])[1](x[0]), [FUSED, f"{FUSED}_backward"]),
        (lambda x: torch.vmap(attention)(x), [FUSED] * len(X)),
    ],
    ids=["grad", "vjp", "vmap"],
)
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
def test_a_transform_sees_the_parts(function: Callable[[torch.Tensor], Any], attentions: list[str]) -> None:
    assert [name for name in names(function) if "attention" in name] == attentions


def test_only_the_walking_thread_takes_the_route() -> None:
    taken: list[str] = []

    def whole(query: torch.Tensor, *rest: Any, **named: Any) -> torch.Tensor:
        taken.append(threading.current_thread().name)
        return query

    with routed(("scaled_dot_product_attention",), lambda name: whole):
        attention(X)
        other = threading.Thread(target=attention, args=(X,))
        other.start()
        other.join()
    attention(X)
    assert taken == [threading.current_thread().name]


def test_the_key_is_off_again_when_a_walk_fails() -> None:
    def fail(x: torch.Tensor) -> None:
        raise RuntimeError("no")

    key = torch._C._dispatch_key_parse(KEY)
    with pytest.raises(Exception, match="no"):
        names(fail)
    assert not torch._C._dispatch_tls_is_dispatch_key_included(key)


def test_a_walk_inside_a_walk_has_routes_of_its_own() -> None:
    inside: list[list[str]] = []

    def nested(x: torch.Tensor) -> torch.Tensor:
        inside.append(names(attention))
        return attention(x)

    assert names(nested) == inside[0] == ["modelstat::attention"]


LSTM_FROM_BEFORE = torch.lstm  # as `from torch import lstm` has it
CALLERS: dict[str, Callable[..., Any]] = {
    "torch.nn": lambda *args: torch._VF.lstm(*args),
    "before": LSTM_FROM_BEFORE,
    "op": torch.ops.aten.lstm,
    "overload": torch.ops.aten.lstm.input,
}


@pytest.mark.parametrize("caller", CALLERS)
def test_an_lstm_stays_whole_however_it_is_called(caller: str) -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.LSTM(4, 5)

        def forward(self, x: torch.Tensor) -> Any:
            state = x.new_zeros(1, 3, 5)
            return CALLERS[caller](x, (state, state), self.cell._flat_weights, True, 1, 0.0, False, False, False)

    assert [op.name for op in capture(Recurrent(), (torch.zeros(7, 3, 4),)).ops] == ["aten::new_zeros", "modelstat::lstm_layer"]


def test_threads_walk_one_after_another() -> None:
    def walk() -> Trace:
        return capture(nn.Sequential(nn.LSTM(4, 5)), (torch.zeros(7, 3, 4),))

    expected = walk()
    found: list[Trace] = []
    threads = [threading.Thread(target=lambda: found.extend(walk() for _ in range(5))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 20
