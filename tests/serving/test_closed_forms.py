"""Prefill and decode of published models against their closed forms, to 0.1 %: the table of docs/language-models.md."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="the extra `hf` is not installed")

from modelstat.api import trace_spec
from modelstat.cost.registry import costs
from modelstat.records import Trace
from modelstat.serving.cache import cache_bytes, token_bytes
from modelstat.serving.phase import Phase, decode, prefill
from tests.serving.closed_forms import CONTEXT, MODELS, PROMPT

ROOT = Path(__file__).parents[2]


def traced(name: str, phase: Phase) -> Trace:
    return trace_spec(str(ROOT / "zoo_configs" / f"{name}.yaml"), phase=phase)


def totals(trace: Trace) -> tuple[int, int]:
    """FLOPs and bytes."""
    found = costs(trace)
    return sum(cost.flops for cost in found), sum(cost.bytes for cost in found)


def row(name: str) -> Iterable[tuple[str, int, int]]:
    """Name of a number, as counted, as its closed form."""
    model, context = MODELS[name], CONTEXT[name]
    reading, writing = traced(name, prefill(PROMPT)), traced(name, decode(context))
    flops, moved = totals(reading)
    yield "prefill FLOPs", flops, model.prefill_flops(PROMPT)
    yield "prefill bytes", moved, model.prefill_bytes(PROMPT)
    flops, moved = totals(writing)
    yield "decode FLOPs", flops, model.decode_flops(context)
    yield "decode bytes", moved, model.decode_bytes(context)
    yield "KV bytes of a token", token_bytes(writing), model.kv_bytes(1)
    yield "KV bytes", cache_bytes(writing), model.kv_bytes(context + 1)


@pytest.mark.parametrize("name", MODELS)
def test_counts_are_the_closed_forms_and_the_table_of_the_documentation(name: str) -> None:
    numbers = list(row(name))
    for number, counted, closed in numbers:
        assert counted == pytest.approx(closed, rel=0.0 if number.startswith("KV") else 1e-3), number
    assert line(name, numbers) in (ROOT / "docs" / "language-models.md").read_text(encoding="utf-8")


def line(name: str, numbers: Iterable[tuple[str, int, int]]) -> str:
    """A model's row in the documentation: each number as counted and, behind a slash, its closed form."""
    cells = [f"{CONTEXT[name]:,}"]
    for number, counted, closed in numbers:
        scale, places = (1e12, 3) if number == "prefill FLOPs" else (1e3, 2) if number == "KV bytes of a token" else (1e9, 3)
        cells.append(f"{counted / scale:,.{places}f} / {closed / scale:,.{places}f}")
    return f"| {name} | {' | '.join(cells)} |"
