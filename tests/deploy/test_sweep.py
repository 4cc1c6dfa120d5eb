"""Ranges of sizes, and the traces in between: equal to what a walk at that size records."""

from __future__ import annotations

import msgspec
import pytest
import torch
from torch import nn
from torch.nn import functional

from modelstat.deploy.crossings import LAYER_SHARE, crossings, ranges
from modelstat.deploy.series import BatchSeries, Series, SizeSeries
from modelstat.deploy.sweep import Sweep, parse_sweep, sizes
from modelstat.errors import UsageError
from modelstat.hardware.gpu import Gpu
from modelstat.memory.peak import peak_memory
from modelstat.predict.execution import Execution
from modelstat.predict.products import critical_rows
from modelstat.records import Trace
from modelstat.trace.capture import capture

CHIP = Gpu(
    key="chip", name="chip", bandwidth_gbs=1000, fp32=20, memory_gb=8, sms=80, cores=5120, boost_mhz=1500, architecture="Ampere GA100",
    memory_type="HBM2", l2_mb=40,
)  # fmt: skip


class Attention(nn.Module):
    """Projections, attention with a square mask, and a softmax over the sequence: bytes quadratic in its length."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(1, 2)
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()
        mixed = scores.masked_fill(~mask, -1.0).softmax(-1) @ v
        return self.out(mixed + functional.scaled_dot_product_attention(q, k, v))


class Rounded(nn.Module):
    """Halves the length and rounds up, so that lengths between are no polynomial."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, ::7].relu()


def walker(model: nn.Module, *shape: int, batch: int | None = None) -> Series:
    """Walks at any length of axis 1, or at any batch where ``shape`` is a sample."""

    def fetch(size: int) -> Trace:
        if batch is None:
            return capture(model, (torch.empty(size, *shape, device="meta"),), batch=size)
        return capture(model, (torch.empty(batch, size, *shape, device="meta"),), batch=batch)

    return Series(fetch)


def test_a_sequence_is_a_polynomial() -> None:
    walk = walker(Attention(), 16, batch=2)
    series = SizeSeries(walk.at, [8, 16, 32, 64])
    assert (series.step, walk.walks) == (8, 4), "8, 16 and 24 tell, 64 proves"
    for size in (8, 16, 32, 40, 64):
        assert series.at(size) == walker(Attention(), 16, batch=2).at(size)
    assert walk.walks == 4


def test_what_is_no_polynomial_is_walked() -> None:
    walk = walker(Rounded(), 4, batch=2)
    series = SizeSeries(walk.at, [10, 20, 40, 80])
    assert series.step is None
    for size in (10, 20, 40, 80):
        assert series.at(size) == walk.at(size)


@pytest.mark.parametrize("given", [[1], [8], [1, 8, 16, 32]])
def test_few_sizes_are_walked(given: list[int]) -> None:
    walk = walker(Rounded(), 4, batch=2)
    series = SizeSeries(walk.at, given)
    assert [series.at(size).inputs[0].shape for size in given] == [(2, size, 4) for size in given]
    assert walk.walks == len(given)


def test_batches_follow_from_two_walks() -> None:
    walk = walker(nn.Linear(4, 4), 4)
    series = BatchSeries(walk.at)
    found = [series.at(size).batch for size in (1, 2, 64, 1000)]
    assert found == [1, 2, 64, 1000]
    assert walk.walks == 3


@pytest.mark.parametrize(
    ("given", "expected"),
    [("1..1", [1]), ("128..1000", [128, 256, 512, 1000]), ("3", [3]), ("1..4", [1, 2, 4])],
)
def test_ranges(given: str, expected: list[int]) -> None:
    assert sizes([given], "--batch") == expected


@pytest.mark.parametrize("given", ["0", "1..", "..4", "1..2..4", "x", "-1", "1.5", "8..4"])
def test_ranges_that_are_none(given: str) -> None:
    with pytest.raises(UsageError, match="--batch"):
        sizes([given], "--batch")


def test_names_stand_for_sizes_only() -> None:
    assert Sweep("x", (2,)).put("x=3xx:int64", 2) == "x=3x2:int64"
    assert Sweep("seq", (2,)).put("seq=seq:int64,sequence=4", 9) == "seq=9:int64,sequence=4"
    assert parse_sweep("side=64,128", "timm:x(img_size=side)", None).sizes == (64, 128)


@pytest.mark.parametrize("text", ["seq", "=1..4", "seq=", "2=1..4", "seq=4..1"])
def test_sweeps_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="--sweep"):
        parse_sweep(text, "m", "seq")


def test_a_name_that_stands_nowhere() -> None:
    with pytest.raises(UsageError, match="seq stands in no size: write it there, such as --input ids=seq:int64"):
        parse_sweep("seq=1..4", "resnet50", "3x224x224")


def linear_series(side: int) -> Series:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wide = nn.Linear(side, side, bias=False)
            self.act = nn.ReLU()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.act(self.wide(x))

    model = Two()
    return BatchSeries(walker(model, side).at)


def test_where_bounds_turn() -> None:
    """The roofline's turn of a wide layer is that of its closed form; the whole model's predicted one is exact."""
    series = linear_series(8192)
    found = crossings(series, [1, 4, 16, 64, 256, 1024], CHIP, Execution(host_seconds=1e-4))
    rows = {row.path: row for row in found.rows}
    # 20e12 / 1e12 = 20 FLOP/B; in fp32 B = 20 x 4 / (2 - 20 x 8 / 8192) = 40.4
    closed = critical_rows(CHIP, 8192, 8192, left="float32")
    assert closed is not None
    assert [bound for _, bound in rows["wide"].ideal_turns] == ["memory", "compute"]
    turn = rows["wide"].ideal_turns[1][0]
    assert closed < turn <= closed * (1 + LAYER_SHARE) + 1
    assert {bound for _, bound in rows["act"].ideal_turns} == {"memory"}, "relu never reuses anything"
    turns = rows[""].turns
    assert (turns[0][0], found.last) == (1, 1024)
    assert len(turns) > 1
    for size, bound in turns[1:]:
        (before,) = (row for row in crossings(series, [size - 1], CHIP, Execution(host_seconds=1e-4)).rows if not row.path)
        assert before.turns[0][1] != bound


def test_where_the_memory_is_full() -> None:
    series = linear_series(1024)
    found = crossings(series, [1, 2, 4, 8], msgspec.structs.replace(CHIP, memory_gb=0.01), Execution())
    room = 0.95 * 0.01 * 2**30
    assert found.full is not None
    assert peak_memory(series.at(found.full)).peak_bytes <= room < peak_memory(series.at(found.full + 1)).peak_bytes


def test_a_range_of_one_size() -> None:
    assert ranges(((1, "overhead"), (2, "memory"), (3, "overhead")), "overhead", 8) == "1, 3-8"
