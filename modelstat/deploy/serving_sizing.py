"""How many GPUs a stream of prompts and answers needs: the best batch on each within limits on its times, and what that takes."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Literal

import msgspec

from modelstat import collector, units
from modelstat.deploy.fleet import BATCHES, Out, fleet, rank, short
from modelstat.deploy.links import NO_LINK, link
from modelstat.deploy.prices import Prices
from modelstat.errors import MissingPeakError, UsageError
from modelstat.hardware.gpu import Gpu
from modelstat.memory.peak import weight_bytes
from modelstat.predict.roofline import FITS_SHARE
from modelstat.serving.serving import Serving
from modelstat.serving.steady import Steady
from modelstat.serving.steps import Step, Steps

Limit = Literal["memory", "ttft", "tpot", "throughput"]
"""What stands against a larger batch: it does not fit, is not in time, or serves fewer requests/s."""


class ServingDemand(msgspec.Struct, frozen=True):
    """``qps`` requests/s, each a prompt of ``prompt`` tokens and an answer of ``generate``.

    ``ttft_seconds`` and ``tpot_seconds`` (s) limit the mean time to the first token and per token after it; None: no limit.
    """

    qps: float
    prompt: int
    generate: int
    ttft_seconds: float | None = None
    tpot_seconds: float | None = None

    @property
    def tokens_per_second(self) -> float:
        """Tokens to be written."""
        return self.qps * self.generate

    def check(self) -> None:
        """Raises UsageError for requests, answers or limits that cannot be."""
        if not 0 < self.qps < float("inf"):
            raise UsageError(f"--qps {self.qps:g}: give the requests a second, a number above 0")
        if self.generate < 2:
            raise UsageError(f"--generate {self.generate}: a size needs answers of at least 2 tokens, the prompt's pass yields the first")
        for name, seconds in (("--ttft", self.ttft_seconds), ("--tpot", self.tpot_seconds)):
            if seconds is not None and not 0 < seconds < float("inf"):
                raise UsageError(f"{name} {seconds:g}: give a time above 0, such as 50ms, or leave it out for no limit")

    def exceeded(self, steady: Steady) -> Limit | None:
        """The limit that a GPU does not keep, None where it keeps both."""
        assert steady.tpot_seconds is not None
        assert steady.ttft_seconds is not None
        if self.tpot_seconds is not None and steady.tpot_seconds > self.tpot_seconds:
            return "tpot"
        return "ttft" if self.ttft_seconds is not None and steady.ttft_seconds > self.ttft_seconds else None


class SizedServing(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU that can do it, ``batch`` sequences writing together. Rates are one GPU's, times (s) as in :class:`Steady`.

    Where several work together, rates and times are theirs, and bytes one GPU's.
    ``limit`` is what stands against a larger batch, None where none is tried. ``needed_bytes`` is the most that is held
    at once (B). ``power_watts`` (W) is a bound: all boards at their TDP, and so is ``joules_per_token`` (J). Costs are in the prices'
    currency. None where a figure is not known.
    """

    gpu: Gpu
    batch: int
    limit: Limit | None
    prompt_seconds: float
    step_seconds: float
    ttft_seconds: float
    tpot_seconds: float
    requests_per_second: float
    tokens_per_second: float
    needed_bytes: int
    fits: bool | None
    gpus: int
    utilisation: float
    power_watts: float | None
    joules_per_token: float | None
    cost_per_hour: float | None
    cost_per_million_tokens: float | None


class ServingSizing(msgspec.Struct, frozen=True, kw_only=True):
    """The answer: GPUs that can, the best first, and those that cannot.

    Ranked as :class:`modelstat.deploy.sizing.Sizing`, by time per token where all else is equal. ``model`` is what holds on every GPU, its
    numbers for one sequence. ``tensor_parallel`` GPUs work together on every pass.
    """

    schema: Literal["modelstat-serving-sizing/1"] = "modelstat-serving-sizing/1"
    demand: ServingDemand
    model: Serving
    ranked: tuple[SizedServing, ...]
    out: tuple[Out, ...]
    currency: str | None
    tensor_parallel: int = 1


class _Board:
    """A GPU while batches are tried on it."""

    def __init__(self, gpu: Gpu, together: int) -> None:
        self.gpu, self.together = gpu, together
        self.room = None if gpu.memory_bytes is None else FITS_SHARE * gpu.memory_bytes
        self.best: tuple[Steady, Step] | None = None
        self.largest = 0
        """The largest batch that fits and is in time."""
        self.limit: Limit | None = None
        self.reason = NO_LINK if together > 1 and link(gpu) is None else ""


