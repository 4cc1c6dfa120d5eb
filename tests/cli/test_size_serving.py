"""`modelstat size --phase serve` as a user types it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="the extra `hf` is not installed")

from modelstat.deploy.size_serving import size_serving
from modelstat.report.serving_sizing import grid, render

Run = Callable[..., Any]

SPEC = (
    "hf:llama(vocab_size=1000,hidden_size=64,intermediate_size=128,num_hidden_layers=1,num_attention_heads=8,num_key_value_heads=2,"
    "max_position_embeddings=512)"
)
SERVE = ("size", SPEC, "--phase", "serve", "--precision", "bf16")
SIZE = (*SERVE, "--prompt", "64", "--generate", "32")


def test_all_gpus_are_ranked_or_out(run: Run) -> None:
    code, out, err = run(*SIZE, "--qps", "1000", "--ttft", "500ms", "--tpot", "50ms", "--format", "json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["schema"] == "modelstat-serving-sizing/1"
    assert found["demand"] == {"qps": 1000.0, "prompt": 64, "generate": 32, "ttft_seconds": 0.5, "tpot_seconds": 0.05}
    assert len(found["ranked"]) + len(found["out"]) > 100
    assert {one["gpu"]["key"] for one in found["out"]} >= {"v100-pcie-32"}


def test_the_table(run: Run) -> None:
    code, out, _ = run(*SIZE, "--tokens", "64000", "--gpu", "l4,h100,v100", "--top", "1")
    assert code == 0
    flat = " ".join(out.split())
    # 64,000 tokens a second in answers of 32
    assert "2,000 requests/s, prompts of 64 tokens, 32 written: 64,000 tokens/s; no limit on times" in flat
    assert "2 of 3 GPUs can do it" in flat
    assert "and 1 more: leave --top out" in flat
    assert "no bfloat16 peak" in flat
    assert "serving engines replay graphs: --mode compile --cuda-graph" in flat
    code, out, _ = run(*SIZE, "--qps", "10", "--tpot", "50ms", "--gpu", "l4", "--cuda-graph", "--mode", "compile")
    assert "TPOT within 50.0 ms" in " ".join(out.split())
    assert "replay graphs" not in out


def test_several_gpus_together(run: Run) -> None:
    """Two work as one: they come in twos, and a board that nothing connects is out."""
    asked = (*SIZE, "--qps", "40000", "--gpu", "l4,h100,jetson-nano", "--mode", "compile", "--cuda-graph")
    code, out, _ = run(*asked, "--tensor-parallel", "2")
    assert code == 0
    flat = " ".join(out.split())
    assert "2-way tensor parallel" in flat
    assert "neither interconnect nor PCIe in the database" in flat
    assert "those of 2 GPUs that share each layer" in flat
    (two, one) = (json.loads(run(*asked, *given, "--format", "json")[1]) for given in (("--tensor-parallel", "2"), ()))
    assert (two["tensor_parallel"], one["tensor_parallel"]) == (2, 1)
    for row in two["ranked"]:
        assert row["gpus"] % 2 == 0
        assert row["utilisation"] == pytest.approx(40000 / (row["gpus"] / 2 * row["requests_per_second"]))
        assert row["power_watts"] == row["gpus"] * row["gpu"]["tdp_w"]
    assert two["model"] == one["model"]


@pytest.mark.parametrize("width", [80, 200])
def test_it_fits_into_the_terminal(width: int) -> None:
    found = size_serving(SPEC, qps=1000, precision="bf16", prompt=64, generate=32)
    file = io.StringIO()
    render(found, "table", file, width=width)
    lines = file.getvalue().splitlines()
    assert max(len(line) for line in lines) <= width
    header = next(line for line in lines if line.startswith("GPU "))
    assert header.split()[:6] == ["GPU", "GPUs", "batch", "limit", "TTFT", "TPOT"]
    assert ("prompt" in header) is (width == 200)


def test_other_formats(run: Run, tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('currency = "USD"\n[hourly]\nl4 = 0.35\n')
    code, out, _ = run(*SIZE, "--qps", "1000", "--gpu", "h100,l4", "--prices", str(prices), "--format", "csv")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["rank"], row["gpu"]) for row in rows] == [("1", "L4"), ("2", "H100 SXM5 80GB")]
    assert float(rows[0]["cost_per_hour"]) == 0.35 * int(rows[0]["gpus"])
    assert rows[1]["cost_per_million_tokens"] == ""
    code, out, _ = run(*SIZE, "--qps", "1000", "--gpu", "l4", "--format", "markdown")
    assert code == 0
    assert out.startswith("|")
    assert "TTFT = step / 2" in out


def test_a_row_says_what_limits_it(run: Run) -> None:
    found = size_serving(SPEC, qps=1000, tpot=0.002, precision="bf16", prompt=64, generate=32, gpu=["h100"], cuda_graph=True)
    shown = grid(found)
    names = [column.name for column in shown.columns]
    assert found.ranked[0].limit == "tpot"
    assert shown.rows[0].values[names.index("limit")] == "TPOT"
    assert "fits" not in names, "the memory of every GPU is known"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--qps", "5", "--latency", "50ms"), "--latency does not go with --phase serve: use --ttft TIME and --tpot TIME"),
        (("--qps", "5", "--input", "8:int64"), "--input does not go with --phase serve: use --prompt N"),
        (("--qps", "5", "--channels-last"), "--channels-last does not go with --phase serve: leave it out"),
        ((), "add --qps REQUESTS/S, or --tokens"),
        (("--qps", "5", "--tokens", "5"), "give one of both"),
        (("--qps", "-5"), "--qps -5: give the requests a second"),
        (("--tokens", "0"), "--tokens 0: give the tokens a second"),
        (("--qps", "5", "--ttft", "soon"), "'soon' is not a time"),
        (("--qps", "5", "--tpot", "0ms"), "--tpot 0: give a time above 0"),
        (("--qps", "5", "--generate", "1"), "answers of at least 2 tokens"),
        (("--qps", "5", "--prompt", "0"), "--prompt 0: give a number of tokens"),
        (("--qps", "5", "--prompt", "500"), "--prompt 500 and --generate 256 are beyond the 512 positions"),
        (("--qps", "5", "--kv-cache", "fp4"), "choose from fp8, int8"),
        (("--qps", "5", "--gpu", "t5"), "t5"),
        (("--qps", "5", "--prices", "absent.toml"), "--prices absent.toml cannot be read"),
        (("--qps", "5", "--weights", "int9"), "choose from int8, int4, fp8, nf4"),
        (("--qps", "5", "--tensor-parallel", "0"), "--tensor-parallel 0: give a whole number of GPUs of at least 1"),
        (("--qps", "5", "--prompt", "8", "--generate", "8", "--tensor-parallel", "3"), "8 heads"),
    ],
)
def test_bad_input(run: Run, arguments: tuple[str, ...], message: str) -> None:
    code, _, err = run(*SERVE, *arguments)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_another_phase_is_no_size(run: Run) -> None:
    code, _, err = run("size", SPEC, "--qps", "5", "--phase", "decode")
    assert code == 2
    assert "serve" in err
    assert err.count("\n") == 1


def test_a_model_that_writes_nothing(run: Run, small: str) -> None:
    code, _, err = run("size", f"{small}:Net", "--phase", "serve", "--qps", "5")
    assert code == 2
    assert "--phase is for language models of transformers" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--ttft", "500ms"), "--ttft 500ms is for language models: add --phase serve"),
        (("--tpot", "50ms"), "--tpot 50ms is for language models: add --phase serve"),
        (("--tokens", "5"), "--tokens 5.0 is for language models: add --phase serve"),
        (("--prompt", "8"), "--prompt 8 is for language models: add --phase serve"),
        (("--kv-cache", "fp8"), "--kv-cache fp8 is for language models: add --phase serve"),
        (("--tensor-parallel", "2"), "--tensor-parallel 2 is for language models: add --phase serve"),
        ((), "a size needs a limit: add --latency TIME"),
    ],
)
def test_options_without_the_phase(run: Run, small: str, arguments: tuple[str, ...], message: str) -> None:
    code, _, err = run("size", f"{small}:Net", "--input", "3x32x128", "--qps", "5", *arguments)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_one_pass_without_a_demand(run: Run, small: str) -> None:
    code, _, err = run("size", f"{small}:Net", "--input", "3x32x128", "--latency", "50ms")
    assert (code, err.count("\n")) == (2, 1)
    assert "add --qps N" in err
