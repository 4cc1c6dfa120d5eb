"""A model of which several GPUs share each layer: the passes of one of them, and what they exchange."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from modelstat.cost.registry import costs
from modelstat.deploy.collectives import Collective
from modelstat.deploy.links import link_between
from modelstat.deploy.shards import shards
from modelstat.hardware.gpu import Gpu
from modelstat.predict.passes import Pass
from modelstat.records import Trace
from modelstat.serving.phase import Phase
from modelstat.serving.serving import Tracer


class Group:
    """``gpus`` of a kind, tensor-parallel. It is a tracer: of one GPU's part of what another tracer walks.

    Walking raises UsageError where so many cannot share the model.
    """

    def __init__(self, tracer: Tracer, gpus: int) -> None:
        self.gpus = gpus
        self._tracer = tracer
        self._walked: dict[Phase, dict[int, tuple[Collective, ...]]] = {}

    def __call__(self, phase: Phase, batch: int) -> Trace:
        """One GPU's part of a pass."""
        trace = self._tracer(phase, batch)
        part = shards(trace, costs(trace), self.gpus)
        self._walked.setdefault(phase, {})[batch] = part.collectives
        return part.trace

    def exchanges(self, phase: Phase, batch: int) -> tuple[Collective, ...]:
        """What a pass exchanges. Bytes are affine in the batch, so two walks tell those of a batch that was not walked."""
        walked = self._walked.get(phase, {})
        if batch not in walked and len(walked) > 1:
            low, high = sorted(walked)[-2:]
            if [one.kind for one in walked[low]] == [one.kind for one in walked[high]]:
                return tuple(
                    msgspec.structs.replace(one, bytes=one.bytes + (batch - low) * (other.bytes - one.bytes) // (high - low))
                    for one, other in zip(walked[low], walked[high], strict=True)
                )
        if batch not in walked:
            self(phase, batch)
        return self._walked[phase][batch]


class SharedPass:
    """One pass of a group: a GPU's part, and then the exchanges, which nothing hides."""

    def __init__(self, part: Pass, exchanges: Sequence[Collective]) -> None:
        self._part, self._exchanges = part, tuple(exchanges)

    def seconds(self, gpu: Gpu) -> float:
        """Time of the pass (s). Raises MissingPeakError, and UsageError where nothing is known to lie between such GPUs."""
        link = link_between(gpu)
        return self._part.seconds(gpu) + sum(one.seconds(link) for one in self._exchanges)
