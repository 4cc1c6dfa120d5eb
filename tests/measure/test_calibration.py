"""Device profiles: written, read back, and predicted from."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from modelstat.analysis import Analysis
from modelstat.cost.registry import costs
from modelstat.errors import GpuDefinitionError
from modelstat.hardware.calibration import Calibration, rate_at
from modelstat.hardware.database import find
from modelstat.hardware.law import Law
from modelstat.measure.benchmarks import Benchmarks
from modelstat.measure.calibrate import profile_text
from modelstat.measure.law import Point, fitted
from modelstat.measure.layers import CONVOLUTIONS, layers
from modelstat.predict.kernels import calibrated
from modelstat.trace.capture import capture

FOUND = Calibration(
    device="cpu",
    launch_us=2.0,
    memory=((1e4, 4e10), (1e8, 1e10)),
    vector=2e9,
    laws={
        "matmul-float32": Law(launch_us=10.0, flops=1e11, weights=1e10),
        "matmul-bfloat16": Law(launch_us=10.0, flops=2e11),
        "convolution": Law(flops=5e10, bytes=2e10),
        "depthwise": Law(launch_us=20.0, flops=5e9),
        "pointwise-ragged": Law(launch_us=30.0, bytes=1e9),
        "pooling": Law(launch_us=5.0, flops=1e9),
    },
)
TEXT = profile_text(FOUND, {"float32": 1e11, "bfloat16": 2e11}, 1e10, 'An "odd" CPU, 2 threads', 8 * 2**30, 0.03)


def written(tmp_path: Path, text: str = TEXT) -> str:
    path = tmp_path / "machine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_profile_is_a_gpu(tmp_path: Path) -> None:
    gpu = find(written(tmp_path))
    assert gpu.name == 'An "odd" CPU, 2 threads'
    assert gpu.calibration == FOUND
    # The highest rates: 100 GFLOP/s, 200 GFLOP/s; the bandwidth of the largest copy.
    assert (gpu.fp32, gpu.bf16_tensor, gpu.bandwidth_gbs, gpu.memory_gb) == (0.1, 0.2, 10.0, 8.0)


def test_a_machine_that_was_not_quiet_is_said() -> None:
    assert "calibrate again" not in TEXT
    assert "# Something else ran at the same time: calibrate again" in profile_text(FOUND, {"float32": 1e11}, 1e10, "x", None, 0.11)


MOVED = 2 * 4 * 1000 * 1000
"""Bytes that a ReLU of a million fp32 numbers reads and writes."""
LAYERS: dict[str, tuple[nn.Module, tuple[int, ...], float]] = {
    # 2 x 1000 x 500 x 1000 FLOPs, and 500 x 1000 weights of 4 B
    "product": (nn.Linear(500, 1000, bias=False), (1000, 500), 10e-6 + 1e9 / 1e11 + 2e6 / 1e10),
    "relu": (nn.ReLU(), (1000, 1000), 2e-6 + MOVED / rate_at(FOUND.memory, MOVED)),
    # GELU counts 5 FLOPs an element: worked out more slowly than it is moved
    "gelu": (nn.GELU(), (1000, 1000), 2e-6 + 5e6 / 2e9),
    # 2 x 16 x 8 x 8 x 9 x 16 FLOPs; 16 channels of 10 x 10 and of 8 x 8 are moved; weights add nothing in this law
    "convolution": (nn.Conv2d(16, 16, 3, bias=False), (1, 16, 10, 10), 294912 / 5e10 + 4 * 16 * (100 + 64) / 2e10),
    # one filter a channel: 2 x 16 x 8 x 8 x 9 FLOPs
    "depthwise": (nn.Conv2d(16, 16, 3, groups=16, bias=False), (1, 16, 10, 10), 20e-6 + 18432 / 5e9),
    # 10 channels have no law of their own here: that of whole ones
    "depthwise, ragged": (nn.Conv2d(10, 10, 3, groups=10, bias=False), (1, 10, 10, 10), 20e-6 + 2 * 10 * 64 * 9 / 5e9),
    "pointwise, ragged": (nn.Conv2d(16, 20, 1, bias=False), (1, 16, 10, 10), 30e-6 + 4 * (16 + 20) * 100 / 1e9),
    # no law for whole ones: that of products
    "pointwise": (nn.Conv2d(16, 16, 1, bias=False), (1, 16, 10, 10), 10e-6 + 2 * 16 * 16 * 100 / 1e11 + 4 * 16 * 16 / 1e10),
    # three channels are an image and not ragged
    "first": (nn.Conv2d(3, 16, 3, bias=False), (1, 3, 10, 10), 2 * 16 * 64 * 27 / 5e10 + 4 * (300 + 16 * 64) / 2e10),
    # transposed, four channels to each output: no filter a channel, and 4 outputs are ragged
    "transposed": (
        nn.ConvTranspose2d(16, 4, 3, groups=4, bias=False), (1, 16, 8, 8), 2 * 16 * 64 * 9 / 5e10 + 4 * (16 * 64 + 4 * 100) / 2e10,
    ),
    "depthwise, transposed": (nn.ConvTranspose2d(16, 16, 3, groups=16, bias=False), (1, 16, 8, 8), 20e-6 + 2 * 16 * 64 * 9 / 5e9),
    "depthwise, 1-d": (nn.Conv1d(16, 16, 3, groups=16, bias=False), (1, 16, 10), 20e-6 + 2 * 16 * 8 * 3 / 5e9),
    "volume": (nn.Conv3d(16, 16, 3, bias=False), (1, 16, 4, 4, 4), 2 * 16 * 8 * 27 * 16 / 5e10 + 4 * 16 * (64 + 8) / 2e10),
    # a window of four for each of 16 x 5 x 5
    "pooling": (nn.AvgPool2d(2), (1, 16, 10, 10), 5e-6 + 4 * 16 * 25 / 1e9),
    # a norm without a law moves its numbers, and two for each channel
    "norm": (nn.BatchNorm2d(16, affine=False).eval(), (1, 16, 10, 10), 2e-6 + (12800 + 128) / rate_at(FOUND.memory, 12800 + 128)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_times_are_those_of_the_kind_s_law(tmp_path: Path, name: str) -> None:
    layer, shape, expected = LAYERS[name]
    gpu = find(written(tmp_path))
    analysis = Analysis(capture(layer, (torch.empty(shape, device="meta"),), {}), [gpu])
    (op,) = (op for op in analysis.predictions[0].ops if op.seconds)
    assert op.seconds == pytest.approx(expected)


def test_a_pass_on_a_cpu_is_the_sum_of_its_ops(tmp_path: Path) -> None:
    """Nothing is issued ahead of anything."""
    gpu = find(written(tmp_path))
    analysis = Analysis(capture(nn.Sequential(nn.ReLU(), nn.ReLU()), (torch.empty(1000, 1000, device="meta"),), {}), [gpu])
    assert analysis.predictions[0].seconds == pytest.approx(2 * LAYERS["relu"][2])


def test_convolutions_of_another_dtype_are_as_much_faster_as_products() -> None:
    layer = nn.Conv2d(16, 16, 3, bias=False).to(torch.bfloat16)
    trace = capture(layer, (torch.empty(1, 16, 10, 10, dtype=torch.bfloat16, device="meta"),), {})
    (cost,) = costs(trace)
    assert calibrated.seconds(trace.ops[0], cost, FOUND).total == pytest.approx(294912 / 1e11 + 2 * 16 * (100 + 64) / 2e10)


def test_rates_between_sizes_lie_between() -> None:
    curve = ((1e3, 1e9), (1e9, 1e11))
    assert rate_at(curve, 1e6) == pytest.approx(1e10)  # half way in logarithms
    assert rate_at(curve, 1.0) == 1e9
    assert rate_at(curve, 1e12) == 1e11


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("launch_us = 2\n", 'launch_us = "soon"\n', "calibration: "),
        ("[1e+08, 1e+10]", "[10, 1e+10]", "memory must be pairs above 0 of rising size"),
        ("launch_us = 2\n", "launch_us = -1\n", "no time is below 0"),
        ("launch_us = 2\n", "launch_us = nan\n", "no time is below 0"),
        ("vector = 2e+09", "vector = inf", "vector are needed"),
        ("vector = 2e+09", "vetcor = 1", "calibration: "),
        ("matmul-float32 = ", "matmul-float16 = ", "matmul-float32 and vector are needed"),
        ("depthwise = {launch_us = 20, flops = 5e+09}", "depthwise = {flops = 0}", "depthwise: rates are above 0"),
    ],
)
def test_a_profile_that_was_spoilt(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in TEXT
    with pytest.raises(GpuDefinitionError) as caught:
        find(written(tmp_path, TEXT.replace(old, new)))
    assert said in str(caught.value)


def test_benchmarks_run_and_leave_everything_as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from modelstat.measure import benchmarks, layers

    for name, few in layers.CONVOLUTIONS.items():
        monkeypatch.setitem(layers.CONVOLUTIONS, name, few[-2:])
    for name in ("POOLINGS", "NORMS", "REDUCTIONS", "SOFTMAXES"):
        monkeypatch.setattr(layers, name, getattr(layers, name)[-2:])
    monkeypatch.setattr(layers, "PRODUCTS", ((8, 8, 8), (16, 16, 16)))
    monkeypatch.setattr(benchmarks, "NUMBERS", {"cpu": (10, 12)})
    monkeypatch.setattr(benchmarks, "LARGEST", {"cpu": 2**10})
    threads, rng = torch.get_num_threads(), torch.get_rng_state()
    benchmark = Benchmarks("cpu", 1e-4)
    found = benchmark.run()
    assert (torch.get_num_threads(), found.host_us) == (threads, 0.0)
    assert torch.equal(torch.get_rng_state(), rng)
    assert [size for size, _ in found.memory] == [8 * 2**10, 8 * 2**12]  # each number is read and written
    assert set(found.laws) == {*layers.CONVOLUTIONS, "pooling", "norm", "reduction", "softmax", "matmul-float32", "matmul-bfloat16"}
    assert all(law.plausible for law in found.laws.values())
    gpu = find(written(tmp_path, profile_text(found, benchmark.peaks, benchmark.bandwidth, "x", None, 0.0)))
    assert gpu.calibration is not None
    assert gpu.calibration.laws.keys() == found.laws.keys()


def test_layers_say_what_they_compute_and_move() -> None:
    """By the counts that the rest of the house has of them."""
    for kind in (*CONVOLUTIONS, "pooling", "norm", "reduction", "softmax", "matmul-float32", "matmul-bfloat16"):
        for layer in layers(kind, "cpu"):
            trace = capture(layer.modules[0], (layer.image,))
            total = sum(cost.flops for cost in costs(trace))
            moved = sum(cost.bytes for cost in costs(trace))
            if layer.flops:
                outputs = trace.ops[-1].outputs[0].elements
                # A linear layer's bias is left out.
                assert total - layer.flops in ((outputs,) if kind.startswith("matmul") else (0,)), (kind, layer.image.shape)
            # Biases and what a norm holds for each channel are left out.
            assert layer.weights + layer.others == pytest.approx(moved, rel=0.06), (kind, layer.image.shape)


POINTS = [(flops, weights, others) for flops in (1e6, 1e9) for weights in (0.0, 1e6) for others in (1e4, 1e7)]


@pytest.mark.parametrize(
    "law",
    [Law(5.0, 1e11, 1e10, 2e10), Law(0.0, 1e11), Law(12.0, None, None, 5e9), Law(3.0, None, 2e10, 5e9)],
)
def test_a_law_is_found_again_in_the_times_that_it_makes(law: Law) -> None:
    found = fitted([Point(*point, law.seconds(*point)) for point in POINTS])
    for point in POINTS:
        assert found.seconds(*point) == pytest.approx(law.seconds(*point), rel=1e-3)


@given(st.lists(st.floats(1e-6, 1.0), min_size=8, max_size=8))
def test_no_part_of_a_law_is_negative(seconds: list[float]) -> None:
    assert fitted([Point(*point, each) for point, each in zip(POINTS, seconds, strict=True)]).plausible
