"""Predicted times on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_resnet50_at_batch_1_is_bound_by_overhead_where_it_is(run: Run) -> None:
    code, out, _ = run("resnet50", "--gpu", "v100,t4,a100,rtx-4090", "--batch", "1", "--host", "slow")
    assert code == 0
    rows = {name: next(line for line in out.splitlines() if line.startswith(name)) for name in ("Tesla T4", "GeForce RTX 4090")}
    assert "overhead" in rows["GeForce RTX 4090"]
    assert "overhead" not in rows["Tesla T4"], "a slow GPU keeps its host waiting"
    code, out, _ = run("resnet50", "--gpu", "rtx-4090", "--batch", "1", "--cuda-graph")
    assert "overhead" not in next(line for line in out.splitlines() if line.startswith("total"))
    assert "GPU idle 0.0 %" in out


def test_options_reach_the_contract(run: Run, small: str) -> None:
    options = ("--mode", "compile", "--channels-last", "--host", "20", "--format", "json")
    code, out, _ = run(f"{small}:Net", "--input", "3x16x16", "--gpu", "t4", *options)
    assert code == 0
    (gpu,) = json.loads(out)["gpus"]
    assert (gpu["mode"], gpu["execution"]) == ("compile", "compile, channels last, host 20 us an op")
    assert gpu["predicted_low_ms"] < gpu["predicted_ms"] < gpu["predicted_high_ms"]


def test_a_measurement_corrects_other_gpus(run: Run, small: str, tmp_path: Path) -> None:
    def predicted(*options: str) -> tuple[float, float]:
        code, out, err = run(f"{small}:Net", "--input", "3x16x16", "--format", "json", *options)
        assert code == 0, err
        entry = json.loads(out)["gpus"][0]
        return entry["predicted_ms"], entry["predicted_high_ms"]

    owned, other = predicted("--gpu", "t4")[0], predicted("--gpu", "v100")[0]
    fixed, high = predicted("--gpu", "v100", "--measured", f"{3 * owned}ms@t4")
    assert fixed == pytest.approx(3 * other)
    assert high >= 1.15 * fixed * (1 - 1e-9)
    file = tmp_path / "mine.csv"
    file.write_text(f"gpu,model,input,batch,precision,measured_ms\nt4,{small}:Net,3x16x16,1,fp32,{3 * owned}\n")
    assert predicted("--gpu", "v100", "--measured", str(file))[0] == pytest.approx(3 * other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--gpu", "v100", "--host", "quick"), "host 'quick': give fast, typical, slow"),
        (("--gpu", "v100", "--mode", "jit"), 'Choose from: "eager", "compile"'),
        (("--mode", "compile"), "--mode changes a predicted time: add --gpu NAME"),
        (("--cuda-graph",), "--cuda-graph changes a predicted time"),
        (("--measured", "3ms@t4"), "--measured changes a predicted time"),
        (("--gpu", "v100", "--measured", "3ms"), "such as 12.3ms@rtx-3090, or a CSV file"),
        (("--gpu", "v100", "--measured", "3ms@nothing"), "no GPU is called 'nothing'"),
        (("--gpu", "v100", "--batch", "1,2", "--measured", "3ms@t4"), "is the time of one batch and precision"),
        (("--gpu", "v100", "--measured", "nowhere.csv"), "nowhere.csv cannot be read"),
        (("--gpu", "v100", "--precision", "bf16"), "has no bfloat16 peak"),
    ],
)
def test_bad_input_is_one_line(run: Run, small: str, options: tuple[str, ...], message: str) -> None:
    code, out, err = run(f"{small}:Net", "--input", "3x16x16", *options)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_a_missing_peak_among_several_is_a_null_row(run: Run, small: str) -> None:
    code, out, _ = run(f"{small}:Net", "--input", "3x16x16", "--gpu", "v100,a100", "--precision", "bf16", "--format", "json")
    assert code == 0
    without, given = json.loads(out)["gpus"]
    assert (without["predicted_ms"], without["throughput"]) == (None, None)
    assert given["predicted_ms"] > 0
