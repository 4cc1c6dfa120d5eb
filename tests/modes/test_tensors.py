"""Every kind of tensor: other dtypes, subclasses, nested, sparse and packed ones."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import varlen
from torch.utils._pytree import tree_map
from torch.utils.flop_counter import FlopCounterMode

from modelstat.cost.registry import costs
from modelstat.errors import TraceError
from modelstat.trace.capture import capture
from tests.modes.counting import Call, count, parameter, zeros

X = zeros(2, 4)


def fc(bias: bool = True) -> nn.Linear:
    return nn.Linear(4, 4, bias=bias)


class Traced(torch.Tensor):
    """Follows torch's functions, and changes none."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[no-untyped-call]


class Wrapper:
    """Not a tensor, but torch's functions take it for one."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Wrapper:
        return cls(func(*(arg.tensor if isinstance(arg, Wrapper) else arg for arg in args), **(kwargs or {})))


def unwrapped(wrapper: Any) -> Any:
    return wrapper.tensor


class Logged(torch.Tensor):
    """Made of another tensor, below the dispatcher."""

    inner: Any

    @classmethod
    def of(cls, inner: torch.Tensor) -> Logged:
        made: Any = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, strides=inner.stride())
        made.inner = inner
        logged: Logged = made
        return logged

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        given = tree_map(lambda each: each.inner if isinstance(each, Logged) else each, (args, kwargs or {}))
        return tree_map(lambda each: Logged.of(each) if isinstance(each, torch.Tensor) else each, func(*given[0], **given[1]))


def test_tensors_that_override_torch_functions() -> None:
    assert count(fc(), X.as_subclass(Traced)).macs == 32
    assert count(Call(lambda m, x: unwrapped(torch.relu(m.fc(Wrapper(x)))), fc=fc()), X).macs == 32
    assert count(Call(lambda m, x: x @ m.w, w=nn.Parameter(zeros(4, 4).as_subclass(Traced))), X)[:2] == (16, 32)


def test_tensors_with_a_dispatch_of_their_own() -> None:
    counted = count(Call(lambda m, x: m.fc(Logged.of(x)).inner, fc=fc()), X)
    assert [op.name for op in counted.trace.ops if not op.view] == ["aten::addmm"]
    assert counted[:2] == (20, 32)


@pytest.mark.parametrize(
    ("dtype", "macs", "flops"),
    [
        (torch.float64, 32, 64), (torch.bfloat16, 32, 64), (torch.float16, 32, 64),
        (torch.complex64, 32, 8 * 32),  # a complex MAC is 4 real ones
        (torch.int64, 32, 64), (torch.int8, 32, 64),  # operations of integers are counted, though they are no FLOPs
    ],
)  # fmt: skip
def test_dtypes(dtype: torch.dtype, macs: int, flops: int) -> None:
    model = Call(lambda m, x: x @ m.w, w=nn.Buffer(torch.ones(4, 4, dtype=dtype)))
    counted = count(model, torch.ones(2, 4, dtype=dtype))
    (product,) = (cost for cost in costs(counted.trace) if cost.macs)
    assert (counted.macs, product.flops) == (macs, flops)
    assert product.bytes == (2 * 4 + 4 * 4 + 2 * 4) * torch.empty(0, dtype=dtype).element_size()


def test_a_complex_convolution_is_the_three_real_ones_that_torch_runs() -> None:
    """(a + ib) (c + id) takes the real products a c, b d and (a + b) (c + d). FlopCounterMode sees the same three."""
    data, weight = torch.zeros(2, 3, 8, 8, dtype=torch.complex64), nn.Parameter(torch.zeros(4, 3, 3, 3, dtype=torch.complex64))
    model, outputs = Call(lambda m, x: F.conv2d(x, m.w), w=weight), 2 * 4 * 6 * 6
    counted = count(model, data)
    assert (counted.params, counted.macs) == (4 * 27, 3 * outputs * 27)
    with FlopCounterMode(display=False) as counter:
        model(data)
    assert counter.get_total_flops() == 2 * counted.macs
    # The sums of the factors' parts for the third product; then three subtractions, a product with i, and a complex addition.
    found = costs(counted.trace)
    assert sum(cost.flops for cost in found) == 2 * counted.macs + (2 * 3 * 64 + 4 * 27) + (3 + 1 + 2) * outputs


def test_bools_become_integers_become_floats() -> None:
    model = Call(lambda m, mask, scale: (mask.long() @ mask.long().T).float() * scale)
    assert count(model, torch.ones(3, 4, dtype=torch.bool), zeros(3)).macs == 3 * 3 * 4


def test_parameters_of_several_dtypes() -> None:
    counted = count(Call(lambda m, x: m.norm(m.low(x.half()).float()), low=fc().half(), norm=nn.LayerNorm(4)), X)
    assert counted[:2] == (20 + 8, 32)


def sequences(*lengths: int, channels: int = 8) -> torch.Tensor:
    return torch.nested.nested_tensor([zeros(length, channels) for length in lengths], layout=torch.jagged)


def heads(x: torch.Tensor) -> torch.Tensor:
    return x.unflatten(-1, [2, 4]).transpose(1, 2)


def self_attention(m: Any, x: torch.Tensor, causal: bool = False) -> torch.Tensor:
    q = heads(x)
    return F.scaled_dot_product_attention(q, q, q, is_causal=causal).transpose(1, 2).flatten(-2)


def test_nested_tensors_count_their_real_lengths() -> None:
    """Sequences of 2, 3 and 5 tokens: 10 rows for a linear layer, 4 + 9 + 25 pairs for attention."""
    linear = count(nn.Linear(8, 4), sequences(2, 3, 5))
    assert linear.macs == 10 * 8 * 4
    assert [given.name for given in linear.trace.inputs] == ["input.values", "input.offsets"]
    attention = count(Call(self_attention), sequences(2, 3, 5))
    assert attention.macs == (4 + 9 + 25) * 2 * 8
    assert attention.run == "real"
    half = costs(count(Call(lambda m, x: self_attention(m, x, causal=True)), sequences(2, 3, 5)).trace, causal="half")
    assert sum(cost.macs for cost in half) == (3 + 6 + 15) * 2 * 8


def test_nested_tensors_made_in_forward() -> None:
    def forward(m: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return m.fc(torch.nested.nested_tensor([a, b], layout=torch.jagged)).values()

    assert count(Call(forward, fc=fc()), zeros(2, 4), zeros(3, 4)).macs == 5 * 16


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype:UserWarning")
def test_nested_tensors_of_the_old_layout() -> None:
    def forward(m: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.nested.to_padded_tensor(m.fc(torch.nested.nested_tensor([a, b])), 0.0)

    assert count(Call(forward, fc=fc()), zeros(2, 4), zeros(3, 4)).macs == 5 * 16
    uneven = torch.nested.nested_tensor([zeros(2, 8), zeros(3, 8)])
    with pytest.raises(TraceError, match=r"several uneven axes: make it with layout=torch\.jagged"):
        capture(Call(lambda m, x: x.transpose(1, 2).contiguous()), (uneven,))


def test_attention_of_packed_sequences() -> None:
    """Queries in sequences of 2 and 3, keys in sequences of 2 and 4, two heads of 8 channels: 2 x 2 + 3 x 4 pairs."""

    def forward(m: Any, q: torch.Tensor, kv: torch.Tensor, q_ends: torch.Tensor, k_ends: torch.Tensor) -> Any:
        return varlen.varlen_attn(q, kv, kv, q_ends, k_ends, 3, 4, window_size=(-1, 0))

    half = torch.float16
    q, kv = zeros(5, 2, 8, dtype=half), zeros(6, 2, 8, dtype=half)
    counted = count(Call(forward), q, kv, torch.tensor([0, 2, 5], dtype=torch.int32), torch.tensor([0, 2, 6], dtype=torch.int32))
    assert counted.macs == 2 * 16 * (8 + 8)


def compressed() -> torch.Tensor:
    return torch.eye(5).to_sparse_csr()


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta:UserWarning", "ignore:Sparse invariant checks:UserWarning")
def test_sparse_products_count_what_is_stored() -> None:
    x = zeros(5, 3)
    assert count(Call(lambda m, x: m.a @ x, a=nn.Buffer(compressed())), x).macs == 5 * 3
    assert (
        count(Call(lambda m, a, x: m.fc(torch.sparse.mm(a, x)), fc=nn.Linear(3, 2, bias=False)), torch.eye(5).to_sparse(), x).macs
        == 15 + 30
    )
    made = count(Call(lambda m, x: torch.sparse.mm(torch.sparse_coo_tensor(torch.tensor([[0, 1], [1, 0]]), torch.ones(2), (5, 5)), x)), x)
    assert made.macs == 2 * 3


def test_parameters_that_share_memory() -> None:
    """A view of a parameter as another parameter: 16 and 8 elements, but the bytes of 16."""
    whole = parameter(4, 4)
    counted = count(Call(lambda m, x: x @ m.whole + (x @ m.part.T).sum(), whole=whole, part=nn.Parameter(whole.detach()[:2])), X)
    assert counted.params == 24
    assert sum(each.bytes for each in counted.trace.parameters) == 64
