"""Whether the sign of a change is right: pairs of models of which one multiplies less and is measured slower all the same."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from model_fit.score import Scored

LEAST_CHANGE = 0.10
"""Measured times of a pair differ by this much at least, so that noise does not decide."""

LIGHT = re.compile("ghost|mobilenet|mnasnet|mixnet|efficientnet|fbnet|spnas|lcnet|seresne|ecaresne|skresne|regnety|xception|tinynet")
"""Models whose point is few multiplications: ghost and depthwise convolutions, squeeze and excitation."""


class Direction(NamedTuple):
    """Pairs of a group, and how many of them were predicted with the right sign, by us and by FLOPs over peak and bytes alone."""

    pairs: int
    right: int
    right_roofline: int

    @property
    def share(self) -> float | None:
        """Share with the right sign (0..1), None without a pair."""
        return self.right / self.pairs if self.pairs else None


def direction(scored: Iterable[Scored], *, light_only: bool) -> Direction:
    """Pairs of one source, GPU, layout, mode, precision and input: fewer MACs per sample and at least 10 % more time per sample.

    ``light_only`` keeps pairs in which the one with fewer MACs is such a model that is made for few multiplications.
    """
    groups: dict[tuple[str, ...], list[tuple[float, float, float, float, bool]]] = defaultdict(list)
    for one in scored:
        row = one.row
        if row.gmacs:
            sample = [time / row.batch for time in (row.measured_seconds, one.predicted, one.ideal)]
            groups[(*row.group, row.input)].append((row.gmacs, sample[0], sample[1], sample[2], bool(LIGHT.search(row.model))))
    return _sum(_group(members, light_only) for members in groups.values())


def _group(members: Sequence[tuple[float, float, float, float, bool]], light_only: bool) -> Direction:
    pairs = right = roofline = 0
    ordered = sorted(members)
    for index, (macs, measured, predicted, ideal, light) in enumerate(ordered):
        if light_only and not light:
            continue
        for other_macs, other_measured, other_predicted, other_ideal, _ in ordered[index + 1 :]:
            if macs < other_macs and measured > other_measured * (1.0 + LEAST_CHANGE):
                pairs += 1
                right += predicted > other_predicted
                roofline += ideal > other_ideal
    return Direction(pairs, right, roofline)


def _sum(parts: Iterable[Direction]) -> Direction:
    return Direction(*(sum(column) for column in zip(Direction(0, 0, 0), *parts, strict=True)))


def lines(scored: Sequence[Scored]) -> str:
    """Two lines for a report."""
    texts = []
    for what, light_only in (("all models", False), ("of light models", True)):
        found = direction(scored, light_only=light_only)
        if found.pairs:
            texts.append(
                f"fewer MACs but at least {LEAST_CHANGE:.0%} slower, {what}: {found.pairs} pairs, "
                f"sign right in {found.right / found.pairs:.1%} (roofline {found.right_roofline / found.pairs:.1%})"
            )
    return "\n".join(texts)
