"""Collectives over a ring of GPUs: every GPU sends to its right neighbour while it receives from its left one."""

from __future__ import annotations

from typing import Literal

import msgspec

from modelstat.deploy.links import Link

Kind = Literal["all-reduce", "all-gather", "reduce-scatter", "send"]

ROUNDS: dict[Kind, int] = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1}
"""Rounds of N - 1 steps, each of which sends an N-th: an all-reduce is a reduce-scatter and an all-gather."""


class Collective(msgspec.Struct, frozen=True):
    """One exchange of a tensor of ``bytes`` (B, whole) among ``gpus``; ``op`` is the index of the op whose operand or result it is."""

    kind: Kind
    bytes: int
    gpus: int
    op: int = -1

    @property
    def sent_bytes(self) -> float:
        """What each GPU sends (B): rounds x (N - 1) / N of the tensor, all of it for a send."""
        if self.gpus < 2:
            return 0.0
        return float(self.bytes) if self.kind == "send" else ROUNDS[self.kind] * (self.gpus - 1) / self.gpus * self.bytes

    def seconds(self, link: Link) -> float:
        """Bytes over bandwidth, a hop's latency a step, and the start (s)."""
        if self.gpus < 2 or not self.bytes:
            return 0.0
        steps = 1 if self.kind == "send" else ROUNDS[self.kind] * (self.gpus - 1)
        return self.sent_bytes / link.bytes_per_second + steps * link.hop_seconds + link.start_seconds


def critical_inner(peak_flops: float, link: Link, gpus: int = 2, item_bytes: float = 2.0) -> float:
    """The D above which X[B, D] Y[D, F], split over D on several chips, is bound by arithmetic and not by the all-reduce of its result.

    Each chip computes 2 B (D / N) F FLOPs and sends 2 (N - 1) / N of the B F results: the times are equal at
    D = (N - 1) x item bytes x peak / link. On two chips and bf16, D / 2 = peak / link. Latencies aside.
    """
    return (gpus - 1) * item_bytes * peak_flops / link.bytes_per_second
