from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from modelstat.errors import BuildError
from modelstat.sources import weightless
from modelstat.sources.weightless import NOTE_REAL, SMALL_BYTES, TINY_BYTES, build_weightless

LARGE = 512  # 512 x 512 float32 = 1 MiB, above SMALL_BYTES


def built(build: Callable[[], Any]) -> Any:
    result, notes = build_weightless(build)
    assert notes == ()
    return result


@pytest.mark.parametrize(
    "make",
    [
        lambda n: torch.empty(n, n),
        lambda n: torch.randn(n, n),
        lambda n: torch.randn(n, n, generator=torch.Generator().manual_seed(1)),
        lambda n: torch.zeros(n, n, device="cpu"),
        lambda n: torch.full((n, n), 2.0),
        lambda n: torch.arange(n * n),
        lambda n: torch.eye(n),
        lambda n: torch.ones(n, 1) * torch.ones(1, n),
        lambda n: torch.ones(n, 1).expand(n, n).clone(),
        lambda n: torch.cat([torch.ones(1, n)] * n),
        lambda n: torch.zeros_like(torch.ones(1).expand(n, n)),
        lambda n: torch.ones(1).new_zeros(n, n),
        lambda n: nn.Linear(n, n).weight,
    ],
)
def test_small_tensors_are_real_and_large_ones_are_on_meta(make: Callable[[int], torch.Tensor]) -> None:
    large, small = built(lambda: (make(LARGE), make(8)))
    assert large.is_meta
    assert not small.is_meta
    assert (large.shape[0], small.shape[0]) in {(LARGE, 8), (LARGE**2, 64)}


def test_small_values_are_right() -> None:
    rates, index = built(lambda: (torch.linspace(0, 0.3, 4).tolist(), torch.arange(6).view(2, 3).sum(1)))
    assert rates == pytest.approx([0.0, 0.1, 0.2, 0.3])
    assert index.tolist() == [0 + 1 + 2, 3 + 4 + 5]


def test_a_tensor_that_was_given_as_data_stays_real() -> None:
    data = built(lambda: torch.tensor([[1.5] * LARGE] * LARGE))
    assert not data.is_meta
    assert data.sum().item() == 1.5 * LARGE**2


def mixed(step: Callable[[torch.Tensor, torch.Tensor], Any]) -> Callable[[], Any]:
    return lambda: step(torch.zeros(LARGE, LARGE), torch.ones(LARGE))


@pytest.mark.parametrize(
    ("step", "shape"),
    [
        (lambda large, small: large + small, (LARGE, LARGE)),
        (lambda large, small: small * large, (LARGE, LARGE)),
        (lambda large, small: large.copy_(small), (LARGE, LARGE)),
        (lambda large, small: torch.stack([large[0], small]), (2, LARGE)),
        (lambda large, small: large[torch.tensor([1, 2, 3])], (3, LARGE)),
        (lambda large, small: large.to("cpu"), (LARGE, LARGE)),
        (lambda large, small: large.to("cpu", torch.float16), (LARGE, LARGE)),
        (lambda large, small: torch.zeros_like(large, device="cpu"), (LARGE, LARGE)),
        (lambda large, small: large.normal_(generator=torch.Generator()), (LARGE, LARGE)),
        (lambda large, small: nn.init.trunc_normal_(large), (LARGE, LARGE)),
        (lambda large, small: nn.init.orthogonal_(large), (LARGE, LARGE)),
    ],
)
def test_ops_on_large_and_small_tensors_give_large_ones(step: Any, shape: tuple[int, ...]) -> None:
    result = built(mixed(step))
    assert result.is_meta
    assert tuple(result.shape) == shape


def test_a_small_tensor_stays_itself_when_it_is_written_from_a_large_one() -> None:
    def build() -> tuple[torch.Tensor, torch.Tensor]:
        small = torch.ones(LARGE)
        return small, small.copy_(torch.zeros(LARGE, LARGE)[0])

    small, result = built(build)
    assert result is small
    assert not small.is_meta


