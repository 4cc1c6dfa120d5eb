"""timm: a sample of its architectures against the parameters and GMACs that timm publishes with its benchmarks.

timm's counter counts BatchNorm at 2 per element. All of timm is surveyed by scripts/survey, see docs/coverage.md.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("timm", reason="the extra `zoo` is not installed")

from modelstat.api import trace_spec
from modelstat.cost.record import Cost
from modelstat.cost.registry import costs
from modelstat.records import Op

DATA = Path(__file__).parent / "data"
with (DATA / "timm_sample.csv").open(encoding="utf-8") as file:
    SAMPLE = list(csv.DictReader(file))


def test_the_sample_holds_as_many_kinds_as_there_are_rows() -> None:
    assert len({row["model"] for row in SAMPLE}) == len(SAMPLE) >= 25


@pytest.mark.parametrize("row", SAMPLE, ids=lambda row: row["model"])
def test_params_and_macs_are_the_published_ones(row: dict[str, str]) -> None:
    trace = trace_spec(f"timm:{row['model']}", row["input"])
    cost = costs(trace)
    assert trace.run == "fake"
    params = sum(parameter.elements for parameter in trace.parameters if parameter.kind == "parameter")
    # Two decimals are published.
    assert params / 1e6 == pytest.approx(float(row["params_m"]), rel=0.02, abs=0.0051)
    batch_norm = sum(2 * op.outputs[0].elements for op in trace.ops if "batch_norm" in op.name)
    counted = (sum(one.macs for one in cost) + batch_norm) / 1e9
    assert counted == pytest.approx(float(row["gmacs"]), rel=0.05, abs=0.0051)
    assert [op.name for op, one in zip(trace.ops, cost, strict=True) if one.known == "unknown"] == []


def depthwise(op: Op, cost: Cost) -> int:
    return -cost.macs if cost.family == "convolution" and op.argument("groups", 1) > 1 else 0


def recurrent(op: Op, cost: Cost) -> int:
    return -cost.macs if cost.family == "rnn" else 0


def group_norm(op: Op, cost: Cost) -> int:
    return 5 * op.outputs[0].elements if "group_norm" in op.name else 0


@pytest.mark.parametrize(
    ("model", "gmacs", "correction"),
    [
        # What timm's counter leaves out (data/timm_differences.csv) is what our count has more, or the other way round.
        ("convmixer_768_32", 19.55, depthwise),
        ("convmixer_1536_20", 48.68, depthwise),
        ("sequencer2d_s", 4.96, recurrent),
        ("sequencer2d_m", 6.55, recurrent),
        ("sequencer2d_l", 9.74, recurrent),
        ("efficientnet_b0_gn", 0.42, group_norm),
        ("efficientnet_b3_gn", 1.74, group_norm),
    ],
)
def test_differences_are_what_the_table_says(model: str, gmacs: float, correction: Callable[[Op, Cost], int]) -> None:
    trace = trace_spec(f"timm:{model}")
    batch_norm = sum(2 * op.outputs[0].elements for op in trace.ops if "batch_norm" in op.name)
    counted = sum(cost.macs + correction(op, cost) for op, cost in zip(trace.ops, costs(trace), strict=True)) + batch_norm
    assert counted / 1e9 == pytest.approx(gmacs, rel=0.005, abs=0.0051)
    with (DATA / "timm_differences.csv").open(encoding="utf-8") as file:
        assert model in {row["model"] for row in csv.DictReader(file)}


def test_a_model_that_changed_had_the_counts_of_a_smaller_one() -> None:
    """timm built ecaresnext50t_32x4d with the two blocks a stage of ecaresnext26t_32x4d: 15.41 M parameters and 2.7 GMACs."""
    for model in ("ecaresnext26t_32x4d", "ecaresnext50t_32x4d(layers=[2, 2, 2, 2])"):
        trace = trace_spec(f"timm:{model}")
        params = sum(parameter.elements for parameter in trace.parameters if parameter.kind == "parameter")
        batch_norm = sum(2 * op.outputs[0].elements for op in trace.ops if "batch_norm" in op.name)
        assert params / 1e6 == pytest.approx(15.41, abs=0.0051)
        assert (sum(cost.macs for cost in costs(trace)) + batch_norm) / 1e9 == pytest.approx(2.7, abs=0.0051)
