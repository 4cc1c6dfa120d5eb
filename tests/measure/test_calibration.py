"""Device profiles: written, read back, and predicted from."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from modelstat.analysis import Analysis
from modelstat.errors import GpuDefinitionError
from modelstat.hardware.calibration import Calibration, rate_at
from modelstat.hardware.database import find
from modelstat.measure.benchmarks import Benchmarks
from modelstat.measure.calibrate import profile_text
from modelstat.trace.capture import capture

FOUND = Calibration(
    device="cpu",
    launch_us=2.0,
    memory=((1e4, 4e10), (1e8, 1e10)),
    matmul={"float32": ((1e3, 1e9), (1e9, 1e11)), "bfloat16": ((1e3, 1e9), (1e9, 2e11))},
    convolution=((1e6, 5e10), (1e9, 5e10)),
    depthwise=((1e6, 5e9), (1e9, 5e9)),
    vector=2e9,
)
TEXT = profile_text(FOUND, 'An "odd" CPU, 2 threads', 8 * 2**30, 0.03)


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
    assert "# Something else ran at the same time: calibrate again" in profile_text(FOUND, "x", None, 0.11)


def test_times_are_work_at_the_measured_rate_of_its_size_and_a_launch(tmp_path: Path) -> None:
    gpu = find(written(tmp_path))
    filters = nn.Conv2d(10, 10, 3, groups=10, bias=False)
    model = nn.Sequential(nn.Linear(500, 1000, bias=False), nn.ReLU(), nn.Unflatten(1, (10, 10, 10)), filters)
    analysis = Analysis(capture(model, (torch.empty(1000, 500, device="meta"),), {}), [gpu])
    product, relu, convolution = (op for op in analysis.predictions[0].ops if op.seconds)
    assert product.seconds == pytest.approx(2e-6 + 1e9 / 1e11)  # 2 x 1000 x 500 x 1000 FLOPs: the curve's last point
    moved = 2 * 4 * 1000 * 1000
    assert relu.seconds == pytest.approx(2e-6 + moved / rate_at(FOUND.memory, moved))
    outputs = 1000 * 10 * 8 * 8
    assert convolution.seconds == pytest.approx(2e-6 + outputs * 2 * 9 / 5e9)
    # On a CPU nothing is issued ahead of anything: the pass is the sum.
    assert analysis.predictions[0].seconds == pytest.approx(product.seconds + relu.seconds + convolution.seconds)


def test_rates_between_sizes_lie_between() -> None:
    curve = FOUND.matmul["float32"]
    assert rate_at(curve, 1e6) == pytest.approx(1e10)  # half way in logarithms
    assert rate_at(curve, 1.0) == 1e9
    assert rate_at(curve, 1e12) == 1e11


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("launch_us = 2", 'launch_us = "soon"', "calibration: "),
        ("[1e+08, 1e+10]", "[10, 1e+10]", "memory must be pairs above 0 of rising size"),
        ("launch_us = 2", "launch_us = -1", "no time is below 0"),
        ("vector = 2e+09", "vetcor = 1", "calibration: "),
    ],
)
def test_a_profile_that_was_spoilt(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in TEXT
    with pytest.raises(GpuDefinitionError) as caught:
        find(written(tmp_path, TEXT.replace(old, new)))
    assert said in str(caught.value)


def test_benchmarks_run_and_leave_everything_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    from modelstat.measure import benchmarks

    monkeypatch.setattr(benchmarks, "PRODUCTS", {"cpu": (8, 16)})
    monkeypatch.setattr(benchmarks, "COPIES", {"cpu": (10, 12)})
    monkeypatch.setattr(benchmarks, "CONVOLUTIONS", ((4, 4, 8), (8, 8, 8)))
    monkeypatch.setattr(benchmarks, "DEPTHWISE", ((4, 8), (8, 8)))
    threads, rng = torch.get_num_threads(), torch.get_rng_state()
    found = Benchmarks("cpu", 1e-4).run()
    assert (torch.get_num_threads(), found.host_us) == (threads, 0.0)
    assert torch.equal(torch.get_rng_state(), rng)
    # Sizes: bytes of a copy, 2 n^3, 2 x outputs x 9 x inputs a group.
    assert [size for size, _ in found.memory] == [8 * 2**10, 8 * 2**12]
    assert [size for size, _ in found.matmul["float32"]] == [2 * 8**3, 2 * 16**3]
    assert [size for size, _ in found.convolution] == [2 * 4 * 64 * 9 * 4, 2 * 8 * 64 * 9 * 8]
    assert [size for size, _ in found.depthwise] == [2 * 4 * 64 * 9, 2 * 8 * 64 * 9]
    assert "[calibration.matmul]" in profile_text(found, "x", None, 0.0)
