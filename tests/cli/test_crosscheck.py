"""``modelstat MODEL --crosscheck``: what it prints, and its exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., Any]

MODELS = """
import torch
from torch import nn

import modelstat

@torch.library.custom_op("crosscheck_tests::product", mutates_args=())
def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w

product.register_fake(lambda x, w: x.new_empty(x.shape[0], w.shape[1]))
modelstat.formula("crosscheck_tests::product")(lambda op: op.inputs[0].elements * op.inputs[1].shape[1])


class Custom(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(4, 3), requires_grad=False)

    def forward(self, x):
        return product(x, self.w)


def custom():
    return Custom(), (torch.zeros(2, 4),)


def plain():
    return nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3))
"""


def write(folder: Path) -> str:
    (folder / "models.py").write_text(MODELS)
    return str(folder / "models.py")


def test_explained_differences_are_no_failure(run: Run, tmp_path: Path) -> None:
    """LayerNorm of 6 rows of 3: fvcore counts 5 per element."""
    code, out, err = run(f"{write(tmp_path)}:plain", "--input", "2x4", "--batch", "3", "--crosscheck", "--no-cache")
    assert (code, err) == (0, "")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "1 (LayerNorm) 0 90 +90 0 0 [1]" in lines
    assert "total 72 162 +90 72 0" in lines
    assert lines[-1] == "fvcore and FlopCounterMode: 1 of 2 modules differ, 1 explained"


def test_an_unexplained_difference_is_exit_code_1(run: Run, tmp_path: Path) -> None:
    """No other counter knows an op of the user's: 2 x 4 x 3 MACs are missing from both."""
    code, out, _ = run(f"{write(tmp_path)}:custom", "--crosscheck", "--no-cache")
    assert code == 1
    assert "UNEXPLAINED (fvcore) UNEXPLAINED (FlopCounterMode)" in out
    assert out.endswith("1 of 1 modules differ, 0 explained, 1 UNEXPLAINED\n")


def test_json_and_a_list_of_batches(run: Run, tmp_path: Path) -> None:
    code, out, _ = run(f"{write(tmp_path)}:plain", "--input", "4", "--batch", "1,2", "--crosscheck", "--format", "json", "--no-cache")
    assert code == 0
    checks = json.loads(out)
    assert [check["macs"] for check in checks] == [12, 24]
    assert [check["differences"][0]["difference"] for check in checks] == [
        {"fvcore": 15, "FlopCounterMode": 0},
        {"fvcore": 30, "FlopCounterMode": 0},
    ]


def test_a_format_that_it_does_not_have(run: Run, tmp_path: Path) -> None:
    code, _, err = run(f"{write(tmp_path)}:plain", "--input", "4", "--crosscheck", "--format", "latex")
    assert code == 2
    assert err == "modelstat: error: --crosscheck has no latex: choose --format table or json\n"


def test_eval_and_causal(run: Run, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n"
        "class Net(nn.Module):\n"
        "    def forward(self, x):\n"
        "        return F.scaled_dot_product_attention(x, x, x, is_causal=True)\n\n"
        "def build():\n    return nn.Sequential(Net(), nn.BatchNorm2d(2))\n"
    )
    spec = (f"{tmp_path / 'net.py'}:build", "--input", "2x4x3", "--format", "json", "--no-cache")

    def macs_and_flops(*options: str) -> tuple[int, int]:
        code, out, err = run(*spec, *options)
        assert code == 0, err
        totals = json.loads(out)["totals"]
        return totals["macs"], totals["flops"]

    pairs, half = 2 * 4 * 4, 2 * (4 * 5 // 2)
    # 2 x 3 MACs and 6 FLOPs a pair; BatchNorm of 24 elements: 7 in training, 2 in eval.
    assert macs_and_flops() == (pairs * 2 * 3, pairs * (2 * 2 * 3 + 6) + 24 * 7)
    assert macs_and_flops("--eval") == (pairs * 2 * 3, pairs * (2 * 2 * 3 + 6) + 24 * 2)
    assert macs_and_flops("--eval", "--causal", "half") == (half * 2 * 3, half * (2 * 2 * 3 + 6) + 24 * 2)
    _, out, _ = run(*spec, "--causal", "half")
    assert "below its mask only (half)" in json.loads(out)["warnings"][0]
