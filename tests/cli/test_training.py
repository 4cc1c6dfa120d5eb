"""`--training`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Run = Callable[..., Any]


def test_a_step_of_training_is_below_the_table(run: Run, small: str) -> None:
    code, out, _ = run(f"{small}:Net", "--input", "3x32x128", "--training", "momentum", "--gpu", "a100")
    assert code == 0
    text = " ".join(out.split())
    # One layer whose input is given: MACs as the forward's; the bias is added to, and summed over, every output.
    assert "Training 3.60 M FLOPs a step: forward 1.80 M, backward 1.80 M, 2.00 times the forward" in text
    assert "weights 896 B, gradients 896 B, momentum's state 896 B, activations" in text
    assert "fits (peak memory, up to 95 %)" in text


def test_json_has_it_and_the_cache_keeps_both_traces(run: Run, small: str) -> None:
    first = run(f"{small}:Net", "--input", "3x32x128", "--batch", "2", "--training", "adam", "--format", "json")
    step = json.loads(first.out)["training"]
    assert step["backward_macs"] == step["forward_macs"] == 2 * 884_736
    assert (step["optimizer"], step["optimizer_bytes"]) == ("adam", 2 * 4 * 224)
    assert run(f"{small}:Net", "--input", "3x32x128", "--batch", "2", "--training", "adam", "--format", "json") == first
    plain = run(f"{small}:Net", "--input", "3x32x128", "--batch", "2", "--format", "json")
    assert "training" not in json.loads(plain.out)


def test_an_optimizer_that_does_not_exist(run: Run, small: str) -> None:
    code, out, err = run(f"{small}:Net", "--input", "3x32x128", "--training", "lion")
    assert (code, out) == (2, "")
    assert "lion" in err
    assert "adam" in err
    assert err.count("\n") == 1


def test_nothing_to_train(run: Run, small: str) -> None:
    code, out, err = run(f"{small}:Unknown", "--input", "3x4", "--training", "sgd")
    assert (code, out) == (2, "")
    assert "no output depends on a parameter that is trained" in err
