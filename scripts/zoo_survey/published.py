"""Published counts, and how ours compare with them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, NamedTuple

from modelstat.api import trace_spec
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
    """Against ``params_m`` and ``gmacs`` of a file of measured models, where it has the model at the size that we traced."""
    published: dict[tuple[str, str], tuple[float, float]] = {}
    if measured.is_file():
        with measured.open(encoding="utf-8") as file:
            for line in csv.DictReader(file):
                if line["source"] == "timm" and line["params_m"] and line["gmacs"]:
                    published[line["model"], f"1x{line['input']}"] = (float(line["params_m"]), float(line["gmacs"]))
    verdicts = {}
    for row in rows:
        if (row.spec, row.shapes or "") in published:
            verdicts[row.spec] = _timm_verdict(row, *published[row.spec, row.shapes or ""])
    return verdicts


def _timm_verdict(row: Row, params_m: float, gmacs: float) -> Verdict:
    ours = (row.params or 0) / 1e6
    # Two decimals are published.
    if abs(ours - params_m) > max(PARAMS_SHARE * params_m, 0.0051):
        return Verdict(False, f"params {ours:.2f} M, published {params_m:.2f} M")
    counted = ((row.macs or 0) + 2 * batch_norm_elements(row.spec)) / 1e9
    if abs(counted - gmacs) > max(GMACS_SHARE * gmacs, 0.0051):
        return Verdict(False, f"{counted:.2f} GMACs with BatchNorm, published {gmacs:.2f}")
    return Verdict(True)


def batch_norm_elements(spec: str) -> int:
    """Elements that BatchNorm layers yield, from the cached trace."""
    return sum(op.outputs[0].elements for op in trace_spec(spec).ops if "batch_norm" in op.name)
