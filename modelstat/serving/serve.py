"""The verb: a spec, walked through the passes of a request and evaluated on each GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from modelstat.errors import MissingPeakError
from modelstat.given import given_gpus
from modelstat.predict.execution import Execution
from modelstat.records import Trace
from modelstat.serving.cache import checked_format
from modelstat.serving.phase import Phase
from modelstat.serving.serving import Serving, serving, traces
from modelstat.walking import trace_spec

if TYPE_CHECKING:
    from modelstat.hardware.gpu import Gpu


def serve(
    model: str,
    *,
    gpu: str | Gpu | Sequence[str | Gpu] | None = None,
    precision: str | None = None,
    batch: int = 1,
    prompt: int | None = None,
    generate: int | None = None,
    kv_cache: str | None = None,
    execution: Execution | None = None,
    cache: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Serving:
    """What serving a language model takes on each GPU: time to the first token, time per token, memory, and how many sequences fit.

    Args:
        model: the spec of a causal language model of transformers, ``"hf:llama"`` or ``"zoo_configs/llama3.1_8b.yaml"``.
        gpu: one GPU or several, by name, definition or record.
        precision: as in :func:`modelstat.analyze`.
        batch: sequences that write together, a token each in a pass.
        prompt: tokens of each prompt, 2048 by default.
        generate: tokens of each answer, 256 by default.
        kv_cache: fp8 or int8, else the model's own precision.
        execution: how the model runs, eagerly on a typical host by default.
        cache: whether traces are read from the cache and stored there.
        progress: is told the number of ops while a model is walked.

    Raises:
        UsageError: a model that does not generate text; InputError: a request that is longer than its positions; MissingPeakError: the
            only GPU lacks a peak that it needs; and what building and walking a model raise.
    """
    form = None if kv_cache is None else checked_format(kv_cache)
    gpus = given_gpus(gpu)

    def traced(phase: Phase, size: int) -> Trace:
        return trace_spec(model, None, size, precision, phase=phase, cache=cache, progress=progress)

    found = serving(
        traces(traced, batch, prompt, generate, form), gpus, execution or Execution(), batch=batch, prompt=prompt, generate=generate,
        kv_cache=form,
    )  # fmt: skip
    if len(found.gpus) == 1 and found.gpus[0].missing:
        raise MissingPeakError(found.gpus[0].missing)
    return found
