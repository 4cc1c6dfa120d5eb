"""One model on several GPUs: what each computes, moves, holds and sends, and the bounds of the time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from modelstat.cost.record import Cost
from modelstat.deploy.collectives import Collective
from modelstat.deploy.links import Link, link_between
from modelstat.deploy.links import link as link_of
from modelstat.deploy.shards import shards
from modelstat.deploy.stages import Stage, stages
from modelstat.errors import MissingPeakError, UsageError
from modelstat.hardware.gpu import Gpu
from modelstat.memory.peak import peak_memory, weight_bytes
from modelstat.predict.execution import Execution
from modelstat.predict.measured import Correction, corrected
from modelstat.predict.prediction import predict
from modelstat.predict.roofline import FITS_SHARE, roofline
from modelstat.predict.variant import samples
from modelstat.records import Trace

Bound = Literal["compute", "memory", "comm"]


class Layout(msgspec.Struct, frozen=True):
    """How many ways each kind splits: ``tensor`` the layers, ``pipeline`` the depth, ``data`` the requests."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1

    @property
    def gpus(self) -> int:
        """GPUs that it takes."""
        return self.tensor * self.pipeline * self.data

    def check(self) -> None:
        """Raises UsageError for a number below 1."""
        for name, count in (("--tensor-parallel", self.tensor), ("--pipeline", self.pipeline), ("--data-parallel", self.data)):
            if count < 1:
                raise UsageError(f"{name} {count}: give a whole number of GPUs of at least 1")


class Parallel(msgspec.Struct, frozen=True):
    """One pass of the whole batch through one replica.

    ``flops``, ``bytes`` and ``weight_bytes`` are those of the GPU that has most of each; ``peak_bytes`` is a bound: with a pipeline the
    largest weights plus the largest activations. Times (s) are sums over the stages that a batch goes through, one after another:
    arithmetic, memory and exchanges. The pass takes at least the largest and at most the sum of the three, and the bound is the largest.
    ``predicted_seconds`` (s) is what a stopwatch should show: the predicted time of a GPU's part of every op, and then the exchanges, which
    nothing hides; ``low_seconds`` and ``high_seconds`` are the 90 % interval of the former, and the same exchanges. None where it is not
    known.
    ``throughput`` (samples/s) is at most that of all replicas, with every stage busy.
    """

    gpu: Gpu
    layout: Layout
    link: Link | None
    flops: int
    bytes: int
    weight_bytes: int
    peak_bytes: int
    fits: bool | None
    collectives: tuple[Collective, ...]
    stages: tuple[Stage, ...]
    compute_seconds: float
    memory_seconds: float
    comm_seconds: float
    alone_seconds: float
    split_share: float
    predicted_seconds: float | None
    low_seconds: float | None
    high_seconds: float | None
    gradient: Collective | None
    throughput: float | None

    @property
    def lower_seconds(self) -> float:
        """All three overlap (s)."""
        return max(self.compute_seconds, self.memory_seconds, self.comm_seconds)

    @property
    def upper_seconds(self) -> float:
        """None of the three overlap (s)."""
        return self.compute_seconds + self.memory_seconds + self.comm_seconds

    @property
    def bound(self) -> Bound:
        """The largest of the three."""
        sides: dict[Bound, float] = {"compute": self.compute_seconds, "memory": self.memory_seconds, "comm": self.comm_seconds}
        return max(sides, key=lambda side: sides[side])


def parallel(
    trace: Trace, costs: Sequence[Cost], gpu: Gpu, layout: Layout, execution: Execution | None = None, *, training: bool = False,
    measured: Correction | None = None,
) -> Parallel:  # fmt: skip
    """What a layout makes of a trace that is run as ``execution`` says. ``training`` adds the all-reduce of the gradients among replicas.

    ``measured`` corrects the predicted time of a GPU's part, as it does that of one GPU.

    Raises UsageError for a layout that the model cannot take or a GPU whose link is unknown, MissingPeakError without a peak.
    """
    layout.check()
    needed = layout.tensor * layout.pipeline > 1 or (training and layout.data > 1)
    link = link_between(gpu) if needed else link_of(gpu) or Link(float("inf"), source="none is needed")
    part = shards(trace, costs, layout.tensor)
    times = roofline(part.trace, part.costs, gpu)
    if times.missing is not None or times.compute_seconds is None or times.memory_seconds is None:
        raise MissingPeakError(str(times.missing))
    comm_of = [0.0] * len(trace.ops)
    for one in part.collectives:
        comm_of[one.op] += one.seconds(link)
    each = [(time.ideal_seconds or 0.0) + comm for time, comm in zip(times.ops, comm_of, strict=True)]
    parts = stages(part.trace, part.costs, each, layout.pipeline, link) if layout.pipeline > 1 else ()
    sends = tuple(Collective("send", stage.sent_bytes, 2, stage.last) for stage in parts[:-1])
    comm = sum(comm_of) + sum(one.seconds(link) for one in sends)
    predicted = predict(part.trace, part.costs, gpu, execution)
    predicted = predicted if measured is None else corrected(predicted, measured)
    peak = peak_memory(part.trace)
    weights = max((stage.weight_bytes for stage in parts), default=weight_bytes(part.trace))
    held = weights + peak.activation_bytes

    def bound(stage: Stage) -> float:
        """Everything overlapped, as without a pipeline."""
        mine = range(stage.first, stage.last + 1)
        send = Collective("send", stage.sent_bytes, 2, stage.last).seconds(link) if stage.sent_bytes else 0.0
        compute = sum(times.ops[index].compute_seconds or 0.0 for index in mine)
        memory = sum(times.ops[index].memory_seconds for index in mine)
        return max(compute, memory, sum(comm_of[index] for index in mine) + send)

    slowest = max(map(bound, parts), default=max(times.compute_seconds, times.memory_seconds, comm))
    batch = samples(trace)
    alone = roofline(trace, costs, gpu)
    whole = sum(one.bytes for one in part.trace.parameters if one.trainable and one.kind == "parameter")
    trainable = max((stage.trainable_bytes for stage in parts), default=whole)
    return Parallel(
        gpu=gpu,
        layout=layout,
        link=link if layout.gpus > 1 else None,
        flops=max((stage.flops for stage in parts), default=sum(cost.flops for cost in part.costs)),
        bytes=max((stage.bytes for stage in parts), default=sum(cost.bytes for cost in part.costs)),
        weight_bytes=weights,
        peak_bytes=held,
        fits=None if gpu.memory_bytes is None else held <= FITS_SHARE * gpu.memory_bytes,
        collectives=(*part.collectives, *sends),
        stages=parts,
        compute_seconds=times.compute_seconds,
        memory_seconds=times.memory_seconds,
        comm_seconds=comm,
        alone_seconds=max(alone.compute_seconds or 0.0, alone.memory_seconds or 0.0),
        split_share=part.split_share,
        predicted_seconds=_after(predicted.seconds, comm),
        low_seconds=_after(predicted.low_seconds, comm),
        high_seconds=_after(predicted.high_seconds, comm),
        gradient=Collective("all-reduce", trainable, layout.data) if training and layout.data > 1 else None,
        throughput=layout.data * batch / slowest if batch and slowest else None,
    )


def _after(seconds: float | None, comm: float) -> float | None:
    return None if seconds is None else seconds + comm
