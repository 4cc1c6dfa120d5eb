"""Precision plans, ranges, several GPUs and sizing from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import nn

import modelstat
from modelstat.deploy.parallel import Layout

Run = Callable[..., Any]


def test_a_range_of_batches(run: Run, small: str) -> None:
    code, out, _ = run(f"{small}:Net", "--input", "3x32x128", "--batch", "1,2,4..16", "--gpu", "v100")
    assert code == 0
    assert "batch at which each bound holds on Tesla V100 PCIe 32GB" in out
    assert "whole model (Net)" in out
    assert "conv (Conv2d)" in out
    assert "memory: full above batch" in out


def test_a_length_by_name(run: Run, small: str) -> None:
    code, out, _ = run(f"{small}:Net", "--input", "3x32xside", "--sweep", "side=32..512", "--format", "json")
    assert code == 0
    documents = json.loads(out)
    assert [each["inputs"][0]["shape"] for each in documents] == [[1, 3, 32, side] for side in (32, 64, 128, 256, 512)]
    # 8 x 3 x 3 x 3 products a pixel
    assert [each["totals"]["macs"] for each in documents] == [216 * 32 * side for side in (32, 64, 128, 256, 512)]


def test_a_precision_plan(run: Run, small: str) -> None:
    arguments = (f"{small}:Net", "--input", "3x32x128", "--format", "json")
    code, out, _ = run(*arguments, "--weights", "int8")
    assert code == 0
    totals = json.loads(out)["totals"]
    # 216 weights in one byte, 8 scales of 2 B, and the bias in fp32
    assert totals["weight_bytes"] == 216 + 8 * 2 + 8 * 4
    assert totals["params"] == 224
    assert totals["flops"] == 1_802_240


def test_a_precision_plan_in_python() -> None:
    found = modelstat.analyze(nn.Linear(128, 64), "128", weights="int4", group=32)
    # half a byte a weight, 4 B a group of 32, and the bias in fp32
    assert found.totals.weight_bytes == 128 * 64 // 2 + 4 * 128 * 64 // 32 + 4 * 64
    with pytest.raises(modelstat.UsageError, match="leave training out"):
        modelstat.analyze(nn.Linear(128, 64), "128", weights="int8", training="sgd")


@pytest.fixture
def block(tmp_path: Path) -> tuple[str, ...]:
    """Two products, 64 -> 256 -> 64, with relu between: on two GPUs one all-reduce of what comes out."""
    file = tmp_path / "block.py"
    file.write_text(
        "from torch import nn\ndef build():\n    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))\n"
    )
    return (f"{file}:build", "--input", "64")


def test_several_gpus(run: Run, block: tuple[str, ...]) -> None:
    code, out, _ = run(*block, "--batch", "8", "--gpu", "h100", "--tensor-parallel", "2", "--data-parallel", "2")
    assert code == 0
    out = " ".join(out.split())
    assert "4 x H100 SXM5 80GB: 2-way tensor parallel, 2-way data parallel; 450 GB/s in one direction" in out
    # 8 x 64 fp32 results: both of two GPUs send half of them twice.
    assert "1 x all-reduce (2.05 kB sent by each GPU)" in out
    assert "-bound (compute" in out


def test_several_gpus_as_json(run: Run, block: tuple[str, ...]) -> None:
    code, out, _ = run(*block, "--batch", "8,16", "--gpu", "h100,t4", "--tensor-parallel", "2", "--format", "json")
    assert code == 0
    documents = json.loads(out)
    assert [[each["key"] for each in document["layouts"]] for document in documents] == [["h100-sxm", "t4"]] * 2
    for document in documents:
        size = 4 * document["batch"] * 64
        for layout in document["layouts"]:
            assert (layout["tensor"], layout["pipeline"], layout["data"], layout["gpus"]) == (2, 1, 1, 2)
            assert [(each["kind"], each["bytes"], each["path"]) for each in layout["collectives"]] == [("all-reduce", size, "2")]
            # half of both weights and of the first bias, the second bias
            assert layout["weight_bytes"] == 4 * (64 * 256 + 128 + 64)
            assert layout["lower_ms"] == max(layout["compute_ms"], layout["memory_ms"], layout["comm_ms"])
            assert layout["comm_ms"] == layout["collectives"][0]["ms"]


def test_several_gpus_in_python() -> None:
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    found = modelstat.analyze(model, "64", batch=8, gpu=["h100", "v100"], precision="bf16", layout=Layout(tensor=2, pipeline=2))
    known, unknown = found.layouts
    assert (known.gpus, known.missing, len(known.stages)) == (4, None, 2)
    assert unknown.missing is not None, "a V100 has no bf16 peak"
    assert unknown.lower_ms is None
    assert modelstat.analyze(model, "64", gpu="h100").layouts == ()
    with pytest.raises(modelstat.UsageError, match="give gpu"):
        modelstat.analyze(model, "64", layout=Layout(tensor=2))


def test_crossings_as_json(run: Run, small: str) -> None:
    arguments = (f"{small}:Net", "--input", "3x32x128", "--batch", "1,2,4..16")
    code, out, _ = run(*arguments, "--gpu", "v100", "--format", "json")
    assert code == 0
    documents = json.loads(out)
    found = [document["crossings"] for document in documents]
    assert found == [found[0]] * 5, "the range is that of all five batches"
    (one,) = found[0]
    assert (one["key"], one["name"], one["last"], one["step"]) == ("v100-pcie-32", "batch", 16, 1)
    assert [row["path"] for row in one["rows"]] == ["", "conv"]
    assert all(row["predicted"][0]["size"] == row["ideal"][0]["size"] == 1 for row in one["rows"])
    # 9.95 FLOP/B is below the ridge of 15.56 whatever the batch
    assert [row["ideal"] for row in one["rows"]] == [[{"size": 1, "bound": "memory"}]] * 2
    code, out, _ = run(*arguments, "--format", "json")
    assert code == 0
    assert "crossings" not in json.loads(out)[0], "bounds are a GPU's"


def test_sizing(run: Run, small: str, tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('currency = "USD"\n[hourly]\nt4 = 0.35\n')
    arguments = ("size", f"{small}:Net", "--input", "3x32x128", "--qps", "500", "--latency", "50ms")
    code, out, _ = run(*arguments, "--prices", str(prices), "--format", "json")
    assert code == 0
    found = json.loads(out)
    assert found["ranked"][0]["gpu"]["key"] == "t4", "the only one with a price"
    assert len(found["ranked"]) + len(found["out"]) > 100
    code, out, _ = run(*arguments, "--gpu", "t4,v100", "--top", "1")
    assert code == 0
    assert "2 of 2 GPUs can do it" in out
    assert "and 1 more" in out
    for form in ("csv", "markdown"):
        code, out, _ = run(*arguments, "--gpu", "t4", "--format", form)
        assert code == 0
        assert "Tesla T4" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--weights", "int4"), "int4 in groups of 128: conv sums 27 products an output, which 128 does not divide"),
        (("--weights", "int9"), "choose from int8, int4, fp8, nf4"),
        (("--weights", "int8", "--plan", "x.yaml"), "leave --weights, --activations and --group out"),
        (("--weights", "int8", "--precision", "amp-fp16"), "autocast keeps weights in fp32: use --precision fp16"),
        (("--weights", "int8", "--training", "adam"), "--training and a precision plan do not go together"),
        (("--plan", "absent.yaml"), "absent.yaml cannot be read"),
        (("--batch", "8..4"), "the first size is above the last"),
        (("--sweep", "side=32..64"), "side stands in no size"),
        (("--sweep", "side"), "write it like seq=128..32768"),
        (("--tensor-parallel", "2"), "add --gpu NAME"),
        (("--tensor-parallel", "2", "--gpu", "v100", "--format", "csv"), "use --format table or json instead of csv"),
        (("--pipeline", "0", "--gpu", "v100"), "--pipeline 0"),
        (("--pipeline", "2", "--gpu", "v100"), "has only 1 ops that take time"),
        (("--tensor-parallel", "2", "--gpu", "jetson-nano"), "has neither interconnect nor PCIe"),
    ],
)
def test_bad_input(run: Run, small: str, arguments: tuple[str, ...], message: str) -> None:
    code, _, err = run(f"{small}:Net", "--input", "3x32x128", *arguments)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--qps", "0", "--latency", "50ms"), "--qps 0: give the requests a second"),
        (("--qps", "5", "--latency", "soon"), "'soon' is not a time"),
        (("--qps", "5", "--latency", "50ms", "--gpu", "t5"), "t5"),
        (("--qps", "5", "--latency", "50ms", "--prices", "absent.toml"), "--prices absent.toml cannot be read"),
        (("--qps", "5", "--latency", "50ms", "--top", "0"), "--top 0"),
        (("--qps", "5"), "latency"),
    ],
)
def test_bad_sizes(run: Run, small: str, arguments: tuple[str, ...], message: str) -> None:
    code, _, err = run("size", f"{small}:Net", "--input", "3x32x128", *arguments)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
