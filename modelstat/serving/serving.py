"""What serving a language model takes: time to the first token, time of each further one, memory, and how many sequences fit.

Each prompt is read by itself, then ``batch`` sequences write together, a token each in a pass: what continuous batching comes to.
Every number is from traces of the model: one of a prompt, one of the first token that is written after it, one of the last. Between these
two, time and cache are affine in the context, so their mean is that of all tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import msgspec

from modelstat.errors import InputError
from modelstat.hardware.gpu import Gpu
from modelstat.memory.peak import peak_memory, weight_bytes
from modelstat.predict.execution import Execution
from modelstat.predict.roofline import FITS_SHARE
from modelstat.records import Trace
from modelstat.serving.cache import Format, cache_bytes, stored, token_bytes
from modelstat.serving.experts import Experts, experts
from modelstat.serving.phase import GENERATE, PROMPT, Phase, checked, decode, prefill
from modelstat.serving.steady import Steady
from modelstat.serving.timing import Span, mean, span

Tracer = Callable[[Phase, int], Trace]
"""Walks the model through a phase at a batch."""


class Traces(msgspec.Struct, frozen=True):
    """The passes of one request: its prompt alone, and the first and the last token written after the first, in the batch.

    ``first`` and ``last`` are None where nothing is written after the token that the prompt itself yields.
    """

    prompt: Trace
    first: Trace | None
    last: Trace | None


class Phases(NamedTuple):
    """What each of the :class:`Traces` is a pass of."""

    prompt: Phase
    first: Phase | None
    last: Phase | None


class ServingOnGpu(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU. Times are None where the GPU lacks a peak (``missing`` says which) or nothing is written.

    ``first_token`` is the prompt's pass, ``token`` the mean pass of the batch after it. ``decode_tokens_per_second`` counts the batch while
    it writes, ``tokens_per_second`` with the time that its prompts take. ``needed_bytes`` is the most that is held at once (B);
    ``largest_batch`` the most sequences that fit, 0 where one does not, None where the GPU has no memory of its own.
    """

    name: str
    first_token: Span | None
    token: Span | None
    decode_tokens_per_second: float | None
    tokens_per_second: float | None
    memory_bytes: float | None
    needed_bytes: int
    fits: bool | None
    largest_batch: int | None
    missing: str | None = None


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """One model, one batch, one length of prompt and answer (tokens). Bytes are B.

    ``kv_token_bytes`` is what one token adds to the cache of its sequence, ``kv_bytes`` the whole cache of the batch at the end,
    ``kv_sequence_bytes`` that of one sequence. ``experts`` is what a pass of the batch meets of routed experts.
    """

    schema: Literal["modelstat-serving/1"] = "modelstat-serving/1"
    model: str
    precision: str
    kv_cache: str
    batch: int
    prompt: int
    generate: int
    params: int
    active_params: int
    weight_bytes: int
    kv_token_bytes: int
    kv_sequence_bytes: int
    kv_bytes: int
    experts: Experts | None
    gpus: tuple[ServingOnGpu, ...]
    execution: str
    notes: tuple[str, ...] = ()


def phases(prompt: int | None, generate: int | None) -> Phases:
    """The passes of a request. Raises InputError for numbers below 1."""
    reading, written = prefill(prompt), checked("--generate", GENERATE if generate is None else generate)
    if written == 1:
        return Phases(reading, None, None)
    return Phases(reading, decode(reading.tokens), decode(reading.tokens + written - 2))


def traces(tracer: Tracer, batch: int, prompt: int | None, generate: int | None, kv_cache: Format | None = None) -> Traces:
    """Walk the passes. Raises InputError for numbers below 1, and what the tracer raises."""
    wanted = phases(prompt, generate)
    if batch < 1:
        raise InputError(f"--batch {batch}: a batch is at least 1")

    def walked(phase: Phase, size: int) -> Trace:
        trace = tracer(phase, size)
        return trace if kv_cache is None else stored(trace, kv_cache)

    # The longest pass goes first: a request beyond the model's positions fails before anything else is walked.
    last = None if wanted.last is None else walked(wanted.last, batch)
    first = last if wanted.first is None or wanted.first == wanted.last else walked(wanted.first, batch)
    return Traces(walked(wanted.prompt, 1), first, last)


