"""``--phase`` as a user types it."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("transformers", reason="the extra `hf` is not installed")

from modelstat.cli.entry import main

SPEC = (
    "hf:llama(vocab_size=1000,hidden_size=64,intermediate_size=128,num_hidden_layers=1,num_attention_heads=8,num_key_value_heads=2,"
    "max_position_embeddings=512)"
)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([SPEC, *arguments]) == 0
    return capsys.readouterr().out


def test_decode_is_a_report_like_any_other(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(run(capsys, "--phase", "decode", "--context", "100", "--precision", "bf16", "--format", "json"))
    assert document["schema"] == "modelstat/1"
    assert any("a cache of 100 positions" in warning for warning in document["warnings"])
    # Projections 64 x (64 + 16 + 16 + 64), feed-forward 3 x 64 x 128, logits 64 x 1000, 8 heads x 101 keys x 16.
    assert document["totals"]["macs"] == 64 * 160 + 3 * 64 * 128 + 64 * 1000 + 8 * 101 * 16


def test_a_smaller_cache_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "kept in fp8" in run(capsys, "--phase", "prefill", "--prompt", "8", "--kv-cache", "fp8")


def test_serving_has_a_row_for_each_gpu(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    given = ["--phase", "serve", "--prompt", "64", "--generate", "32", "--precision", "bf16", "--batch", "2"]
    given += ["--gpu", "a100-sxm-80,h100-sxm"]
    found = json.loads(run(capsys, *given, "--format", "json"))
    assert found["schema"] == "modelstat-serving/1"
    assert (found["batch"], found["prompt"], found["generate"], len(found["gpus"])) == (2, 64, 32, 2)
    lines = run(capsys, *given, "--format", "csv").splitlines()
    assert lines[0].startswith("gpu,batch,precision,first_token_ms,token_ms")
    assert len(lines) == 3
    table = run(capsys, *given)
    assert "prompts of 64 tokens, 32 tokens written" in " ".join(table.split())
    assert "largest" in table
    assert all(len(line) <= 100 for line in table.splitlines())
    monkeypatch.setenv("COLUMNS", "80")
    assert all(len(line) <= 80 for line in run(capsys, *given).splitlines())


def test_several_batches_are_several_reports(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, "--phase", "serve", "--prompt", "8", "--generate", "4", "--batch", "1,2", "--format", "json"))
    assert [each["batch"] for each in found] == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--context", "8"), "--context 8: add --phase decode"),
        (("--prompt", "8"), "add --phase prefill or serve"),
        (("--phase", "decode", "--generate", "8"), "add --phase serve"),
        (("--phase", "decode", "--context", "0"), "at least 1"),
        (("--phase", "decode", "--context", "512"), "beyond the 512 positions"),
        (("--phase", "serve", "--prompt", "500", "--generate", "20"), "--prompt 500 and --generate 20 are beyond the 512 positions"),
        (("--phase", "serve", "--prompt", "500", "--generate", "14"), "give fewer tokens, at most 513 together"),
        (("--phase", "serve", "--prompt", "600", "--generate", "1"), "--prompt 600 is beyond the 512 positions"),
        (("--phase", "decode", "--kv-cache", "fp4"), "choose from fp8, int8"),
        (("--phase", "decode", "--input", "8:int64"), "--input does not go with --phase decode"),
        (("--phase", "decode", "--training", "adam"), "--training does not go with --phase decode"),
        (("--phase", "serve", "--top", "3"), "--top is for the report of one pass"),
        (("--phase", "serve", "--causal", "half"), "--causal is for the report of one pass"),
        (("--phase", "serve", "--strict"), "--strict is for the report of one pass"),
        (("--phase", "serve", "--format", "torchstat"), "--format torchstat is for the report of one pass"),
    ],
)
def test_what_does_not_go_together(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str) -> None:
    assert main([SPEC, *arguments]) == 2
    assert message in capsys.readouterr().err
