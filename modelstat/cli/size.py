"""``modelstat size MODEL``: how many of which GPU serve a stream of requests in time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group

from modelstat.cli.options import RUN, SHOW, WHAT, option
from modelstat.cli.run import Mode

if TYPE_CHECKING:
    pass

DEMAND = Group("What is asked of it", sort_key=0)


def size(
    model: str,
    /,
    *,
    qps: Annotated[float, option(DEMAND, "N")],
    latency: Annotated[str, option(DEMAND, "TIME")],
    gpu: Annotated[list[str] | None, option(DEMAND, "NAME")] = None,
    prices: Annotated[Path | None, option(DEMAND, "FILE")] = None,
    input: Annotated[str | None, option(WHAT, "SHAPE")] = None,
    precision: Annotated[str | None, option(WHAT, "P")] = None,
    weights: Annotated[str | None, option(WHAT, "P")] = None,
    activations: Annotated[str | None, option(WHAT, "P")] = None,
    group: Annotated[int | None, option(WHAT, "N")] = None,
    plan: Annotated[str | None, option(WHAT, "FILE")] = None,
    no_cache: Annotated[bool, option(WHAT)] = False,
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
        qps: Requests a second, one sample each.
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
        mode: eager (the default) or compile: kernels fused.
        cuda_graph: One launch for all kernels: no host cost per op.
        channels_last: Images with their channels innermost.
        host: fast, typical, slow, or microseconds to issue an op.
        top: The N best.
        format: table (the default), json, csv or markdown.
        output: Write to a file, whole or not at all.
    """
    from modelstat.cli.lists import precisions
    from modelstat.cli.output import Output
    from modelstat.cli.progress import TraceProgress
    from modelstat.deploy.size import size as sized
    from modelstat.errors import UsageError
    from modelstat.report.sizing import render
    from modelstat.units import parse_seconds

    (wanted,) = precisions([precision] if precision else ())
    if top is not None and top < 1:
        raise UsageError(f"--top {top}: give a whole number of at least 1")
    with Output(output) as out:
        with TraceProgress(f"tracing {model}") as progress:
            found = sized(
                model, qps, parse_seconds(latency, default="ms"), input, gpu=gpu or "all", prices=prices, precision=wanted, weights=weights,
                activations=activations, group=group, plan=plan, mode=mode, host=host, channels_last=channels_last, cuda_graph=cuda_graph,
                cache=not no_cache, progress=progress,
            )  # fmt: skip
        render(found, format, out.stream, top=top, width=None if out.stream.isatty() else 110)
