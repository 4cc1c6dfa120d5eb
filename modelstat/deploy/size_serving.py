"""``modelstat.size_serving``: how many of which GPU serve a language model's requests within limits on its times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from modelstat.errors import UsageError
from modelstat.walking import trace_spec

if TYPE_CHECKING:
    from modelstat.deploy.serving_sizing import ServingSizing
    from modelstat.hardware.gpu import Gpu
    from modelstat.records import Trace
    from modelstat.serving.phase import Phase


def size_serving(
    model: str,
    *,
    qps: float | None = None,
    tokens: float | None = None,
    ttft: float | None = None,
    tpot: float | None = None,
    prompt: int | None = None,
    generate: int | None = None,
    kv_cache: str | None = None,
    gpu: str | Gpu | Sequence[str | Gpu] = "all",
    prices: str | Path | None = None,
    precision: str | None = None,
    weights: str | None = None,
    activations: str | None = None,
    group: int | None = None,
    plan: str | None = None,
    mode: str = "eager",
    host: str | float = "typical",
    cuda_graph: bool = False,
    tensor_parallel: int = 1,
    cache: bool = True,
    progress: Callable[[int], None] | None = None,
) -> ServingSizing:
    """How many of which GPU serve ``qps`` requests/s of a language model, or write ``tokens`` tokens/s.

    Args:
        model: the spec of a causal language model of transformers, as for :func:`modelstat.serve`.
        qps: requests a second; give this or ``tokens``.
        tokens: tokens a second to be written, all answers together.
        ttft: limit of the mean time to the first token (s), the wait for what the GPU does included; None: no limit.
        tpot: limit of the mean time per token after the first (s), the others' prompts in between included; None: no limit.
        prompt: tokens of each prompt, 2048 by default.
        generate: tokens of each answer, 256 by default, at least 2.
        kv_cache: fp8 or int8, else the model's own precision.
        gpu: ``"all"`` of the database, or as for :func:`modelstat.analyze`.
        prices: a TOML file with the price of a GPU for an hour, see :mod:`modelstat.deploy.prices`.
        precision: as for :func:`modelstat.analyze`, and so are the next seven.
        weights: quantised weights.
        activations: quantised activations beside them.
        group: weights that share a scale.
        plan: a YAML file with a precision plan.
        mode: eager or compile.
        host: fast, typical, slow, or the microseconds that the host needs to issue an op.
        cuda_graph: one launch for all kernels.
        tensor_parallel: GPUs of a kind that share each layer and work together on every pass.
        cache: read traces that are there already, and keep new ones.
        progress: is told the number of ops while a model is walked.

    Raises:
        UsageError: not exactly one of ``qps`` and ``tokens``, a demand or a limit that is not above 0, a model that does not generate text,
            GPUs whose number does not divide its heads;
            InputError: a request that is longer than the model's positions; and what building and walking a model raise.
    """
    from modelstat.deploy.parallel import Layout
    from modelstat.deploy.plan import make_plan
    from modelstat.deploy.prices import read_prices
    from modelstat.deploy.quantized import planned
    from modelstat.deploy.serving_sizing import ServingDemand, size
    from modelstat.given import fleet_gpus
    from modelstat.predict.execution import parse_execution
    from modelstat.serving.cache import checked_format, stored
    from modelstat.serving.group import Group
    from modelstat.serving.phase import GENERATE, PROMPT, checked
    from modelstat.serving.serving import serving
    from modelstat.serving.steps import Steps

    Layout(tensor=tensor_parallel).check()
    gpus = fleet_gpus(gpu)
    running = parse_execution(mode, str(host), cuda_graph=cuda_graph)
    form = None if kv_cache is None else checked_format(kv_cache)
    precision_plan = make_plan(weights, activations, group, plan)
    priced = None if prices is None else read_prices(Path(prices))
    read, written = (checked(name, number) for name, number in (
        ("--prompt", PROMPT if prompt is None else prompt), ("--generate", GENERATE if generate is None else generate),
    ))  # fmt: skip
    demand = ServingDemand(requests_per_second(qps, tokens, written), read, written, ttft, tpot)
    demand.check()

    def walk(phase: Phase, size: int) -> Trace:
        trace = trace_spec(model, None, size, precision, phase=phase, cache=cache, progress=progress)
        trace = trace if form is None else stored(trace, form)
        return trace if precision_plan is None else planned(trace, precision_plan)

    whole = Steps(walk, read, written, running)
    facts = serving(whole.alone, (), running, batch=1, prompt=read, generate=written, kv_cache=form)
    steps = whole if tensor_parallel == 1 else Steps(Group(whole.walk, tensor_parallel), read, written, running)
    return size(steps, facts, gpus, demand, prices=priced)


def requests_per_second(qps: float | None, tokens: float | None, generate: int) -> float:
    """The requests of a demand that is given in requests or in tokens. Raises UsageError unless exactly one of both is, above 0.

    >>> requests_per_second(None, 2560.0, 256)
    10.0
    """
    if qps is not None and tokens is not None:
        raise UsageError(f"--qps {qps:g} and --tokens {tokens:g}: give one of both, requests/s or the tokens/s that are written")
    if tokens is not None:
        if not 0 < tokens < float("inf"):
            raise UsageError(f"--tokens {tokens:g}: give the tokens a second that are written, a number above 0")
        return tokens / generate
    if qps is None:
        raise UsageError("a size needs a demand: add --qps REQUESTS/S, or --tokens for the tokens/s that are written")
    return qps
