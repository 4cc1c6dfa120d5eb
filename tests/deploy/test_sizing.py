"""Fleets: every figure is a product that a reader can recompute from the time of a pass."""

from __future__ import annotations

from math import ceil
from pathlib import Path

import msgspec
import pytest

from modelstat.cost.registry import costs as costs_of
from modelstat.deploy.fleet import BATCHES, HEADROOM, fleet
from modelstat.deploy.prices import Prices, read_prices
from modelstat.deploy.series import Series
from modelstat.deploy.sizing import Sized, Sizing, _best, size
from modelstat.errors import InputError, UsageError
from modelstat.hardware.database import all_gpus, find
from modelstat.memory.peak import peak_memory
from modelstat.predict.execution import Execution
from modelstat.predict.passes import Pass
from modelstat.predict.prediction import predict
from modelstat.records import Trace
from tests.predict.sample import Writer, block

FAST = Execution(host_seconds=1e-6)


def net(batch: int, precision: str = "fp32") -> Trace:
    """Two linear layers with relu between."""
    writer = Writer(batch, 2048, dtype="bfloat16" if precision == "bf16" else "float32")
    return writer.trace(writer.linear(writer.op("relu", writer.linear(writer.input, 8192)), 2048), precision=precision)[0]


def sized(gpu: str, qps: float = 5000, latency: float = 0.02, **given: object) -> Sizing:
    return size(Series(net), [find(name) for name in gpu.split(",")], qps, latency, FAST, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(("demand", "capacity", "gpus"), [(3.0, 3.9, 1), (3.0, 3.89, 2), (60.0, 7.8, 10), (1e-9, 1e9, 1)])
def test_binary_fractions_ask_for_no_gpu(demand: float, capacity: float, gpus: int) -> None:
    """3 x 1.3 / 3.9 is 1, and 60 x 1.3 / 7.8 is 10."""
    assert fleet(find("a100"), demand, capacity, None).gpus == gpus


def test_a_model_that_does_nothing_has_no_size() -> None:
    with pytest.raises(InputError, match="computes nothing"):
        size(Series(lambda batch: Writer(batch, 8, dtype="float32").trace(0)[0]), [find("a100")], 10, 0.02)


def check(one: Sized, qps: float, latency: float) -> None:
    trace = net(one.batch)
    seconds = predict(trace, costs_of(trace), one.gpu, FAST).seconds
    assert seconds is not None
    assert one.seconds == pytest.approx(seconds, rel=1e-12)
    assert one.throughput == pytest.approx(one.batch / seconds)
    assert one.gpus == ceil(qps * (1 + HEADROOM) * seconds / one.batch)
    assert one.latency_seconds == pytest.approx((one.batch - 1) * one.gpus / qps + seconds)
    assert one.latency_seconds <= latency
    assert one.utilisation == pytest.approx(qps * seconds / one.batch / one.gpus)
    assert one.utilisation <= 1 / (1 + HEADROOM)
    assert one.gpu.tdp_w is not None
    assert one.power_watts == one.gpus * one.gpu.tdp_w
    assert one.joules == pytest.approx(one.gpus * one.gpu.tdp_w / qps)


def test_every_figure() -> None:
    found = sized("v100,t4,a100")
    assert len(found.ranked) == 3
    assert not found.out
    for one in found.ranked:
        check(one, 5000, 0.02)
        assert one.fits is True
    keys = [(one.gpus, one.power_watts) for one in found.ranked]
    assert keys == sorted(keys), "fewest GPUs first, then least power"


@pytest.mark.parametrize("latency", [0.001, 0.002, 0.02, 0.2])
def test_no_larger_batch_that_is_in_time_needs_fewer(latency: float) -> None:
    """Brute force over all batches that are tried."""
    from modelstat.deploy.sizing import _sized

    (one,) = sized("t4", 5000, latency).ranked
    check(one, 5000, latency)
    possible = []
    for batch in BATCHES:
        trace = net(batch)
        other = _sized(one.gpu, batch, Pass(trace, costs_of(trace), FAST).seconds(one.gpu), 5000, None, None)
        if other.latency_seconds <= latency:
            possible.append(other.gpus)
    assert one.gpus == min(possible)


def test_prices_rank() -> None:
    prices = Prices({"t4": 0.5, "v100-pcie-32": 40.0}, "EUR")
    found = sized("v100,t4,a100", prices=prices)
    assert [one.gpu.key for one in found.ranked] == ["t4", "v100-pcie-32", "a100-sxm-40"], "without a price last"
    cheap, _, unpriced = found.ranked
    assert cheap.cost_per_hour == 0.5 * cheap.gpus
    # 5000 requests/s for an hour are 18 million.
    assert cheap.cost_per_million == pytest.approx(0.5 * cheap.gpus / 18)
    assert unpriced.cost_per_hour is None
    assert found.currency == "EUR"


def test_reasons() -> None:
    small = msgspec.structs.replace(find("t4"), key="small", name="small", memory_gb=1e-5)
    slow = msgspec.structs.replace(find("t4"), key="slow", name="slow", fp32=0.001)
    found = size(Series(net), [small, slow], 5000, 0.02, FAST)
    assert not found.ranked
    needs = peak_memory(net(1)).peak_bytes
    assert found.out[0].reason == f"does not fit: one sample needs {needs / 1e3:.2f} kB, 10.20 kB are there"
    assert found.out[1].reason.startswith("too slow: one sample takes")
    bf16 = size(Series(lambda batch: net(batch, "bf16")), [find("v100")], 5000, 0.02, FAST)
    assert bf16.out[0].reason.startswith("no bfloat16 peak")


def test_memory_that_is_the_machines() -> None:
    (one,) = sized("m2-max").ranked
    assert one.fits is None
    assert one.power_watts is None


@pytest.mark.parametrize(("qps", "latency"), [(0, 1), (-1, 1), (float("inf"), 1), (1, 0), (1, float("inf"))])
def test_demands_that_are_none(qps: float, latency: float) -> None:
    with pytest.raises(UsageError, match="above 0"):
        sized("t4", qps, latency)


@pytest.mark.parametrize("execution", [Execution(), Execution("compile"), Execution(cuda_graph=True), Execution(channels_last=True)])
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_pass_takes_what_is_predicted(execution: Execution, precision: str) -> None:
    trace, costs = block(4, precision=precision)
    one = Pass(trace, costs, execution)
    for gpu in all_gpus()[::17]:
        if precision in gpu.precisions and gpu.fp32 is not None:
            assert one.seconds(gpu) == predict(trace, costs, gpu, execution).seconds


def test_a_file_of_prices(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('currency = "USD"\n[hourly]\nt4 = 0.35\n"a100 80gb" = 2\n')
    assert read_prices(file) == Prices({"t4": 0.35, find("a100 80gb").key: 2.0}, "USD")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[hourly]\nt5 = 1", "t5"),
        ("[hourly]\nt4 = -1", "t4 = -1 is no price"),
        ("[hourly]\nt4 = 'cheap'", "is no price"),
        ("[hourly]\nt4 = 1\ntesla-t4 = 2", "tesla-t4 is t4, which has a price already"),
        ("t4 = 1", r"write a table \[hourly\]"),
        ("[hourly", "is not TOML"),
    ],
)
def test_mistakes_in_a_file(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_prices(file)
    with pytest.raises(InputError, match="cannot be read"):
        read_prices(tmp_path / "absent.toml")


def test_a_larger_batch_may_be_in_time_where_a_smaller_one_is_not() -> None:
    """Fewer GPUs fill their batches faster: t(B) = 1.97 ms + 0.492 ms B serves 699 requests/s in 8.69 ms with one GPU at batch 4 only."""

    class Line:
        def peak_bytes(self, batch: int) -> int:
            return 0

        def seconds(self, batch: int, gpu: object) -> float:
            return 1.97188e-3 + 0.492149e-3 * batch

    found = _best(Line(), find("t4"), 698.842, 8.69097e-3, None)  # type: ignore[arg-type]
    assert isinstance(found, Sized)
    assert (found.gpus, found.batch) == (1, 4)
    assert found.latency_seconds == pytest.approx(3 / 698.842 + 1.97188e-3 + 4 * 0.492149e-3)
