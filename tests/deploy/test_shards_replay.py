"""The parts that a GPU is given suffice for its work, and what the GPUs exchange makes the whole: models are run in parts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from modelstat.deploy import contraction
from modelstat.records import Trace
from modelstat.trace.capture import capture
from tests.deploy.replay import Replay

WIDTH, HEADS, LENGTH = 32, 4, 6


class Llama(nn.Module):
    """RMSNorm by hand, rotary positions, grouped queries, a gated net: two all-reduces."""

    def __init__(self, shared: int = 2, length: int = LENGTH, *, heads: int = HEADS, norms: bool = False) -> None:
        super().__init__()
        size = WIDTH // heads
        self.all, self.shared, self.size = heads, shared, size
        self.q, self.o = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.k, self.v = nn.Linear(WIDTH, shared * size, bias=False), nn.Linear(WIDTH, shared * size, bias=False)
        self.gate, self.up = nn.Linear(WIDTH, 48, bias=False), nn.Linear(WIDTH, 48, bias=False)
        self.down = nn.Linear(48, WIDTH, bias=False)
        self.weight, self.head_weight = nn.Parameter(torch.rand(WIDTH)), nn.Parameter(torch.rand(size))
        self.norms = norms
        angles = torch.outer(torch.arange(length), 0.5 ** torch.arange(size // 2))
        self.register_buffer("cos", torch.cat((angles, angles), -1).cos())
        self.register_buffer("sin", torch.cat((angles, angles), -1).sin())

    def norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * weight

    def heads(self, x: Tensor, heads: int) -> Tensor:
        found = x.view(x.shape[0], -1, heads, self.size).transpose(1, 2)
        return self.norm(found, self.head_weight) if self.norms else found

    def rotated(self, x: Tensor) -> Tensor:
        half = self.size // 2
        return x * self.cos + torch.cat((-x[..., half:], x[..., :half]), -1) * self.sin  # type: ignore[operator]

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm(x, self.weight)
        q, k = self.rotated(self.heads(self.q(normed), self.all)), self.rotated(self.heads(self.k(normed), self.shared))
        v = self.heads(self.v(normed), self.shared)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(mixed.transpose(1, 2).reshape(x.shape))
        normed = self.norm(x, self.weight)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))


class Gpt(nn.Module):
    """A fused projection whose thirds are q, k and v, attention by hand, and biases."""

    def __init__(self, *, by_head: bool = False) -> None:
        super().__init__()
        self.by_head = by_head
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        fused = self.qkv(self.first(x))
        if self.by_head:
            q, k, v = (each.transpose(1, 2) for each in fused.view(batch, length, HEADS, -1).chunk(3, -1))
        else:
            q, k, v = (each.view(batch, length, HEADS, -1).transpose(1, 2) for each in fused.split(WIDTH, -1))
        scores = (q @ k.transpose(-1, -2)) / 3.0
        mask = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        mixed = scores.masked_fill(~mask, -1e4).softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.narrow(functional.gelu(self.wide(self.second(x))))


class Fused(nn.Module):
    """A gate and what it gates in one product."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.both, self.down = nn.Linear(WIDTH, 2 * 48), nn.Linear(48, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        both = self.both(x)
        if self.kind == "glu":
            return self.down(functional.glu(both))
        if self.kind == "interleaved":
            gate, up = both.unflatten(-1, (48, 2)).unbind(-1)
        elif self.kind == "uneven":
            gate, up = both[..., :32], both[..., 48:80]
            return torch.cat((gate.relu() * up, both[..., 80:]), -1) @ self.down.weight.t()
        elif self.kind == "parts of what is gated":
            gate, up = both[..., :48], torch.cat((both[..., 48:64].relu(), both[..., 64:]), -1)
        elif self.kind == "moved":
            gate, up = functional.pad(both.roll(1, 1).flip(1), (0, 0, 1, -1)).chunk(2, -1)
        else:
            gate, up = both.chunk(2, -1)
        return self.down(functional.silu(gate) * up)


class Images(nn.Module):
    """Dense, grouped and depthwise convolutions, norms over channels, squeeze and excitation, a concatenation and a flattening."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.depthwise, self.grouped = nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.Conv2d(16, 32, 1, groups=8)
        self.groups = nn.GroupNorm(8, 32)
        self.squeeze, self.excite = nn.Conv2d(32, 8, 1), nn.Conv2d(8, 32, 1)
        self.project, self.up = nn.Conv2d(32, 16, 1), nn.ConvTranspose2d(32, 8, 2, stride=2)
        self.head = nn.Linear(8 * 16, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.norm(self.stem(x)))
        wide = functional.silu(self.groups(self.grouped(self.depthwise(x))))
        wide = wide * self.excite(functional.relu(self.squeeze(wide.mean((2, 3), keepdim=True)))).sigmoid()
        x = torch.cat((x, x + self.project(wide)), 1)
        x = functional.adaptive_avg_pool2d(functional.max_pool2d(self.up(x), 2), 4)
        return self.head(x.flatten(1))


class Vocabulary(nn.Module):
    """A tied table, looked up by rows and used as the last layer's columns."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.places = nn.Embedding(40, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.block = Llama()

    def forward(self, ids: Tensor) -> Tensor:
        return self.block(self.table(ids) + self.places.weight) @ self.table.weight.t()


