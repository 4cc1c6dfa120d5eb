"""Constants that only whole models show: those that made the times are found again."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torchvision", reason="the extra `zoo` is not installed")

MODELS = ("resnet18", "mobilenet_v2", "vgg11", "convnext_tiny", "shufflenet_v2_x1_0", "vit_b_16")
CHANGED = {
    ("convolution", "half", "direct_efficiency"): 0.8,
    ("convolution", "half", "thin_memory"): 0.6,
    ("rates", "values", "memory_gddr"): 0.85,
}


@pytest.fixture(scope="module")
def data(script: Callable[[str], Any]) -> Any:
    rows = [
        script("rows").Row(1, "made", gpu, f"torchvision:{model}", "3x224x224", 64, "amp-fp16", layout, "eager", 1.0, None, None)
        for model in MODELS
        for gpu in ("rtx-3090", "rtx-4090")
        for layout in ("nchw", "nhwc")
    ]
    return script("features").dataset(rows, Path(), workers=1)


def test_all_rows_have_kernels(data: Any) -> None:
    assert len(data.rows) == len(MODELS) * 4
    assert len(set(data.runs)) == len(MODELS) * 2  # two GPUs run the same kernels


def test_the_fit_recovers_the_constants_that_made_the_times(script: Callable[[str], Any], data: Any) -> None:
    fit = script("fit")
    known = copy.deepcopy(fit.tables(data))
    for (family, table, name), value in CHANGED.items():
        known[family, table][name] = value
    times = fit.predicted(data, known)
    made = data._replace(rows=[row._replace(measured_seconds=float(time)) for row, time in zip(data.rows, times, strict=True)])
    free = [fit.Free(*key, 1.0) for key in CHANGED]
    found = fit.fit(made, free, np.ones(len(times), dtype=bool))
    for (family, table, name), value in CHANGED.items():
        assert found[family, table][name] == pytest.approx(value, rel=0.03), name
