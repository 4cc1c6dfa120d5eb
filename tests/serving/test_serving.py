"""What serving takes, from the passes that it is made of."""

from __future__ import annotations

import msgspec
import pytest

pytest.importorskip("transformers", reason="the extra `hf` is not installed")

import modelstat
from modelstat.api import trace_spec
from modelstat.errors import InputError, MissingPeakError, UsageError
from modelstat.hardware.database import find
from modelstat.memory.peak import peak_memory
from modelstat.predict.execution import Execution
from modelstat.predict.roofline import FITS_SHARE
from modelstat.serving.cache import cache_bytes
from modelstat.serving.phase import decode, prefill
from modelstat.serving.serving import Serving, largest_batch, needed_bytes, traces
from modelstat.serving.timing import span

# One layer: keys and values are 2 x 2 heads x 8 channels x 2 bytes = 64 bytes a token.
SPEC = (
    "hf:llama(vocab_size=1000,hidden_size=64,intermediate_size=128,num_hidden_layers=1,num_attention_heads=8,num_key_value_heads=2,"
    "max_position_embeddings=512)"
)
RUN = Execution("compile", cuda_graph=True)


def served(batch: int = 4, prompt: int = 64, generate: int = 32, gpu: str | None = "a100-sxm-80", kv_cache: str | None = None) -> Serving:
    return modelstat.serve(
        SPEC, gpu=gpu, precision="bf16", batch=batch, prompt=prompt, generate=generate, kv_cache=kv_cache, execution=RUN
    )


def test_times_are_those_of_its_passes() -> None:
    found = served()
    (gpu,) = found.gpus
    board = find("a100-sxm-80")
    prompt = span(trace_spec(SPEC, None, 1, "bf16", phase=prefill(64)), board, RUN)
    # The prompt yields the first of 32 tokens; the other 31 are written against 64 to 94 positions.
    first, last = (span(trace_spec(SPEC, None, 4, "bf16", phase=decode(past)), board, RUN) for past in (64, 94))
    assert gpu.first_token == prompt
    assert gpu.token is not None
    assert first.predicted_seconds is not None
    assert last.predicted_seconds is not None
    assert prompt.predicted_seconds is not None
    step = (first.predicted_seconds + last.predicted_seconds) / 2
    assert gpu.token.predicted_seconds == pytest.approx(step)
    assert gpu.decode_tokens_per_second == pytest.approx(4 / step)
    assert gpu.tokens_per_second == pytest.approx(4 * 32 / (4 * prompt.predicted_seconds + 31 * step))


def test_the_cache_holds_all_but_the_last_token() -> None:
    found = served(batch=4, prompt=64, generate=32)
    assert found.kv_token_bytes == 64
    assert found.kv_sequence_bytes == 64 * (64 + 31)
    assert found.kv_bytes == 4 * 64 * (64 + 31)
    assert served(kv_cache="int8").kv_bytes * 2 == found.kv_bytes


def test_one_token_needs_no_decode() -> None:
    found = served(generate=1)
    (gpu,) = found.gpus
    assert gpu.token is None
    assert gpu.decode_tokens_per_second is None
    assert found.kv_sequence_bytes == 64 * 64
    assert gpu.first_token is not None
    assert gpu.first_token.predicted_seconds is not None
    assert gpu.tokens_per_second == pytest.approx(1 / gpu.first_token.predicted_seconds)


def test_two_tokens_are_one_decode() -> None:
    found = served(generate=2)
    assert found.kv_sequence_bytes == 64 * 65


def test_memory_is_weights_caches_and_the_larger_pass() -> None:
    found = served(batch=4)
    last = trace_spec(SPEC, None, 4, "bf16", phase=decode(94))
    reading = trace_spec(SPEC, None, 1, "bf16", phase=prefill(64))
    working = max(peak_memory(each).activation_bytes - cache_bytes(each) for each in (last, reading))
    assert found.gpus[0].needed_bytes == found.weight_bytes + 4 * 64 * 95 + working


def test_the_largest_batch_fits_and_one_more_does_not() -> None:
    passes = traces(lambda phase, size: trace_spec(SPEC, None, size, "bf16", phase=phase), 4, 64, 32)
    sequence = 64 * 95
    room = float(needed_bytes(passes, 100, sequence, 4))
    assert largest_batch(passes, 4, sequence, room) == 100
    assert largest_batch(passes, 4, sequence, room - 1.0) == 99
    assert largest_batch(passes, 4, sequence, 1.0) == 0


def test_the_activations_of_a_batch_are_those_of_a_walk_at_that_batch() -> None:
    """Memory at 64 sequences, told from a walk at 4: within 1 % of a walk at 64."""
    passes = traces(lambda phase, size: trace_spec(SPEC, None, size, "bf16", phase=phase), 4, 64, 32)
    walked = trace_spec(SPEC, None, 64, "bf16", phase=decode(94))
    assert needed_bytes(passes, 64, 64 * 95, 4) == pytest.approx(peak_memory(walked).peak_bytes, rel=0.01)


def test_fits_is_the_share_of_the_memory() -> None:
    (gpu,) = served().gpus
    assert gpu.memory_bytes is not None
    assert gpu.fits is (gpu.needed_bytes <= FITS_SHARE * gpu.memory_bytes)
    assert gpu.largest_batch is not None
    assert gpu.largest_batch >= 4


def test_without_a_gpu_there_are_facts_alone() -> None:
    found = served(gpu=None)
    assert found.gpus == ()
    assert found.params == found.active_params
    assert msgspec.json.decode(msgspec.json.encode(found), type=Serving) == found


def test_a_lone_gpu_without_the_peak_is_an_error_and_one_of_several_is_a_row() -> None:
    with pytest.raises(MissingPeakError, match="bfloat16"):
        modelstat.serve(SPEC, gpu="v100", precision="bf16", prompt=8, generate=4)
    found = modelstat.serve(SPEC, gpu=("v100", "a100-sxm-80"), precision="bf16", prompt=8, generate=4)
    assert [gpu.tokens_per_second is None for gpu in found.gpus] == [True, False]


@pytest.mark.parametrize(
    ("batch", "prompt", "generate", "message"),
    [(0, 8, 8, "--batch 0"), (1, 0, 8, "--prompt 0"), (1, 8, 0, "--generate 0"), (1, 500, 14, "--prompt 500 and --generate 14 are beyond")],
)
def test_numbers_that_cannot_be(batch: int, prompt: int, generate: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        served(batch, prompt, generate)


def test_an_unknown_format_of_the_cache() -> None:
    with pytest.raises(UsageError, match="fp8, int8"):
        served(kv_cache="int4")