def test_layers_that_compute_tables_and_copies() -> None:
    def build() -> nn.Module:
        layer = nn.TransformerEncoderLayer(LARGE, 8)
        model = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        table = torch.zeros(5000, LARGE)
        angle = torch.arange(5000)[:, None] * torch.exp(torch.arange(0, LARGE, 2) * -0.01)
        table[:, 0::2], table[:, 1::2] = torch.sin(angle), torch.cos(angle)
        model.register_buffer("table", table)
        return model.to(torch.bfloat16)

    model = built(build)
    d = LARGE
    # in_proj 3 d^2 + 3 d, out_proj d^2 + d, feed-forward 2 d x 2048 + 2048 + d, two norms of 2 d; three layers
    assert sum(p.numel() for p in model.parameters()) == 3 * (4 * d**2 + 4 * d + 2 * d * 2048 + 2048 + d + 4 * d)
    assert all(p.is_meta == (p.numel() * 4 > SMALL_BYTES) for p in model.parameters())
    assert model.table.dtype is torch.bfloat16


def test_where_large_values_are_needed_only_torch_empty_goes_to_meta() -> None:
    def build() -> tuple[nn.Module, list[float]]:
        return nn.Linear(LARGE, LARGE), torch.full((LARGE, LARGE), 2.0)[0].tolist()

    (layer, values), notes = build_weightless(build)
    assert layer.weight.is_meta
    assert values == [2.0] * LARGE
    assert notes == ()


def test_where_the_values_of_weights_are_needed_they_are_real_and_it_is_said() -> None:
    def build() -> tuple[nn.Module, float]:
        layer = nn.Linear(LARGE, LARGE)
        return layer, layer.weight.abs().max().item()

    (layer, largest), notes = build_weightless(build)
    assert not layer.weight.is_meta
    assert 0 < largest <= LARGE**-0.5  # the bound of the uniform distribution that a Linear is drawn from
    assert notes == (NOTE_REAL,)


def test_a_quantised_layer_keeps_its_packed_weight() -> None:
    from torch.ao.nn.quantized.dynamic import Linear

    layer = built(lambda: Linear(64, 32))
    assert tuple(layer.weight().shape) == (32, 64)


def test_a_build_that_raises_before_anything_is_large_runs_once() -> None:
    calls = []

    def build() -> None:
        calls.append(torch.ones(3))
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        build_weightless(build)
    assert len(calls) == 1


def test_real_weights_that_do_not_fit_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weightless, "memory_bytes", lambda: 1e6)
    with pytest.raises(BuildError, match=r"it needs the values of its weights, and these \(0 GB and more\) do not fit this machine: "):
        build_weightless(lambda: nn.Linear(LARGE, LARGE).weight.max().item())


def test_many_small_tensors_do_not_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weightless, "SMALL_TOTAL_BYTES", 10 * SMALL_BYTES)
    tensors = built(lambda: [torch.empty(SMALL_BYTES // 4) for _ in range(20)] + [torch.empty(TINY_BYTES // 4)])
    assert [tensor.is_meta for tensor in tensors] == [False] * 10 + [True] * 10 + [False]


SEVEN_BILLION = """
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, width=4096, hidden=11008):
            super().__init__()
            self.attention = nn.MultiheadAttention(width, 32, bias=False)
            self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
            self.down = nn.Linear(hidden, width, bias=False)
            self.norms = nn.ParameterList([torch.ones(width), torch.ones(width)])

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(50000, 4096)
            self.blocks = nn.ModuleList(Block() for _ in range(33))
            self.head = nn.Linear(4096, 50000, bias=False)
            self.register_buffer("mask", torch.full((8192, 8192), float("-inf")).triu(1))
            for module in self.modules():
                if isinstance(module, nn.Linear):
                    nn.init.normal_(module.weight, std=0.02)

        def forward(self, ids):
            return self.head(self.embedding(ids))

    def build():
        return Net().half(), torch.randint(0, 50000, (1, 2048))
"""


def test_a_model_of_seven_billion_parameters_takes_under_300_mb(tmp_path: Path) -> None:
    pytest.importorskip("resource", reason="the size of a process is not told on this system")
    (tmp_path / "net.py").write_text(textwrap.dedent(SEVEN_BILLION))
    code = """
        import resource, sys
        import torch
        from modelstat.sources import parse
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        built = parse("net.py:build").build()
        unit = 1 if sys.platform == "darwin" else 1024
        print(sum(p.numel() for p in built.model.parameters()), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path, capture_output=True, text=True, check=True)
    params, grown = map(int, done.stdout.split())
    # embedding and head 2 x 50000 d; a block 4 d^2 + 3 d x 11008 + 2 d; d = 4096, 33 blocks
    assert params == 2 * 50000 * 4096 + 33 * (4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096)
    assert params > 7e9
    assert grown < 300e6
