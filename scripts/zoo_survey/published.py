"""Published counts, and how ours compare with them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, NamedTuple

from modelstat.api import trace_spec
from modelstat.cost.registry import costs
from modelstat.sources.spec import parse_spec
from modelstat.sweeping.row import Row
from zoo_survey.sets import read

MACS_SHARE, MACS_GIGA = 0.005, 0.0005
"""torchvision publishes three decimals of 1e9 MACs."""
PARAMS_SHARE, GMACS_SHARE = 0.02, 0.05
"""timm: a model of which the parameters differ by more has changed since; its counter counts BatchNorm in."""


class Verdict(NamedTuple):
    """Whether a model's counts are the published ones; why not, if they are not."""

    exact: bool
    reason: str = ""


def torchvision_verdicts(rows: list[Row]) -> dict[str, Verdict]:
    """Against ``num_params`` and ``_ops`` of the default weights."""
    from torchvision.models import get_model_weights

    differences = {row["model"]: int(row["params_difference"]) for row in read("torchvision.csv")}
    verdicts = {}
    for row in rows:
        name = parse_spec(row.spec, {}, {"torchvision"}).name
        weights = list(get_model_weights(name))
        if not weights:
            continue
        meta: dict[str, Any] = get_model_weights(name).DEFAULT.meta
        params = (row.params or 0) - differences.get(name, 0)
        macs = (row.macs or 0) / 1e9
        if params != meta["num_params"]:
            verdicts[row.spec] = Verdict(False, f"{params} parameters, published {meta['num_params']}")
        elif abs(macs - meta["_ops"]) > max(MACS_SHARE * meta["_ops"], MACS_GIGA):
            verdicts[row.spec] = Verdict(False, f"{macs:.3f} GMACs, published {meta['_ops']}")
        else:
            verdicts[row.spec] = Verdict(True)
    return verdicts


def timm_verdicts(rows: list[Row], measured: Path) -> dict[str, Verdict]:
    """Against ``params_m`` and ``gmacs`` of a file of measured models, at every size that it has a model at."""
    known = {row.spec for row in rows}
    published: dict[tuple[str, str], tuple[float, float]] = {}
    if measured.is_file():
        with measured.open(encoding="utf-8") as file:
            for line in csv.DictReader(file):
                if line["source"] == "timm" and line["model"] in known and line["params_m"] and line["gmacs"]:
                    published[line["model"], line["input"]] = (float(line["params_m"]), float(line["gmacs"]))
    default = {row.spec: row.shapes for row in rows}
    verdicts = {}
    for (spec, size), counts in sorted(published.items()):
        at_default = default[spec] == f"1x{size}"
        verdicts[spec if at_default else f"{spec} at {size}"] = _timm_verdict(spec, None if at_default else size, *counts)
    return verdicts


def _timm_verdict(spec: str, size: str | None, params_m: float, gmacs: float) -> Verdict:
    trace = trace_spec(spec, size)
    params = sum(parameter.elements for parameter in trace.parameters if parameter.kind == "parameter") / 1e6
    # Two decimals are published.
    if abs(params - params_m) > max(PARAMS_SHARE * params_m, 0.0051):
        return Verdict(False, f"params {params:.2f} M, published {params_m:.2f} M")
    batch_norm = sum(2 * op.outputs[0].elements for op in trace.ops if "batch_norm" in op.name)
    counted = (sum(cost.macs for cost in costs(trace)) + batch_norm) / 1e9
    if abs(counted - gmacs) > max(GMACS_SHARE * gmacs, 0.0051):
        return Verdict(False, f"{counted:.2f} GMACs with BatchNorm, published {gmacs:.2f}")
    return Verdict(True)
