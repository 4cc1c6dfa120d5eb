"""``modelstat size MODEL``: how many of which GPU serve a stream of requests in time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group

from modelstat.cli.options import LANGUAGE, RUN, SHOW, WHAT, option
from modelstat.cli.run import Mode

DEMAND = Group("What is asked of it", sort_key=0)
WIDTH = 110
"""Columns of a table that does not go to a terminal."""


def size(
    model: str,
    /,
    *,
    qps: Annotated[float | None, option(DEMAND, "N")] = None,
    latency: Annotated[str | None, option(DEMAND, "TIME")] = None,
    gpu: Annotated[list[str] | None, option(DEMAND, "NAME")] = None,
    prices: Annotated[Path | None, option(DEMAND, "FILE")] = None,
    input: Annotated[str | None, option(WHAT, "SHAPE")] = None,
    precision: Annotated[str | None, option(WHAT, "P")] = None,
    weights: Annotated[str | None, option(WHAT, "P")] = None,
    activations: Annotated[str | None, option(WHAT, "P")] = None,
    group: Annotated[int | None, option(WHAT, "N")] = None,
    plan: Annotated[str | None, option(WHAT, "FILE")] = None,
    no_cache: Annotated[bool, option(WHAT)] = False,
    phase: Annotated[Literal["serve"] | None, option(LANGUAGE, "serve")] = None,
    prompt: Annotated[int | None, option(LANGUAGE, "N")] = None,
    generate: Annotated[int | None, option(LANGUAGE, "N")] = None,
    tokens: Annotated[float | None, option(LANGUAGE, "N")] = None,
    ttft: Annotated[str | None, option(LANGUAGE, "TIME")] = None,
    tpot: Annotated[str | None, option(LANGUAGE, "TIME")] = None,
    kv_cache: Annotated[str | None, option(LANGUAGE, "FORMAT")] = None,
    tensor_parallel: Annotated[int | None, option(LANGUAGE, "N")] = None,
    mode: Annotated[Mode, option(RUN, "MODE")] = "eager",
    cuda_graph: Annotated[bool, option(RUN)] = False,
    channels_last: Annotated[bool, option(RUN)] = False,
    host: Annotated[str, option(RUN, "HOST")] = "typical",
    top: Annotated[int | None, option(SHOW, "N")] = None,
    format: Annotated[Literal["table", "json", "csv", "markdown"], option(SHOW, "FORMAT")] = "table",
    output: Annotated[Path | None, option(SHOW, "FILE")] = None,
) -> None:
    """Size a fleet: GPUs that serve a stream of requests in time.

    Args:
        model: resnet50, timm:NAME, model.py:build or model.yaml.
        qps: Requests a second: one sample, or a prompt and its answer.
        latency: Time limit of a request: 50ms.
        gpu: all (the default), or names: a100,t4.
        prices: TOML with the price of a GPU for an hour.
        input: One sample: 3x224x224, or ids=128:int64,mask=128:bool.
        precision: fp32, tf32, fp16, bf16, amp-fp16 or amp-bf16.
        weights: Quantised weights: int8, int4, fp8 or nf4.
        activations: int8 or fp8 activations beside quantised weights.
        group: Weights that share a scale: 128 for int4, 64 for nf4.
        plan: YAML with weights and activations layer by layer.
        no_cache: Trace again instead of reading the cache.
        phase: serve: prompts and answers of a language model.
        prompt: Tokens of a prompt, 2048 by default.
        generate: Tokens of an answer, 256 by default.
        tokens: Tokens written a second, instead of --qps.
        ttft: Limit of the mean time to the first token: 500ms.
        tpot: Limit of the mean time per output token: 50ms.
        kv_cache: fp8 or int8: keys and values kept in one byte each.
        tensor_parallel: GPUs that share each layer.
        mode: eager (the default) or compile: kernels fused.
        cuda_graph: One launch for all kernels: no host cost per op.
        channels_last: Images with their channels innermost.
        host: fast, typical, slow, or microseconds to issue an op.
        top: The N best.
        format: table (the default), json, csv or markdown.
        output: Write to a file, whole or not at all.
    """
    from modelstat.cli.demand import check_one_pass, check_serving
    from modelstat.cli.lists import check_input, check_top, precisions, seconds
    from modelstat.cli.output import Output
    from modelstat.cli.progress import TraceProgress
    from modelstat.errors import UsageError
    from modelstat.report.width import width_of

    wanted, *others = precisions([precision] if precision else ())
    if others:
        raise UsageError(f"--precision {precision}: a size is of one precision, give one")
    check_top(top, format)
    check_input(input, [1])
    if phase is None:
        rate, limit = check_one_pass({
            "--prompt": prompt, "--generate": generate, "--tokens": tokens, "--ttft": ttft, "--tpot": tpot, "--kv-cache": kv_cache,
            "--tensor-parallel": tensor_parallel,
        }, qps, latency)  # fmt: skip
    else:
        check_serving({"--latency": latency, "--input": input, "--channels-last": channels_last})
    with Output(output) as out, TraceProgress(f"tracing {model}") as progress:
        width = width_of(out.stream, WIDTH)
        if phase is None:
            from modelstat.deploy.size import size as size_passes
            from modelstat.report.sizing import render

            found = size_passes(
                model, rate, seconds("--latency", limit, "ms"), input, gpu=gpu or "all", prices=prices, precision=wanted, weights=weights,
                activations=activations, group=group, plan=plan, mode=mode, host=host, channels_last=channels_last, cuda_graph=cuda_graph,
                cache=not no_cache, progress=progress,
            )  # fmt: skip
            render(found, format, out.stream, top=top, width=width)
            return
        from modelstat.deploy.size_serving import size_serving
        from modelstat.report.serving_sizing import render as render_serving

        first, each = (None if text is None else seconds(name, text, "ms") for name, text in (("--ttft", ttft), ("--tpot", tpot)))
        served = size_serving(
            model, qps=qps, tokens=tokens, ttft=first, tpot=each, prompt=prompt, generate=generate, kv_cache=kv_cache, gpu=gpu or "all",
            prices=prices, precision=wanted, weights=weights, activations=activations, group=group, plan=plan, mode=mode, host=host,
            cuda_graph=cuda_graph, tensor_parallel=1 if tensor_parallel is None else tensor_parallel, cache=not no_cache, progress=progress,
        )  # fmt: skip
        render_serving(served, format, out.stream, top=top, width=width)
