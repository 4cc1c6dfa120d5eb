"""torchvision's classification models against what torchvision publishes: ``num_params`` and ``_ops`` (1e9 MACs, three decimals)."""

from __future__ import annotations

from typing import Any

import pytest
import torchvision
from torchvision.models import get_model_weights

from modelstat.api import trace_spec
from modelstat.cost.registry import costs


def classifiers() -> list[str]:
    return torchvision.models.list_models(module=torchvision.models)


def spec_of(name: str) -> str:
    # The published number of googlenet leaves its two auxiliary heads out.
    return f"torchvision:{name}(aux_logits=False)" if name == "googlenet" else f"torchvision:{name}"


def published() -> list[tuple[str, object, list[int]]]:
    """Every model with the weight that holds its figures, once for each crop size that its weights were made for."""
    rows: dict[tuple[str, tuple[int, ...]], object] = {}
    for name in classifiers():
        for weight in get_model_weights(name):
            rows.setdefault((name, tuple(crop(weight))), weight)
    return [(name, weight, list(size)) for (name, size), weight in rows.items()]


def crop(weight: object) -> list[int]:
    size = list(weight.transforms().crop_size)  # type: ignore[attr-defined]
    return [*size, *size][:2] if len(size) == 1 else size


@pytest.mark.parametrize(("name", "weight", "size"), published(), ids=lambda value: str(value).split(".")[-1] if value else None)
def test_params_and_macs_are_the_published_ones(name: str, weight: Any, size: list[int]) -> None:
    trace = trace_spec(spec_of(name), f"3x{size[0]}x{size[1]}")
    assert trace.run == "fake"
    assert trace.inputs[0].shape == (1, 3, *size)
    cost = costs(trace)
    assert sum(parameter.elements for parameter in trace.parameters if parameter.kind == "parameter") == weight.meta["num_params"]
    assert sum(one.macs for one in cost) == pytest.approx(weight.meta["_ops"] * 1e9, rel=0.005, abs=0.0005e9)
    assert [op.name for op, one in zip(trace.ops, cost, strict=True) if one.known == "unknown"] == []


def test_all_eighty_are_there() -> None:
    assert len(classifiers()) >= 80


def test_the_default_input_is_the_default_weights_crop_size() -> None:
    for name in ("resnet50", "inception_v3", "efficientnet_b1"):
        (given,) = trace_spec(spec_of(name)).inputs
        assert given.shape == (1, 3, *crop(get_model_weights(name).DEFAULT))
