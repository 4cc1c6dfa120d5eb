"""`modelstat gpus`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

from modelstat.hardware.database import all_gpus

Run = Callable[..., Any]


def test_all_are_listed_within_100_columns(run: Run) -> None:
    code, out, err = run("gpus")
    assert (code, err) == (0, "")
    keys = {line.split()[0] for line in out.splitlines()}
    assert {gpu.key for gpu in all_gpus()} <= keys
    assert max(map(len, out.splitlines())) <= 100


def test_one_gpu_shows_ridge_points_source_and_confidence(run: Run) -> None:
    """82.6 TFLOP/s / 1008 GB/s = 81.9 FLOP/B; 165.2 / 1008 = 163.9 in fp16 on tensor cores."""
    code, out, _ = run("gpus", "RTX 4090")
    assert code == 0
    for text in ("GeForce RTX 4090", "1008 GB/s", "81.9", "163.8", "fp16_tensor", "source", "confidence"):
        assert text in out


def test_an_override_says_what_it_derived(run: Run) -> None:
    """2 x 2560 cores x 1815 MHz = 9.2928 TFLOP/s; / 448 GB/s = 20.74 FLOP/B."""
    code, out, _ = run("gpus", "2070 super,clock=1815MHz")
    assert code == 0
    assert "20.74" in out
    assert "derived" in out


def test_json_and_csv(run: Run) -> None:
    assert json.loads(run("gpus", "t4", "--format", "json").out)["sms"] == 40
    rows = list(csv.DictReader(io.StringIO(run("gpus", "--format", "csv").out)))
    assert len(rows) == len(all_gpus())
    assert len(json.loads(run("gpus", "--format", "json").out)) == len(rows)
