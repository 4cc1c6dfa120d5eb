"""`modelstat gpus`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

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


NO_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")


@NO_GPU
def test_a_machine_without_a_gpu_says_so_in_one_line(run: Run) -> None:
    code, out, err = run("gpus", "--local")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 1
    for part in (f"torch {torch.__version__}", "cpu: ", f"{torch.get_num_threads()} threads", "modelstat calibrate --device cpu"):
        assert part in out


@NO_GPU
def test_no_gpu_is_no_json(run: Run) -> None:
    code, out, err = run("gpus", "--local", "--format", "json")
    assert (code, out) == (2, "")
    assert "modelstat calibrate" in err


def test_a_name_and_the_local_gpu(run: Run) -> None:
    assert run("gpus", "t4", "--local").code == 2


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("Tesla T4", 'in the database. The same anywhere: --gpu "t4"'),
        ("NVIDIA Imaginary 9", '--gpu "name=NVIDIA Imaginary 9,arch=ada,sms=10,'),
    ],
)
def test_a_gpu_is_told_with_its_definition(run: Run, monkeypatch: pytest.MonkeyPatch, name: str, how: str) -> None:
    """What torch says of a device stands in for the device; everything else is as it runs."""
    properties = SimpleNamespace(
        name=name, major=8, minor=9, multi_processor_count=10, clock_rate=2_000_000, memory_clock_rate=8_000_000, memory_bus_width=128,
        total_memory=8 * 2**30, L2_cache_size=2**22, uuid="none",
    )  # fmt: skip
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    code, out, err = run("gpus", "--local")
    assert (code, err) == (0, "")
    first, rest = out.split("\n", 1)
    assert first.startswith(f"This machine: {name}, ")
    assert how in first
    assert "ridge point" in rest
    assert json.loads(run("gpus", "--local", "--format", "json").out)["memory_gb"] in (8.0, 16.0)