def serving(
    found: Traces, gpus: Sequence[Gpu], execution: Execution, *, batch: int, prompt: int | None = None, generate: int | None = None,
    kv_cache: Format | None = None,
) -> Serving:  # fmt: skip
    """Evaluate the passes on each GPU."""
    prompt, generate = PROMPT if prompt is None else prompt, GENERATE if generate is None else generate
    trace = found.prompt
    params = sum(each.elements for each in trace.parameters if each.kind == "parameter")
    end = found.last
    sequence = sequence_bytes(found, batch)
    routed = experts(end or trace)
    return Serving(
        model=trace.model,
        precision=trace.precision,
        kv_cache=kv_cache or trace.precision,
        batch=batch,
        prompt=prompt,
        generate=generate,
        params=params,
        active_params=params if routed is None else routed.active_params,
        weight_bytes=weight_bytes(trace),
        kv_token_bytes=token_bytes(trace),
        kv_sequence_bytes=sequence,
        kv_bytes=sequence * batch,
        experts=routed,
        gpus=tuple(_on(gpu, found, execution, batch, generate, sequence) for gpu in gpus),
        execution=execution.text,
        notes=tuple(dict.fromkeys(note for each in (trace, found.last) if each is not None for note in each.notes)),
    )


def _on(gpu: Gpu, found: Traces, execution: Execution, batch: int, generate: int, sequence: int) -> ServingOnGpu:
    first = span(found.prompt, gpu, execution)
    start, end = (None if trace is None else span(trace, gpu, execution) for trace in (found.first, found.last))
    token = None if start is None or end is None else mean(start, end)
    reading, step = first.predicted_seconds, None if token is None else token.predicted_seconds
    needed = needed_bytes(found, batch, sequence)
    room = None if gpu.memory_bytes is None else FITS_SHARE * gpu.memory_bytes
    whole = None
    if reading is not None and (step is not None or found.last is None):
        whole = Steady(batch, generate, reading, step or 0.0).tokens_per_second
    return ServingOnGpu(
        name=gpu.name,
        first_token=first if reading is not None else None,
        token=token if step is not None else None,
        decode_tokens_per_second=None if not step else batch / step,
        tokens_per_second=whole,
        memory_bytes=gpu.memory_bytes,
        needed_bytes=needed,
        fits=None if room is None else needed <= room,
        largest_batch=None if room is None else largest_batch(found, batch, sequence, room),
        missing=first.missing,
    )


def sequence_bytes(found: Traces, batch: int) -> int:
    """The cache of one sequence at its end (B), ``batch`` of which are walked together."""
    return cache_bytes(found.prompt) if found.last is None else cache_bytes(found.last) // batch


def working_bytes(trace: Trace) -> int:
    """The largest set of activations that a pass holds at once, its cache aside (B)."""
    return peak_memory(trace).activation_bytes - cache_bytes(trace)


def needed_bytes(found: Traces, batch: int, sequence: int, walked: int | None = None) -> int:
    """The most that is held at once (B): the weights, the cache of all sequences, and the larger of one prompt's activations and a pass's.

    ``walked`` is the batch of the traces (``batch`` by default): activations of a pass grow with the batch.
    """
    passing = 0 if found.last is None else -(-working_bytes(found.last) * batch // (walked or batch))
    return weight_bytes(found.prompt) + batch * sequence + max(working_bytes(found.prompt), passing)


def largest_batch(found: Traces, walked: int, sequence: int, room: float) -> int:
    """The most sequences for which :func:`needed_bytes` stays within ``room`` (B)."""
    low, high = 0, 1
    while needed_bytes(found, high, sequence, walked) <= room:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if needed_bytes(found, middle, sequence, walked) <= room else (low, middle)
    return low
