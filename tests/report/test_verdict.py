"""The verdict on a swap: sums of its parts, changes as shares, and a sentence that says what happened."""

from __future__ import annotations

import csv
import io
import json

import msgspec
import pytest
import torch
from torch import Tensor, nn

import modelstat
from modelstat.analysis import Analysis
from modelstat.hardware.database import resolve
from modelstat.predict.execution import Execution
from modelstat.records import Swap
from modelstat.report import verdict_best, verdict_table
from modelstat.report.verdict import Verdict, verdict
from modelstat.report.verdict_grid import layers_grid, totals_grid
from modelstat.report.verdict_layers import groups, shares
from modelstat.report.verdict_wins import Wins, wins
from modelstat.rewrite.flow import TraceFlow
from modelstat.rewrite.plan import plans
from modelstat.rewrite.source import apply
from modelstat.trace.capture import capture

IMAGE = (torch.zeros(1, 8, 16, 16),)
GPUS = resolve(["v100", "t4"])
RULES = ["conv=ghost"]


class Net(nn.Module):
    """Two convolutions that a ghost takes and one (depthwise) that it does not."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.act = nn.Conv2d(8, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU()
        self.deep = nn.Conv2d(32, 32, 3, padding=1, groups=32)
        self.last = nn.Conv2d(32, 16, 3, padding=1)

    def forward(self, image: Tensor) -> Tensor:
        features: Tensor = torch.relu(self.last(self.deep(self.act(self.norm(self.first(image))))))
        return features


def pair(rules: list[str] = RULES) -> tuple[Analysis, Analysis]:
    model = Net().eval()
    before = capture(model, IMAGE, batch=1)
    new, swaps = apply(model, plans(rules), lambda each: TraceFlow(capture(each, IMAGE)))
    after = msgspec.structs.replace(capture(new, IMAGE, batch=1), swaps=swaps)
    return Analysis.from_trace(before, GPUS), Analysis.from_trace(after, GPUS)


@pytest.fixture(scope="module")
def made() -> Verdict:
    return verdict([pair()], RULES, lambda run, gpu: Wins((1, 4), (), "wins at no batch up to 4"))


def test_changed_layers_are_the_layer_with_what_it_absorbed(made: Verdict) -> None:
    (run,) = made.runs
    first, last = run.layers
    assert (first.path, first.absorbed, last.path, last.absorbed) == ("first", ("norm", "act"), "last", ())
    # 32 x 72 weights and the norm's 64; 16 x 72 + 16 x 9 and two norms of 2 x 16
    assert (first.before.params, first.after.params) == (32 * 72 + 64, 16 * 72 + 16 * 9 + 64)
    assert (last.before.macs, last.after.macs) == (256 * 16 * 288, 256 * (8 * 288 + 8 * 9))
    # one output of the convolution, of the norm and of the activation, 4 bytes each
    assert first.before.memory_bytes == 3 * 32 * 256 * 4
    assert first.change["macs"] == first.after.macs / first.before.macs - 1
    assert [(swap.path, swap.reason) for swap in made.skipped] == [("deep", "it is depthwise already")]


def test_what_did_not_change_is_the_rest(made: Verdict) -> None:
    (run,) = made.runs
    for name in ("params", "macs", "flops", "mem_bytes", "memory_bytes"):
        rest = [getattr(side, name) - sum(getattr(getattr(layer, word), name) for layer in run.layers)
                for side, word in ((run.before, "before"), (run.after, "after"))]  # fmt: skip
        assert rest[0] == rest[1], name
    for gpu in range(2):
        times = [
            getattr(run.gpus[gpu], word).ideal_ms - sum(getattr(layer.gpus[gpu], word).ideal_ms for layer in run.layers)
            for word in ("before", "after")
        ]
        assert times[0] == pytest.approx(times[1])


def test_totals_are_those_of_the_analyses(made: Verdict) -> None:
    before, after = pair()
    (run,) = made.runs
    for side, analysis in ((run.before, before), (run.after, after)):
        totals = analysis.totals
        assert (side.params, side.macs, side.flops) == (totals.params, totals.macs, totals.flops)
        assert side.mem_bytes == totals.mem_read_bytes + totals.mem_write_bytes
    assert run.gpus[1].after.predicted_ms == after.gpus[1].predicted_ms
    assert run.gpus[0].before.ideal_ms == before.gpus[0].ideal_ms


def test_the_sentence_says_it(made: Verdict) -> None:
    gpu = made.runs[0].gpus[0]
    kernels = f"{gpu.after.kernels} kernels instead of {gpu.before.kernels}"
    # 3 convolutions, a norm and 2 ReLUs; each ghost has 2 convolutions, 2 norms, 2 ReLUs and a concatenation, one more ReLU is a function
    assert kernels == f"{7 + 1 + 7 + 1} kernels instead of 6"
    for part in ("fewer FLOPs", "the bytes", "below the ridge", "at batch 1, overhead-bound", kernels, "wins at no batch up to 4"):
        assert part in gpu.sentence


def test_shares() -> None:
    class Two(msgspec.Struct):
        a: float | None
        b: int
        c: str = ""

    assert shares(Two(2.0, 0), Two(1.0, 0)) == {"a": -0.5, "b": 0.0}
    assert shares(Two(None, 0), Two(1.0, 3)) == {"a": None, "b": None}


def test_rules_on_the_same_layer_are_one_change() -> None:
    swaps = [
        Swap("norm=fold", "bn", "BatchNorm2d", "Identity", absorbed=("conv",)),
        Swap("conv=ghost", "conv", "Conv2d", "GhostModule", absorbed=("act",)),
        Swap("act=silu", "conv.primary.2", "ReLU", "SiLU"),
        Swap("act=silu", "other", "ReLU", "SiLU"),
        Swap("act=gelu", "other", "SiLU", "GELU"),
        Swap("act=gelu", "left", "ReLU", reason="why"),
    ]
    assert [(group.path, group.before, group.after, group.paths) for group in groups(swaps)] == [
        ("bn", "BatchNorm2d", "Identity", ("bn", "conv", "act", "conv.primary.2")),
        ("other", "ReLU", "GELU", ("other",)),
    ]


def test_wins_are_the_batches_at_which_it_is_faster() -> None:
    before, after = (each.trace for each in pair())
    found = wins(before, after, GPUS, Execution())
    assert all(each is not None and each.tried == (1, 4, 16, 64, 256) for each in found)
    # a model against itself never wins
    assert all(each is not None and each.won == () for each in wins(before, before, GPUS, Execution()))
    assert wins(msgspec.structs.replace(before, batch=None), after, GPUS, Execution()) == (None, None)


@pytest.mark.parametrize("wide", [True, False])
def test_the_table_has_every_changed_layer_and_the_verdicts(made: Verdict, wide: bool) -> None:
    file = io.StringIO()
    verdict_table.write_table(made, file, wide=wide)
    text = " ".join(file.getvalue().split())
    for part in ("first", "last", "FLOP/B", "deep: it is depthwise already", "Verdict Tesla V100 PCIe 32GB, batch 1, fp32: ", "Tesla T4"):
        assert part in text
    assert ("GhostModule (with norm, act)" in text) == wide
    if not wide:
        assert max(map(len, file.getvalue().splitlines())) <= 100


def test_markdown_has_a_caption_that_reproduces_it(made: Verdict) -> None:
    file = io.StringIO()
    verdict_table.write_markdown_tables(made, file)
    text = file.getvalue()
    assert text.count("\n| total") == 1
    assert f"modelstat {modelstat.__version__}" in text
    assert "14.0 TFLOP/s fp32 dense, 900 GB/s" in text
    assert "Left as it was: deep: it is depthwise already" in text


def test_json_and_csv_have_the_raw_numbers(made: Verdict) -> None:
    file = io.StringIO()
    verdict_table.write_json(made, file)
    document = json.loads(file.getvalue())
    assert document["schema"] == "modelstat-swap/1"
    assert document["runs"][0]["before"]["params"] == made.runs[0].before.params
    assert document["runs"][0]["gpus"][0]["sentence"] == made.runs[0].gpus[0].sentence
    file = io.StringIO()
    verdict_table.write_csv(made, file)
    rows = list(csv.DictReader(io.StringIO(file.getvalue())))
    assert [(row["path"], row["gpu"]) for row in rows] == [(path, gpu.name) for gpu in GPUS for path in ("total", "first", "last")]
    assert int(rows[0]["macs_after"]) == made.runs[0].after.macs
    assert float(rows[4]["predicted_ms_after"]) == made.runs[0].layers[0].gpus[1].after.predicted_ms


def test_without_a_gpu_there_are_counts_only() -> None:
    analyses = pair()
    made = verdict([tuple(Analysis.from_trace(each.trace) for each in analyses)], RULES)  # type: ignore[list-item]
    assert [column.name for column in layers_grid(made, made.runs[0], wide=False).columns] == [
        "layer", "params", "flops", "mem_bytes", "intensity",
    ]  # fmt: skip
    assert len(totals_grid(made, made.runs[0]).rows) == 6


def test_a_ranking_is_by_time() -> None:
    before, after = pair()
    _, grouped = pair(["conv=grouped"])
    ranking = verdict_best.ranked(before, [verdict_best.Trial(rule, "whole model", each) for rule, each in (("a", after), ("b", grouped))])
    assert [rank.rule for rank in ranking.ranks] == ["b", "a"]
    assert ranking.ranks[0].speedup == pytest.approx((ranking.predicted_ms or 0) / (ranking.ranks[0].predicted_ms or 1))
    assert [rank.layers for rank in ranking.ranks] == [2, 2]
    for form in ("table", "json", "csv", "markdown"):
        file = io.StringIO()
        verdict_best.write(ranking, form, file)
        assert "whole model" in file.getvalue()
