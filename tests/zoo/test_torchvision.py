"""torchvision's other tasks against what torchvision publishes: ``num_params`` and ``_ops`` (1e9 MACs, three decimals).

Its classification models are in tests/test_torchvision.py; together these are all of its models. What a detection model finds hangs on
its weights, so the numbers of boxes are fixed, see modelstat/sources/detection.py; the numbers are in data/torchvision.csv.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

torchvision = pytest.importorskip("torchvision", reason="the extra `zoo` is not installed")

from torchvision.models import get_model_weights, list_models  # noqa: E402

from modelstat.api import trace_spec  # noqa: E402
from modelstat.cost.registry import costs  # noqa: E402
from modelstat.errors import UsageError  # noqa: E402
from modelstat.records import Trace  # noqa: E402
from modelstat.sources import parse  # noqa: E402

with (Path(__file__).parent / "data" / "torchvision.csv").open(encoding="utf-8") as file:
    MODELS = list(csv.DictReader(file))

PUBLISHED = {"fcn_resnet50": (3, 520, 520), "r3d_18": (3, 16, 112, 112), "raft_small": (3, 512, 512)}


def spec_of(row: dict[str, str]) -> str:
    return f"torchvision:{row['model']}" + (f"({row['arguments']})" if row["arguments"] else "")


def params(trace: Trace) -> int:
    return sum(parameter.elements for parameter in trace.parameters if parameter.kind == "parameter")


def crop(weight: Any) -> str | None:
    """The clip that a video weight was made for: 16 frames of its crop size. None for the other tasks, whose inputs are all the same."""
    size = weight.transforms.keywords.get("crop_size") if "video" in type(weight).__module__ else None
    if size is None:
        return None
    height, width = size if isinstance(size, Sequence) else (size, size)
    return f"3x16x{height}x{width}"


def test_with_the_classification_models_these_are_all() -> None:
    names = [row["model"] for row in MODELS]
    assert sorted(names + list_models(module=torchvision.models)) == sorted(list_models())
    assert len(list_models()) >= 121


@pytest.mark.parametrize("row", MODELS, ids=lambda row: row["model"])
def test_params_and_macs_are_the_published_ones(row: dict[str, str]) -> None:
    for weight in {crop(weight): weight for weight in get_model_weights(row["model"])}.values():
        trace = trace_spec(spec_of(row), crop(weight))
        cost = costs(trace)
        assert trace.run == "fake"
        assert params(trace) - int(row["params_difference"]) == weight.meta["num_params"]
        assert sum(one.macs for one in cost) == pytest.approx(weight.meta["_ops"] * 1e9, rel=0.005, abs=0.0005e9)
        assert [op.name for op, one in zip(trace.ops, cost, strict=True) if one.known == "unknown"] == []


@pytest.mark.parametrize("model", ["fcos_resnet50_fpn", "ssdlite320_mobilenet_v3_large"])
def test_one_stage_detection_costs_the_same_whatever_it_finds(model: str) -> None:
    trace = trace_spec(f"torchvision:{model}")
    assert trace.run == "real"
    assert sum(one.macs for one in costs(trace)) == sum(one.macs for one in costs(trace_spec(f"torchvision:{model}(detections=3)")))


@pytest.mark.parametrize(
    ("model", "macs_of_a_proposal"),
    [
        # the box head on 256 x 7 x 7 features: two layers of 1,024, then 91 classes and 4 x 91 corners
        ("fasterrcnn_resnet50_fpn", 256 * 49 * 1024 + 1024**2 + 1024 * 91 * 5),
        # the same, for two classes
        ("keypointrcnn_resnet50_fpn", 256 * 49 * 1024 + 1024**2 + 1024 * 2 * 5),
    ],
)
def test_a_proposal_costs_what_its_head_costs(model: str, macs_of_a_proposal: int) -> None:
    totals = [
        sum(one.macs for one in costs(trace_spec(f"torchvision:{model}(proposals={count}, detections=0)", "3x64x64", 2)))
        for count in (3, 10)
    ]
    assert totals[1] - totals[0] == 2 * (10 - 3) * macs_of_a_proposal  # two images


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("torchvision:fcos_resnet50_fpn(proposals=10)", "fcos_resnet50_fpn has no second stage, so no proposals"),
        ("torchvision:resnet18(detections=10)", "resnet18 detects nothing"),
        ("torchvision:ssd300_vgg16(detections=-1)", "detections is a number of boxes, not -1"),
    ],
)
def test_counts_that_make_no_sense(spec: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(spec).build()


def test_fixed_counts_are_said() -> None:
    notes = parse("torchvision:ssd300_vgg16(detections=5)").build().notes
    assert "5 detections for each image, as asked: what would choose them does not run" in notes
