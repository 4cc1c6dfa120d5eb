"""What a sweep writes: one row per point of the grid, and one per layer of it on request. These structs are the schema."""

from __future__ import annotations

from typing import Literal

import msgspec

Status = Literal["ok", "error", "timeout", "memory", "crash"]
"""How a model ended. error: an exception, sys.exit included. timeout, memory: its process was killed at the limit, or the model
ran out of memory by itself. crash: its process died, of a segmentation fault for instance."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One point of the grid: a model at one input, batch, precision and GPU. A field is null where it is unknown or was not asked for.

    Counts are for the whole batch, bytes are B, rates per second. What is not known of a model that failed is null.
    """

    job: int
    """Position of the model run in the grid; the rows that one trace gave share it."""
    spec: str
    """The model, as the sweep names it."""
    origin: str
    """timm, torchvision, file, yaml, or bare for a name without an origin."""
    name: str
    """The spec without its origin."""
    inputs: str | None = None
    """The input that was asked for; null: the model's own."""
    shapes: str | None = None
    """The tensors that it was given, batch included."""
    batch: int | None = None
    """null: the inputs were taken as they are."""
    precision: str | None = None
    gpu: str | None = None
    """Key of the GPU; null without --gpu."""
    gpu_name: str | None = None
    status: Status = "ok"
    reason: str | None = None
    """Why it failed, in one line."""
    seconds: float = 0.0
    """Wall time of the trace and its evaluation; the rows of one job and batch share it (s)."""
    params: int | None = None
    trainable_params: int | None = None
    buffers: int | None = None
    macs: int | None = None
    flops: int | None = None
    madd: int | None = None
    activations: int | None = None
    mem_read_bytes: int | None = None
    mem_write_bytes: int | None = None
    intensity: float | None = None
    weight_bytes: int | None = None
    peak_memory_bytes: int | None = None
    """The weights, and the largest set of other storages alive at once."""
    modules: int | None = None
    """Modules of the model, shared ones once per parent."""
    ops: int | None = None
    """Recorded ops that are not views."""
    unknown_ops: str | None = None
    """Ops without a formula, by name and count; empty if there are none."""
    unknown_byte_share: float | None = None
    """Their share of all bytes, 0..1."""
    run: str | None = None
    """fake: walked without values; real: it ran on the CPU with random weights."""
    peak_flops: float | None = None
    peak_column: str | None = None
    """Column of the GPU database that the peak stands in."""
    bandwidth_bytes: float | None = None
    ridge: float | None = None
    """Peak / bandwidth (FLOP/B)."""
    attainable_flops: float | None = None
    """min(intensity x bandwidth, peak) of the whole model (FLOP/s)."""
    bound: str | None = None
    """compute or memory."""
    ideal_ms: float | None = None
    """Sum over the ops of the larger of FLOPs/peak and bytes/bandwidth (ms)."""
    ideal_upper_ms: float | None = None
    """The same with both terms added (ms)."""
    whole_model_ms: float | None = None
    """The maximum taken once over the model's totals (ms)."""
    compute_ms: float | None = None
    memory_ms: float | None = None
    execution: str | None = None
    """How the predicted time takes the model to run: mode, layout, host."""
    predicted_ms: float | None = None
    """What a stopwatch should show (ms)."""
    predicted_low_ms: float | None = None
    """Lower end of its 90 % interval (ms)."""
    predicted_high_ms: float | None = None
    """Upper end (ms)."""
    predicted_bound: str | None = None
    """What limits the predicted time: compute, memory or overhead."""
    idle_ms: float | None = None
    """Of the predicted time, how long the GPU waits for its host (ms)."""
    throughput: float | None = None
    """Samples per second."""
    gpu_memory_bytes: float | None = None
    fits: bool | None = None
    """The peak memory is at most 95 % of the GPU's memory."""
    missing: str | None = None
    """Why the GPU gives no time: the peak that it lacks."""
    notes: str | None = None
    """What a reader of the numbers must know, separated by semicolons."""
    modelstat: str
    """Version of modelstat."""
    versions: str | None = None
    """Versions of torch and of the model's libraries."""


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """One module of one point of the grid, inclusive of what is below it; the ``own_`` columns are what ran in its own forward."""

    job: int
    """As in the results: (job, batch, precision, gpu) finds the row there."""
    spec: str
    batch: int | None = None
    precision: str | None = None
    gpu: str | None = None
    path: str
    """The module; empty for the model itself."""
    type: str
    depth: int
    calls: int
    input_shapes: str
    output_shapes: str
    dtype: str | None = None
    params: int
    trainable_params: int
    macs: int
    flops: int
    madd: int
    mem_read_bytes: int
    mem_write_bytes: int
    intensity: float | None = None
    own_macs: int
    own_flops: int
    own_madd: int
    own_mem_read_bytes: int
    own_mem_write_bytes: int
    bound: str | None = None
    ideal_ms: float | None = None
    compute_ms: float | None = None
    memory_ms: float | None = None
    predicted_ms: float | None = None
    predicted_bound: str | None = None


class Outcome(msgspec.Struct, frozen=True):
    """All rows of one job, the seconds that it kept its worker busy, and those that it kept a processor busy."""

    job: int
    rows: tuple[Row, ...]
    layers: tuple[Layer, ...] = ()
    seconds: float = 0.0
    processor_seconds: float = 0.0
