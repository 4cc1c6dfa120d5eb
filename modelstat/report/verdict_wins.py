"""At which batches a swapped model is predicted to be faster."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from modelstat.cost.registry import costs
from modelstat.hardware.gpu import Gpu
from modelstat.memory.peak import peak_memory
from modelstat.predict.execution import Execution
from modelstat.predict.prediction import predict
from modelstat.predict.roofline import FITS_SHARE
from modelstat.predict.variant import grown
from modelstat.records import Trace

BATCHES = (1, 4, 16, 64, 256)
"""What is tried, as far as both models fit into the GPU's memory."""
WORTH = 0.01
"""Share of the time that must be saved to win."""


class Wins(msgspec.Struct, frozen=True):
    """The batches that were tried, and those of them at which the swapped model is faster. ``text`` says it in words."""

    tried: tuple[int, ...]
    won: tuple[int, ...]
    text: str


def wins(before: Trace, after: Trace, gpus: Sequence[Gpu], execution: Execution) -> tuple[Wins | None, ...]:
    """At which batches the swapped model wins on each GPU, from both traces at a batch of 1.

    None for a model whose batch is not known, or that runs recurrent layers (their axis of time is not told from the batch by a shape).
    """
    family = any(cost.family == "rnn" for cost in costs(before))
    if before.batch != 1 or after.batch != 1 or family:
        return (None,) * len(gpus)
    tried: list[list[int]] = [[] for _ in gpus]
    won: list[list[int]] = [[] for _ in gpus]
    for batch in BATCHES:
        both = [trace if batch == 1 else grown(trace, batch) for trace in (before, after)]
        work = [costs(trace) for trace in both]
        held = max(peak_memory(trace).peak_bytes for trace in both)
        for index, gpu in enumerate(gpus):
            if gpu.memory_bytes is not None and held > FITS_SHARE * gpu.memory_bytes:
                continue
            old, new = (predict(trace, cost, gpu, execution).seconds for trace, cost in zip(both, work, strict=True))
            if old is not None and new is not None:
                tried[index].append(batch)
                won[index] += [batch] if new < old * (1.0 - WORTH) else []
    return tuple(Wins(tuple(mine), tuple(better), text(mine, better)) if mine else None for mine, better in zip(tried, won, strict=True))


def text(tried: Sequence[int], won: Sequence[int]) -> str:
    """Where it wins, in words.

    >>> text([1, 4, 16], [16]), text([1, 4, 16], [1]), text([1, 4], [])
    ('wins only from batch 16 on', 'wins only up to batch 1', 'wins at no batch up to 4')
    """
    if not won:
        return f"wins at no batch up to {tried[-1]}"
    if list(won) == list(tried):
        return f"wins at every batch up to {tried[-1]}" if tried[1:] else f"wins at batch {tried[0]}"
    if list(won) == list(tried[-len(won) :]):
        return f"wins only from batch {won[0]} on"
    if list(won) == list(tried[: len(won)]):
        return f"wins only up to batch {won[-1]}"
    return f"wins only at batch {', '.join(map(str, won))} of {', '.join(map(str, tried))}"
