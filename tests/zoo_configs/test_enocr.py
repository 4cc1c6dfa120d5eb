"""The review that modelstat is for: an OCR network and its ghost variant against the totals that were published for both.

The totals are torchstat's, on a 3x32x128 image; torchstat prints MiB and 1e6.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from modelstat.api import trace_spec
from modelstat.cost.registry import costs
from modelstat.hardware.database import resolve
from modelstat.predict.execution import Execution
from modelstat.records import Trace
from modelstat.report.torchstat import TorchstatTotals, torchstat_rows
from modelstat.report.verdict import Verdict
from modelstat.rewrite.plan import plans
from modelstat.swapping import Bench

CONFIGS = Path(__file__).parents[2] / "zoo_configs"
PLAIN, GHOST = str(CONFIGS / "enocr.yaml"), str(CONFIGS / "enocr_ghost.yaml")

LAYERS = [
    (8, 3), (40, 3), (16, 5), (20, 3), (96, 1), None,
    (48, 1), (20, 3), (40, 1), (32, 1), (16, 3), (12, 1), (20, 1), (56, 3), None,
    (20, 5), (80, 1), (20, 1), (48, 1), (40, 3), (80, 3), (24, 1), (80, 1), (16, 3), None,
    (24, 1),
]  # fmt: skip
"""Out channels and kernel of each convolution; None is a pool."""

PUBLISHED = {
    PLAIN: {"params": 146_826, "memory": 4.65 * 2**20, "madd": 303.08e6, "flops": 152.68e6, "moved": 9.99 * 2**20},
    GHOST: {"params": 81_150, "memory": 12.72 * 2**20, "madd": 170.27e6, "flops": 86.29e6, "moved": 27.88 * 2**20},
}


def totals(spec: str) -> TorchstatTotals:
    trace = trace_spec(spec)
    return torchstat_rows(trace, costs(trace)).total


def number(total: TorchstatTotals, name: str) -> float:
    return total.read + total.write if name == "moved" else float(getattr(total, name))


@pytest.mark.parametrize("spec", [PLAIN, GHOST], ids=["plain", "ghost"])
@pytest.mark.parametrize("name", ["params", "memory", "madd", "flops", "moved"])
def test_each_published_total_is_met_within_two_percent(spec: str, name: str) -> None:
    assert number(totals(spec), name) == pytest.approx(PUBLISHED[spec][name], rel=0.02)


def test_params_are_the_sums_of_both_formulas() -> None:
    plain = ghost = 0
    channels = 3
    for layer in filter(None, LAYERS):
        out, kernel = layer
        plain += out * channels * kernel**2 + out
        ghost += out // 2 * channels * kernel**2 + out // 2 * 9 + 2 * out
        channels = out
    assert (totals(PLAIN).params, totals(GHOST).params) == (plain, ghost) == (149_184, 79_728)


def test_the_ghost_is_the_rule_s_own_result() -> None:
    traces: list[Trace] = [trace_spec(GHOST)]
    bench = Bench(PLAIN, None, (), Execution(), cache=False)
    made = bench.verdict(plans(["conv=ghost"]), [(None, None)]).runs[0].after
    assert (made.params, made.macs) == (totals(GHOST).params, sum(cost.macs for cost in costs(traces[0])))
    assert traces[0].swaps[0].rule == "conv=ghost"


@pytest.fixture(scope="module")
def verdict() -> Verdict:
    gpus = resolve(["2070 super,clock=1815MHz", "v100"])
    return Bench(PLAIN, None, gpus, Execution(), cache=False).verdict(plans(["conv=ghost"]), [(None, 1), (None, 64)])


def test_the_intensity_falls_below_the_ridge(verdict: Verdict) -> None:
    # 2 x 2560 cores x 1.815 GHz over 448 GB/s, and 14.0 TFLOP/s over 900 GB/s
    assert [round(gpu.ridge or 0, 2) for gpu in verdict.runs[0].gpus] == [round(9292.8 / 448, 2), round(14000 / 900, 2)]
    for run in verdict.runs:
        for gpu in run.gpus:
            assert run.before.intensity is not None
            assert run.after.intensity is not None
            assert gpu.ridge is not None
            assert run.before.intensity > gpu.ridge > run.after.intensity
            assert gpu.crosses
            assert "crosses the ridge" in gpu.sentence


def test_the_lighter_model_is_slower_at_batch_64(verdict: Verdict) -> None:
    board = verdict.runs[1].gpus[0]
    assert board.change["ideal_ms"] is not None
    assert board.change["predicted_ms"] is not None
    assert 0.5 <= board.change["ideal_ms"] <= 1.2
    assert 0.5 <= board.change["predicted_ms"] <= 1.2
    assert (board.after.ideal_bound, board.after.bound) == ("memory", "memory")
    assert (board.before.ideal_bound, board.before.bound) == ("compute", "compute")
    assert "slower at batch 64, memory-bound" in board.sentence
    assert board.wins is not None
    assert board.wins.won == ()


def test_at_batch_1_the_host_is_the_limit(verdict: Verdict) -> None:
    for board in verdict.runs[0].gpus:
        assert (board.before.bound, board.after.bound) == ("overhead", "overhead")
        # 23 convolutions, 3 pools and 11 ReLUs; of each convolution a ghost makes two, with two norms, two ReLUs and a concatenation
        assert (board.before.kernels, board.after.kernels) == (23 + 3 + 11, 23 * 7 + 3 + 11)
        assert "overhead-bound: 175 kernels instead of 37, 4.7x as many launches" in board.sentence
