"""How long an op of one kind takes on one machine, by what it computes and moves."""

from __future__ import annotations

import msgspec


class Law(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, repr_omit_defaults=True):
    """seconds = launch + FLOPs / flops + bytes of weights / weights + other bytes / bytes.

    ``launch_us`` (us) is what the op costs beyond its work, ``flops`` FLOP/s, ``weights`` and ``bytes`` B/s; None where that work adds
    nothing. On a CPU the parts of an op follow one another: weights come from memory and are laid out anew, then products are summed.
    """

    launch_us: float = 0.0
    flops: float | None = None
    weights: float | None = None
    bytes: float | None = None

    def seconds(self, flops: float, weights: float, others: float) -> float:
        """Time (s) of an op with ``flops`` FLOPs that reads ``weights`` bytes (B) of weights and moves ``others`` bytes beside them.

        >>> Law(launch_us=2.0, flops=1e9, bytes=1e10).seconds(4000, 500, 20000)
        8e-06
        """
        parts = ((flops, self.flops), (weights, self.weights), (others, self.bytes))
        return self.launch_us / 1e6 + sum(work / rate for work, rate in parts if rate is not None)

    @property
    def plausible(self) -> bool:
        """Whether every rate is above 0 and no time below."""
        rates = (rate for rate in (self.flops, self.weights, self.bytes) if rate is not None)
        return 0.0 <= self.launch_us < float("inf") and all(0.0 < rate < float("inf") for rate in rates)
