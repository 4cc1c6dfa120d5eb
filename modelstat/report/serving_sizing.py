"""The table of a language model's sizing: what each GPU takes to serve it, and why others are out."""

from __future__ import annotations

from typing import TextIO

from modelstat import units
from modelstat.deploy.fleet import BATCHES, HEADROOM
from modelstat.deploy.serving_sizing import ServingDemand, ServingSizing
from modelstat.report import fleet
from modelstat.report.grid import Column, Grid, printable
from modelstat.serving.serving import Serving

COLUMNS = (
    Column("rank", "rank", "", "integer"),
    Column("gpu", "gpu", "GPU", "text"),
    Column("gpus", "gpus", "GPUs", "integer"),
    Column("batch", "batch", "batch", "integer"),
    Column("limit", "limit", "limit", "text"),
    Column("ttft", "ttft_ms", "TTFT", "ms"),
    Column("tpot", "tpot_ms", "TPOT", "ms"),
    Column("prompt", "prompt_ms", "prompt", "ms"),
    Column("step", "step_ms", "step", "ms"),
    Column("requests", "requests_per_second", "requests/s", "speed"),
    Column("tokens", "tokens_per_second", "tokens/s", "speed"),
    Column("utilisation", "utilisation", "in use", "share"),
    Column("power", "power_w", "power (W)", "speed"),
    Column("joules", "joules_per_token", "J/token", "speed"),
    Column("hour", "cost_per_hour", "an hour", "ratio"),
    Column("million", "cost_per_million_tokens", "a M tokens", "ratio"),
    Column("memory", "needed_bytes", "memory", "bytes"),
    Column("fits", "fits", "fits", "flag"),
)
DROP = ("requests", "prompt", "step", "memory", "fits", "joules", "power", "limit")
LIMITS = {"memory": "memory", "ttft": "TTFT", "tpot": "TPOT", "throughput": "rate", None: None}


def grid(sizing: ServingSizing, top: int | None = None) -> Grid:
    """A row a GPU, the best first."""
    rows = (
        {
            "gpu": one.gpu.name, "gpus": one.gpus, "batch": one.batch, "limit": LIMITS[one.limit],
            "ttft": one.ttft_seconds * 1e3, "tpot": one.tpot_seconds * 1e3, "prompt": one.prompt_seconds * 1e3,
            "step": one.step_seconds * 1e3, "requests": one.requests_per_second, "tokens": one.tokens_per_second,
            "utilisation": one.utilisation, "power": one.power_watts, "joules": one.joules_per_token, "hour": one.cost_per_hour,
            "million": one.cost_per_million_tokens, "memory": one.needed_bytes, "fits": one.fits,
        }
        for one in sizing.ranked[:top]
    )  # fmt: skip
    known = all(one.fits is not None for one in sizing.ranked)
    return fleet.grid(COLUMNS, rows, caption(sizing), DROP, priced=sizing.currency is not None, fits_known=known)


def caption(sizing: ServingSizing) -> str:
    """What the columns mean, and what is assumed."""
    several = sizing.tensor_parallel
    whose = "one GPU's" if several == 1 else f"those of {several} GPUs that share each layer, memory is one's"
    faster = "" if "CUDA graph" in sizing.model.execution else "; serving engines replay graphs: --mode compile --cuda-graph"
    return (
        f"{fleet.ranking(sizing.currency)} Capacity is {HEADROOM:.0%} above the demand. batch: sequences that write together, the largest "
        f"of {len(BATCHES)} from {BATCHES[0]} to {BATCHES[-1]} up to the limit. TTFT = step / 2 + batch x prompt^2 / (2 (G - 1) step) + "
        "prompt and TPOT = step + (batch - 1) prompt / (G - 1) for G tokens written: means of a GPU that serves without a pause, waits for "
        f"a place aside. requests/s and tokens/s (written) are {whose}; in use is the demand's share of all; power is at most all boards "
        f"at their TDP; fits - : the memory is the machine's and not checked. Passes are predicted ({sizing.model.execution}{faster}); the "
        "report of --phase serve on one GPU has the interval."
    )


def model_text(model: Serving) -> str:
    """What holds on every GPU, in a line."""
    active = "" if model.experts is None else f", of which a token meets {units.count(model.active_params)}"
    cache = f"{units.bytes_(model.kv_token_bytes)} a token, {units.bytes_(model.kv_sequence_bytes)} a sequence at its end"
    return (
        f"{printable(model.model)}, precision {model.precision}: {units.count(model.params)} parameters{active}, weights "
        f"{units.bytes_(model.weight_bytes)}; keys and values ({model.kv_cache}) {cache}"
    )


def demand_text(demand: ServingDemand) -> str:
    """What is asked, in a line."""
    limits = [
        f"{name} within {units.seconds(seconds)}"
        for name, seconds in (("TTFT", demand.ttft_seconds), ("TPOT", demand.tpot_seconds))
        if seconds is not None
    ]
    return (
        f"{units.per_second(demand.qps)} requests/s, prompts of {demand.prompt} tokens, {demand.generate} written: "
        f"{units.per_second(demand.tokens_per_second)} tokens/s; {', '.join(limits) or 'no limit on times'}"
    )


def render(sizing: ServingSizing, form: str, file: TextIO, *, top: int | None = None, width: int | None = None) -> None:
    """Write as table, json, csv or markdown."""
    shown, model = grid(sizing, top), sizing.model
    several = sizing.tensor_parallel
    layout = () if several == 1 else (("Layout", f"{several}-way tensor parallel; exchanges come after each GPU's part of a pass"),)
    head = (
        ("Model", model_text(model)),
        *layout,
        ("Demand", demand_text(sizing.demand)),
        ("Answer", fleet.answer(len(sizing.ranked), len(sizing.out))),
    )
    sheet = fleet.Sheet(head, shown, len(sizing.ranked) - len(shown.rows), sizing.out, model.notes)
    fleet.render(sizing, sheet, form, file, width)