def size(
    steps: Steps, model: Serving, gpus: Sequence[Gpu], demand: ServingDemand, *, prices: Prices | None = None
) -> ServingSizing:
    """Size a fleet of each GPU for a demand.

    Batches are tried from the smallest up to the first that does not fit, or with which the GPU, serving without a pause, does not keep a
    limit; the one with most requests/s is taken. GPUs are as many as bear the demand and the headroom. Raises UsageError as
    :meth:`ServingDemand.check`.
    """
    demand.check()
    boards = [_Board(gpu, steps.gpus) for gpu in gpus]
    trying = [board for board in boards if not board.reason]
    for batch in BATCHES:
        if not trying:
            break
        # One batch on all GPUs, and then the next: its traces are not needed any more.
        with collector.paused():
            step = steps.step(batch)
            trying = [board for board in trying if _goes_on(board, steps, step, demand)]
    ranked = [_sized(board, demand, prices) for board in boards if board.best]
    ranked.sort(key=lambda one: rank(one.cost_per_hour, one.gpus, one.power_watts, one.tpot_seconds))
    out = tuple(Out(board.gpu, board.reason) for board in boards if not board.best)
    currency = prices.currency if prices else None
    return ServingSizing(
        demand=demand, model=model, ranked=tuple(ranked), out=out, currency=currency, tensor_parallel=steps.gpus
    )


def _goes_on(board: _Board, steps: Steps, step: Step, demand: ServingDemand) -> bool:
    """Try a batch, and say whether a larger one may do. Where the first does not, the board's reason tells why."""
    if board.room is not None and step.needed_bytes > board.room:
        board.limit, board.reason = "memory", _too_large(board.room, steps, step)
        return False
    try:
        steady = steps.steady(step, board.gpu)
    except MissingPeakError as error:
        board.reason = short(str(error))
        return False
    board.limit = demand.exceeded(steady)
    if board.limit is not None:
        board.reason = _too_slow(board.limit, steady, demand)
        return False
    board.largest = step.batch
    if board.best is None or steady.requests_per_second > board.best[0].requests_per_second:
        board.best = (steady, step)
    return True


def _too_large(room: float, steps: Steps, step: Step) -> str:
    weights = weight_bytes(steps.alone.prompt)
    there = f"{units.bytes_(room)} are there"
    if weights > room:
        each, enough = " on each" if steps.gpus > 1 else "", ceil(steps.gpus * weights / room)
        return f"weights do not fit: {units.bytes_(weights)}{each}, {there}; {enough} of them would hold the weights"
    return f"no sequence fits: one needs {units.bytes_(step.needed_bytes)}, {units.bytes_(weights)} of it weights, {there}"


def _too_slow(limit: Limit, steady: Steady, demand: ServingDemand) -> str:
    if limit == "tpot":
        assert demand.tpot_seconds is not None
        step, allowed = units.seconds(steady.step_seconds), units.seconds(demand.tpot_seconds)
        return f"time per token too long: {step} with one sequence by itself, {allowed} are allowed"
    assert demand.ttft_seconds is not None
    assert steady.ttft_seconds is not None
    first, prompt = units.seconds(steady.ttft_seconds), units.seconds(steady.prompt_seconds)
    return f"first token too late: {first} with one sequence, {prompt} of it the prompt, {units.seconds(demand.ttft_seconds)} are allowed"


def _sized(board: _Board, demand: ServingDemand, prices: Prices | None) -> SizedServing:
    assert board.best is not None
    steady, step = board.best
    assert steady.tpot_seconds is not None
    assert steady.ttft_seconds is not None
    needed = fleet(board.gpu, demand.qps, steady.requests_per_second, prices, together=board.together)
    power, cost, tokens = needed.power_watts, needed.cost_per_hour, demand.tokens_per_second
    return SizedServing(
        gpu=board.gpu,
        batch=step.batch,
        limit=board.limit if step.batch == board.largest else "throughput",
        prompt_seconds=steady.prompt_seconds,
        step_seconds=steady.step_seconds,
        ttft_seconds=steady.ttft_seconds,
        tpot_seconds=steady.tpot_seconds,
        requests_per_second=steady.requests_per_second,
        tokens_per_second=steady.tokens_per_second,
        needed_bytes=step.needed_bytes,
        fits=None if board.room is None else True,
        gpus=needed.gpus,
        utilisation=needed.utilisation,
        power_watts=power,
        joules_per_token=None if power is None else power / tokens,
        cost_per_hour=cost,
        cost_per_million_tokens=None if cost is None else cost / (tokens * 3600) * 1e6,
    )
