"""The ``layouts`` of the JSON contract: one pass of the model on several GPUs of a kind."""

from __future__ import annotations

import msgspec

from modelstat.deploy.collectives import Collective
from modelstat.deploy.parallel import Layout, Parallel
from modelstat.hardware.gpu import Gpu
from modelstat.records import Trace
from modelstat.report.timing import milliseconds


class CollectiveEntry(msgspec.Struct, frozen=True):
    """One exchange: ``bytes`` of the whole tensor among ``gpus``, of which each sends ``sent_bytes`` (B), and how long it takes.

    ``path`` is the module whose op it belongs to.
    """

    kind: str
    bytes: int
    gpus: int
    sent_bytes: float
    ms: float
    path: str


class StageEntry(msgspec.Struct, frozen=True):
    """One stage of a pipeline: the modules in which it begins and ends, and what each of its GPUs computes, moves, holds and sends."""

    first_path: str
    last_path: str
    flops: int
    mem_bytes: int
    weight_bytes: int
    sent_bytes: int
    ms: float


class LayoutEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One layout on one kind of GPU, see :class:`modelstat.deploy.parallel.Parallel`. Without a peak all but the layout is null."""

    key: str
    name: str
    tensor: int
    pipeline: int
    data: int
    gpus: int
    missing: str | None
    link_bytes: float | None = None
    link_source: str | None = None
    flops: int | None = None
    mem_bytes: int | None = None
    weight_bytes: int | None = None
    peak_bytes: int | None = None
    fits: bool | None = None
    split_share: float | None = None
    compute_ms: float | None = None
    memory_ms: float | None = None
    comm_ms: float | None = None
    lower_ms: float | None = None
    upper_ms: float | None = None
    bound: str | None = None
    predicted_ms: float | None = None
    predicted_low_ms: float | None = None
    predicted_high_ms: float | None = None
    alone_ms: float | None = None
    throughput: float | None = None
    collectives: tuple[CollectiveEntry, ...] = ()
    gradient: CollectiveEntry | None = None
    stages: tuple[StageEntry, ...] = ()


def layout_entry(trace: Trace, gpu: Gpu, layout: Layout, found: Parallel | None, missing: str | None) -> LayoutEntry:
    """The entry of one GPU; ``found`` is None where it has no peak for the model, for the reason ``missing``."""
    kept = {"key": gpu.key, "name": gpu.name, "tensor": layout.tensor, "pipeline": layout.pipeline, "data": layout.data}
    if found is None:
        return LayoutEntry(**kept, gpus=layout.gpus, missing=missing)  # type: ignore[arg-type]
    link = found.link

    def path(op: int) -> str:
        return trace.modules[trace.ops[op].module].path

    def collective(one: Collective, where: str) -> CollectiveEntry:
        seconds = 0.0 if link is None else one.seconds(link)
        return CollectiveEntry(one.kind, one.bytes, one.gpus, one.sent_bytes, seconds * 1e3, where)

    return LayoutEntry(
        **kept,  # type: ignore[arg-type]
        gpus=layout.gpus,
        missing=None,
        link_bytes=None if link is None else link.bytes_per_second,
        link_source=None if link is None else link.source,
        flops=found.flops,
        mem_bytes=found.bytes,
        weight_bytes=found.weight_bytes,
        peak_bytes=found.peak_bytes,
        fits=found.fits,
        split_share=found.split_share,
        compute_ms=milliseconds(found.compute_seconds),
        memory_ms=milliseconds(found.memory_seconds),
        comm_ms=milliseconds(found.comm_seconds),
        lower_ms=milliseconds(found.lower_seconds),
        upper_ms=milliseconds(found.upper_seconds),
        bound=found.bound,
        predicted_ms=milliseconds(found.predicted_seconds),
        predicted_low_ms=milliseconds(found.low_seconds),
        predicted_high_ms=milliseconds(found.high_seconds),
        alone_ms=milliseconds(found.alone_seconds),
        throughput=found.throughput,
        collectives=tuple(collective(one, path(one.op)) for one in found.collectives),
        gradient=None if found.gradient is None else collective(found.gradient, ""),
        stages=tuple(
            StageEntry(
                path(one.first), path(one.last), one.flops, one.bytes, one.weight_bytes, one.sent_bytes, one.seconds * 1e3
            )
            for one in found.stages
        ),
    )
