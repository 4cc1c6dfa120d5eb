"""The predicted time in the contract and in the report."""

from __future__ import annotations

import io

import msgspec
import pytest

from modelstat.analysis import Analysis
from modelstat.hardware.database import find
from modelstat.predict.execution import Execution
from modelstat.predict.measured import Correction
from modelstat.predict.prediction import predict
from modelstat.records import Trace
from modelstat.report import table
from modelstat.report.prediction import below_ideal, prediction_lines
from tests.report.sample import net_trace


def analysis(*gpus: str, level: str = "module", trace: Trace | None = None, **changes: object) -> Analysis:
    return Analysis.from_trace(trace or net_trace()[0], [find(gpu) for gpu in gpus], level=level, **changes)  # type: ignore[arg-type]


def drawn(found: Analysis, width: int = 100) -> str:
    file = io.StringIO()
    table.render([found.document], file, width=width)
    return file.getvalue()


def test_the_entry_is_the_prediction_in_milliseconds() -> None:
    found = analysis("v100", execution=Execution(host_seconds=11e-6))
    (gpu,), (prediction,) = found.gpus, found.predictions
    assert prediction == predict(found.trace, found.costs, find("v100"), Execution(host_seconds=11e-6))
    assert prediction.seconds is not None
    assert gpu.predicted_ms == pytest.approx(1e3 * prediction.seconds)
    assert (gpu.predicted_low_ms, gpu.predicted_high_ms) == (1e3 * (prediction.low_seconds or 0), 1e3 * (prediction.high_seconds or 0))
    assert gpu.throughput == pytest.approx(1 / prediction.seconds), "a batch of 1"
    assert (gpu.mode, gpu.execution, gpu.kernels) == ("eager", "eager, host 11 us an op", 3)
    assert gpu.bound == "memory", "the roofline's bound does not change its meaning"
    assert gpu.predicted_bound == "overhead"


def test_rows_sum_to_the_total() -> None:
    (gpu,) = analysis("v100", level="op").gpus
    rows = {row.path: row.predicted_ms or 0.0 for row in gpu.layers}
    assert rows[""] == pytest.approx(gpu.predicted_ms)
    assert rows["block"] == pytest.approx(rows["block.conv"] + rows["block.act"])
    assert gpu.ops is not msgspec.UNSET
    assert sum(row.predicted_ms or 0.0 for row in gpu.ops) == pytest.approx(gpu.predicted_ms)
    assert (gpu.layers[4].predicted_ms, gpu.layers[4].predicted_bound) == (0.0, None), "spare never runs"


def test_families_sum_to_the_total() -> None:
    (gpu,) = analysis("v100").gpus
    assert {each.family for each in gpu.families} == {"convolution", "activation", "unknown"}
    assert sum(each.predicted_ms for each in gpu.families) == pytest.approx(gpu.predicted_ms)
    assert sum(each.share for each in gpu.families) == pytest.approx(1.0)


def test_throughput_is_unknown_without_a_batch() -> None:
    trace = msgspec.structs.replace(net_trace()[0], batch=None, inputs=())
    assert analysis("v100", trace=trace).gpus[0].throughput is None


def test_a_missing_peak_is_a_row_of_nulls() -> None:
    trace = msgspec.structs.replace(net_trace()[0], precision="tf32")
    without, given = analysis("v100", "a100", trace=trace).gpus
    for name in ("predicted_ms", "predicted_low_ms", "predicted_high_ms", "predicted_bound", "throughput", "idle_ms", "kernels"):
        assert getattr(without, name) is None, name
        assert getattr(given, name) is not None, name
    assert (without.families, without.layers[0].predicted_ms) == ((), None)


def test_advice_is_for_a_lone_gpu() -> None:
    (gpu,) = analysis("v100").gpus
    assert gpu.advice
    assert [entry.advice for entry in analysis("v100", "t4").gpus] == [None, None]


def test_the_lines_hold_the_numbers() -> None:
    (gpu,) = analysis("v100").gpus
    assert gpu.predicted_ms is not None
    lines = prediction_lines(gpu)
    labels = [label for label, _ in lines if label]
    assert labels == ["Predicted", "Time by op", "Would help"]
    assert "us (90 %: " in lines[0][1]
    assert f"GPU idle {100 * (gpu.idle_ms or 0) / gpu.predicted_ms:.1f} %, overhead-bound" in lines[0][1]
    assert "the interval is wide because: " in lines[1][1]
    assert f"convolution {100 * gpu.families[0].share:.1f} %" in dict(lines)["Time by op"]
    assert len([line for line in lines if line[0] == "Would help" or (line[0] == "" and "instead of" in line[1])]) <= 3


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        (None, None),
        ("L2", "less than the ideal: the cache holds what was just written"),
        ("fused, clock", "less than the ideal: fused kernels do not write and read again what is between their ops; the board runs above"),
    ],
)
def test_less_than_the_ideal_is_explained(reasons: str | None, said: str | None) -> None:
    (gpu,) = analysis("v100").gpus
    root = msgspec.structs.replace(gpu.layers[0], below_ideal=reasons)
    found = below_ideal(msgspec.structs.replace(gpu, layers=(root, *gpu.layers[1:])))
    assert found is None if said is None else (found is not None and found.startswith(said))


def test_a_correction_is_said() -> None:
    found = analysis("v100", measured=Correction(2.0, 0.15, "3.00 ms measured on Tesla T4"))
    plain = analysis("v100")
    assert found.gpus[0].predicted_ms == pytest.approx(2 * (plain.gpus[0].predicted_ms or 0.0))
    assert "all times x 2.00: 3.00 ms measured on Tesla T4" in " ".join(drawn(found).split())


@pytest.mark.parametrize("width", [80, 100, 200])
def test_predicted_stands_beside_ideal(width: int) -> None:
    head = next(line for line in drawn(analysis("v100"), width).splitlines() if line.startswith("layer (type)"))
    assert "bound" in head
    assert " ".join(head.split()).endswith("ideal predicted share")
    head = next(line for line in drawn(analysis("v100", "t4"), width).splitlines() if "predicted" in line)
    for name in ("bound", "ideal", "low", "high", "samples/s"):
        assert name in head


def test_overhead_has_a_colour_and_a_word() -> None:
    row = next(line for line in drawn(analysis("rtx-4090")).splitlines() if line.startswith("total"))
    assert "overhead" in row
