"""How far a prediction may be off: the 90 % interval."""

from __future__ import annotations

from typing import NamedTuple

from modelstat.predict.kernels.constants import document


class Interval(NamedTuple):
    """Factors on the predicted time between which nine measured times of ten lie, and what widened them."""

    low: float
    high: float
    reasons: tuple[str, ...]
    widening: float = 1.0
    """Factor by which ``reasons`` widened both sides."""


def interval(setting: str, *, idle_share: float, unknown_share: float, family: str) -> Interval:
    """The interval of a whole model's time.

    ``setting`` is a table of ``interval.json`` ("eager-half", "eager-fp32", "compile-half", ...): quantiles of measured over predicted
    time on GPUs and models that took no part in the fit. What lies outside of the fit widens it: an architecture ``family`` that was not
    fitted, a share of the time that is the host's (which differs more than GPUs do), bytes of ops without a formula.
    """
    data = document("interval")
    table = data["settings"].get(setting) or data["settings"]["other"]
    low, high = float(table["low"]["value"]), float(table["high"]["value"])
    reasons: list[str] = []
    widen = 1.0
    if setting not in data["settings"]:
        reasons.append(f"no measurements of {setting}")
    if family not in table["families"]["value"]:
        widen *= float(data["widening"]["family"]["value"])
        reasons.append(f"no {family} GPU took part in the fit of this mode and precision")
    if idle_share > 0.1:
        widen *= 1.0 + idle_share * (float(data["widening"]["host"]["value"]) - 1.0)
        reasons.append(f"{idle_share:.0%} of the time is the host's")
    if unknown_share > 0.01:
        widen *= 1.0 + unknown_share
        reasons.append(f"{unknown_share:.0%} of the bytes belong to ops without a formula")
    return Interval(low / widen, high * widen, tuple(reasons), widen)
