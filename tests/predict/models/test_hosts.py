"""A host is found again from the times that it makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from modelstat.api import trace_spec
from modelstat.cost.registry import costs

pytest.importorskip("torchvision", reason="the extra `zoo` is not installed")


@pytest.fixture(scope="module")
def ready(script: Callable[[str], Any]) -> list[Any]:
    """Five models in two precisions, whose measured times are still to be set."""
    made = []
    for model in ("squeezenet1_1", "resnet18", "mobilenet_v2", "resnet34", "mnasnet0_5"):
        for precision in ("fp32", "fp16"):
            trace = trace_spec(f"torchvision:{model}", "3x224x224", 2, precision)
            row = script("rows").Row(
                1, "pytorch-gpu-benchmark", "titan-rtx", model, "3x224x224", 2, precision, "nchw", "eager", 1.0, None, None
            )
            made.append(script("predictions").Ready(row, trace, costs(trace), 1.0))
    return made


@pytest.mark.parametrize(("issue", "copy"), [(20e-6, 0.0), (60e-6, 4.0e-3), (1.05**70 * 1e-6, 1.2e-3)])
def test_the_host_that_made_the_times(script: Callable[[str], Any], ready: list[Any], issue: float, copy: float) -> None:
    hosts = script("hosts")
    true = hosts.Host(issue, copy)
    rows = [each._replace(row=each.row._replace(measured_seconds=each.at(true).predicted)) for each in ready]
    (found,) = hosts.hosts(rows).values()
    assert found.issue == pytest.approx(issue, rel=0.05)
    assert found.copy == pytest.approx(copy, abs=0.15e-3)
    assert len(found.probes) == 3
    (alone,) = hosts.hosts(rows, copies=False).values()
    assert alone.copy == 0.0
    assert alone.issue >= found.issue


def test_an_fp16_batch_is_copied_in_a_third_of_the_time(script: Callable[[str], Any]) -> None:
    host = script("hosts").Host(copy=3e-3)
    assert [host.copy_seconds(precision) for precision in ("fp32", "tf32", "fp16")] == pytest.approx([3e-3, 3e-3, 1e-3])
