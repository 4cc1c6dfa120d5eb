"""What a host costs, where a source's batches are so small that it shows: estimated for each source and GPU from a few models.

Such a source times ``model(images.to(device))``: the pass begins with a copy of the images from pageable memory. On the TITAN RTX's
machine every fp32 pass carries 4.2 ms (7.2 MB) that no model explains, every fp16 pass 1.3 ms: its images were converted on the host just
before and are still in its caches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelstat.predict.execution import HOSTS

if TYPE_CHECKING:
    from model_fit.predictions import Ready

ESTIMATED = ("pytorch-gpu-benchmark",)
"""Sources with small batches. Their three fastest models on each GPU give the host and are then left out."""

PROBES = 3

ISSUE_SECONDS = [1e-6 * 1.05**step for step in range(110)]
"""Costs (s) an op that are tried: 1 to 200 us."""

COPY_SECONDS = np.arange(0.0, 10.05e-3, 0.1e-3)
"""Costs (s) of copying an fp32 batch that are tried."""

FRESH_HALF = 1 / 3
"""The same for fp16: half the bytes, and in the host's caches (pytorch-gpu-benchmark, TITAN RTX, 2026-11-30)."""

TOO_SLOW = 2.0
"""Weight of a probe that is predicted slower than it was measured: jitter adds time and never takes any away."""


class Host(NamedTuple):
    """Seconds (s) to issue an op, and to copy a batch of fp32 images; ``probes`` are the models that gave them."""

    issue: float = HOSTS["typical"]
    copy: float = 0.0
    probes: frozenset[str] = frozenset()

    def copy_seconds(self, precision: str) -> float:
        """Seconds (s) for a batch in a precision: fp32 and tf32 images are float32."""
        return self.copy * (1.0 if precision in ("fp32", "tf32") else FRESH_HALF)


def hosts(waiting: Sequence[Ready], *, copies: bool = True) -> dict[tuple[str, str], Host]:
    """For each source and GPU the host that its three fastest models show; without ``copies`` its cost an op alone."""
    groups: dict[tuple[str, str], list[Ready]] = {}
    for each in waiting:
        groups.setdefault((each.row.source, each.row.gpu), []).append(each)
    found: dict[tuple[str, str], Host] = {}
    for key, members in groups.items():
        shortest: dict[str, float] = {}
        for each in members:
            shortest[each.row.model] = min(each.row.measured_seconds, shortest.get(each.row.model, each.row.measured_seconds))
        models = sorted(shortest, key=shortest.__getitem__)[:PROBES]
        found[key] = _solve([each for each in members if each.row.model in models], frozenset(models), copies)
    return found


def _solve(probes: Sequence[Ready], models: frozenset[str], copies: bool) -> Host:
    """The pair with the least sum of logarithmic errors over the probes."""
    tried = COPY_SECONDS if copies else COPY_SECONDS[:1]
    loss = np.zeros((len(ISSUE_SECONDS), len(tried)))
    for each in probes:
        passes = np.array([each.at(Host(issue)).predicted for issue in ISSUE_SECONDS])
        added = np.array([Host(copy=copy).copy_seconds(each.row.precision) for copy in tried])
        error = np.log((passes[:, None] + added) / each.row.measured_seconds)
        loss += np.where(error > 0.0, TOO_SLOW * error, -error)
    issue, copy = np.unravel_index(int(loss.argmin()), loss.shape)
    return Host(ISSUE_SECONDS[int(issue)], float(tried[int(copy)]), models)
