"""Timed runs: what they join, and that they leave everything as it was. No test looks at a clock."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import torch
from torch import nn

from modelstat.analysis import Analysis
from modelstat.errors import InputError, OutputError, TraceError, UsageError
from modelstat.hardware.database import find
from modelstat.measure.local import Sensors, recognised
from modelstat.measure.measurement import measure
from modelstat.measure.save import COLUMNS, append
from modelstat.measure.session import check_device, running
from modelstat.measure.stopwatch import timing
from modelstat.predict.measured import read
from modelstat.trace.capture import capture
from tests.measure.models import Recurrent, Twice, Writes, small

GPU = find("a100")


def analysis_of(model: nn.Module, *shape: int) -> Analysis:
    return Analysis(capture(model, (torch.empty(shape, device="meta"),), {}), [GPU])


@pytest.mark.parametrize(
    ("model", "shape"), [(small(), (2, 3, 32, 32)), (Twice(), (2, 8)), (Recurrent(), (5, 2, 8))], ids=["small", "twice", "recurrent"]
)
def test_every_op_of_a_run_has_a_measured_time(model: nn.Module, shape: tuple[int, ...]) -> None:
    found = measure(model, (torch.randn(shape),), {}, analysis_of(model, *shape), "cpu", budget=0.01)
    assert found.overlay.op_share == 1.0
    assert found.overlay.uncovered == ()
    assert all(point.seconds for point in found.overlay.points)
    assert [step.complete for step in found.overlay.steps] == [True] * 5
    assert found.timing.low <= found.timing.median <= found.timing.high
    assert found.predicted_seconds is not None
    assert found.error == pytest.approx(found.predicted_seconds / found.timing.median - 1)


def test_a_run_leaves_everything_as_it_was() -> None:
    model, image = Writes(), torch.randn(2, 4)
    analysis = analysis_of(model, 2, 4)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    before = (
        torch.get_rng_state(), torch.get_num_threads(), torch.backends.mha.get_fastpath_enabled(), torch.backends.cudnn.allow_tf32,
        torch.get_float32_matmul_precision(), torch.is_grad_enabled(),
    )  # fmt: skip
    given = image.clone()
    measure(model, (image,), {}, analysis, "cpu", budget=0.01)
    after = (
        torch.get_rng_state(), torch.get_num_threads(), torch.backends.mha.get_fastpath_enabled(), torch.backends.cudnn.allow_tf32,
        torch.get_float32_matmul_precision(), torch.is_grad_enabled(),
    )  # fmt: skip
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]
    assert model.seen == []
    assert model.training
    assert torch.equal(image, given)
    assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_a_run_that_raises_leaves_everything_as_it_was_too() -> None:
    model, image = small(), torch.randn(2, 5, 32, 32)
    threads, rng = torch.get_num_threads(), torch.get_rng_state()
    with pytest.raises(TraceError, match="Sequential raised in the timed run: RuntimeError"):  # noqa: SIM117
        with running(model, (image,), {}, "cpu", precision=None) as call:
            call()
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), rng)


def test_a_precision_is_that_of_the_copy_alone() -> None:
    model = Twice()
    with running(model, (torch.randn(2, 8),), {}, "cpu", precision="bf16") as call:
        assert call().dtype == torch.bfloat16
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_a_model_without_weights_cannot_be_timed() -> None:
    with torch.device("meta"):
        model = nn.Linear(2, 2)
    with pytest.raises(InputError, match="needs weights"), running(model, (torch.zeros(1, 2),), {}, "cpu", precision=None):
        pass


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")
def test_a_device_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="--device cuda: this torch"):
        check_device("cuda")


def test_percentiles_of_many_runs() -> None:
    # Of 0..100 the 5th percentile is 5, the 95th 95.
    found = timing([float(each) for each in range(101)])
    assert (found.low, found.median, found.high, found.runs) == (5.0, 50.0, 95.0, 101)
    assert found.spread == pytest.approx((95 - 5) / 2 / 50)


A100 = {"name": "NVIDIA A100-SXM4-40GB", "major": 8, "minor": 0}


def test_a_known_gpu_is_the_databases_with_its_real_limits() -> None:
    found = recognised(A100, Sensors())
    row = found.gpu
    assert row.key == find("a100").key
    assert (row.tdp_w, found.definition, found.known) == (400, row.key, True)
    slowed = recognised(A100, Sensors(max_sm_mhz=1095, power_limit_w=250.0))
    limited = slowed.gpu
    assert slowed.definition == f"{row.key},clock=1095MHz,tdp=250W"
    assert find(slowed.definition).fp32 == limited.fp32
    assert (limited.tdp_w, limited.boost_mhz) == (250, 1095)
    assert limited.fp32 is not None
    assert row.fp32 is not None
    assert limited.fp32 == pytest.approx(row.fp32 * 1095 / 1410, rel=1e-3)


def test_an_unknown_gpu_is_derived_from_its_properties() -> None:
    properties = {
        "name": "NVIDIA Imaginary 9", "major": 8, "minor": 9, "multi_processor_count": 10, "clock_rate": 2_000_000,
        "memory_clock_rate": 8_000_000, "memory_bus_width": 128, "total_memory": 8 * 2**30, "L2_cache_size": 2**22,
    }  # fmt: skip
    found = recognised(properties, Sensors())
    gpu = found.gpu
    assert found.definition == "name=NVIDIA Imaginary 9,arch=ada,sms=10,clock=2000MHz,bandwidth=256GB/s,memory=8.0GiB,l2=4MiB"
    assert not found.known
    again = find(found.definition)
    assert (again.name, again.fp32, again.bandwidth_gbs, again.memory_gb) == (gpu.name, gpu.fp32, gpu.bandwidth_gbs, gpu.memory_gb)
    assert gpu.bandwidth_gbs == pytest.approx(2 * 8 * 128 / 8)
    assert gpu.fp32 == pytest.approx(2 * 10 * 128 * 2.0e9 / 1e12)  # Ada: 128 lanes an SM
    assert (gpu.memory_gb, gpu.l2_mb) == (8.0, 4.0)
    with pytest.raises(UsageError, match="does not tell its clock_rate"):
        recognised({**properties, "clock_rate": None}, Sensors())


ROW: dict[str, object] = {
    "source": "modelstat-measure", "gpu": "v100", "model": "resnet18", "input": "3x224x224", "batch": 4, "precision": "fp32",
    "layout": "nchw", "mode": "eager", "measured_ms": "12.5", "software": "torch 2", "params_m": "11.7", "gmacs": "7.3",
}  # fmt: skip


def test_saved_rows_are_what_a_correction_reads(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    append(path, ROW)
    append(path, {**ROW, "batch": 8})
    rows, problems = read(path)
    assert problems == []
    assert [(row.model, row.batch, row.seconds) for row in rows] == [("resnet18", 4, 0.0125), ("resnet18", 8, 0.0125)]
    assert {row.gpu for row in rows} == {find("v100")}
    with path.open(newline="", encoding="utf-8") as file:
        assert tuple(csv.DictReader(file).fieldnames or ()) == COLUMNS


def test_a_file_of_other_columns_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(OutputError, match="its first line has no source, gpu"):
        append(path, ROW)
    assert path.read_text(encoding="utf-8") == "a,b\n1,2\n"