class Cached(nn.Module):
    """One token against a cache of keys and values, which is written in place or lengthened."""

    def __init__(self, *, in_place: bool, shared: int = HEADS) -> None:
        super().__init__()
        self.in_place, self.shared, self.size = in_place, shared, WIDTH // HEADS
        self.qkv, self.out = nn.Linear(WIDTH, WIDTH + 2 * shared * self.size), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        sizes = (WIDTH, self.shared * self.size, self.shared * self.size)
        q, k, v = (each.view(2, 1, -1, self.size).transpose(1, 2) for each in self.qkv(x).split(sizes, -1))
        if self.in_place:
            keys[:, :, -1:], values[:, :, -1:] = k, v
        else:
            keys, values = torch.cat((keys, k), 2), torch.cat((values, v), 2)
        if self.shared < HEADS:  # repeated, and attended to by hand
            keys, values = (
                each[:, :, None].expand(2, self.shared, HEADS // self.shared, -1, self.size).reshape(2, HEADS, -1, self.size)
                for each in (keys, values)
            )
            mixed = (q @ keys.transpose(-1, -2)).softmax(-1) @ values
        else:
            mixed = functional.scaled_dot_product_attention(q, keys, values)
        return x + self.out(mixed.transpose(1, 2).reshape(x.shape))


class Gates(nn.Module):
    """Four gates of a recurrent step by hand, from two products that are added."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.h, self.out = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(WIDTH, 8)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> Tensor:
        i, f, g, o = (self.x(x) + self.h(h)).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return self.out(o.sigmoid() * c.tanh())


class Parallel(nn.Module):
    """Attention and net side by side, as in GPT-J: both sums are added before they are added up."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = Fused("chunk"), Fused("glu")

    def forward(self, x: Tensor) -> Tensor:
        normed = functional.layer_norm(x, (WIDTH,))
        return functional.layer_norm(x + (self.one(normed) + 2.0 * self.two(normed)), (WIDTH,))


def tokens(*shape: int) -> tuple[Tensor, ...]:
    return (torch.randn(*shape),)


def hidden(length: int = LENGTH) -> tuple[Tensor, ...]:
    return tokens(2, length, WIDTH)


def past(heads: int = HEADS) -> tuple[Tensor, ...]:
    return (*tokens(2, heads, LENGTH, WIDTH // HEADS), *tokens(2, heads, LENGTH, WIDTH // HEADS))


CASES: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, ...]]]] = {
    "llama": (Llama, hidden),
    "llama, a length as long as the width": (lambda: Llama(length=WIDTH), lambda: hidden(WIDTH)),
    "llama, one head of keys": (lambda: Llama(shared=1), hidden),
    "llama, eight heads": (lambda: Llama(shared=4, heads=8), hidden),
    "llama, norms of heads": (lambda: Llama(norms=True), hidden),
    "gpt": (Gpt, hidden),
    "gpt, a length as long as the width": (Gpt, lambda: hidden(WIDTH)),
    "gpt, fused by head": (lambda: Gpt(by_head=True), hidden),
    "gate and up in halves": (lambda: Fused("chunk"), hidden),
    "glu": (lambda: Fused("glu"), hidden),
    "gate and up interleaved": (lambda: Fused("interleaved"), hidden),
    "sections of a section": (lambda: Fused("parts of what is gated"), hidden),
    "moved along the length": (lambda: Fused("moved"), hidden),
    "sections of other lengths": (lambda: Fused("uneven"), hidden),
    "images": (lambda: Images().eval(), lambda: tokens(2, 3, 8, 8)),
    "vocabulary": (Vocabulary, lambda: (torch.randint(0, 40, (2, LENGTH)),)),
    "gates": (Gates, lambda: (*tokens(2, WIDTH), *tokens(2, WIDTH), *tokens(2, WIDTH))),
    "side by side": (Parallel, hidden),
    "cache, lengthened": (lambda: Cached(in_place=False), lambda: (*hidden(1), *past())),
    "cache, in place": (lambda: Cached(in_place=True), lambda: (*hidden(1), *past())),
    "cache, grouped queries by hand": (lambda: Cached(in_place=True, shared=2), lambda: (*hidden(1), *past(2))),
    "encoder layer": (lambda: nn.TransformerEncoderLayer(WIDTH, HEADS, 64, batch_first=True).eval(), hidden),
    "encoder layer, length first": (lambda: nn.TransformerEncoderLayer(WIDTH, HEADS, 64, activation="gelu").eval(), hidden),
}


@cache
def case(name: str) -> tuple[nn.Module, tuple[Tensor, ...], Trace]:
    torch.manual_seed(0)
    build, inputs = CASES[name]
    model, args = build(), inputs()
    return model, args, capture(model, tuple(each.clone() for each in args))


def check(name: str, gpus: int) -> Replay:
    model, args, trace = case(name)
    with torch.no_grad():
        expected = model(*(each.clone() for each in args))
        replay = Replay(trace, model, args, gpus)
    assert any(cut is not None for _, _, placed in replay.script.steps if placed for cut in placed.inputs), "something is split"
    for rank in range(gpus):
        (found,) = (one for one in replay.output(rank) if one.numel() == expected.numel())
        torch.testing.assert_close(found.reshape(expected.shape), expected, rtol=1e-4, atol=1e-5)
    return replay


@pytest.mark.parametrize(("gpus", "small"), [(2, contraction.SMALL), (4, 0)], ids=["2-small-weights-whole", "4"])
@pytest.mark.parametrize("name", CASES)
def test_parts_make_the_whole(name: str, gpus: int, small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contraction, "SMALL", small)
    monkeypatch.setattr(contraction, "SMALL_TABLE", 0)
    check(name, gpus)


def test_gpus_share_heads_of_keys() -> None:
    """Four heads of keys on eight GPUs: two have the same head, whose projection both compute."""
    replay = check("llama, eight heads", 8)
    held = {one.name: replay.script.held[one.value].ways for one in replay.trace.parameters if one.value in replay.script.held}
    assert (held["q.weight"], held["k.weight"], held["v.weight"]) == (8, 4, 4)
