"""Tensor parallelism: what one of N GPUs computes, reads and holds, and what it must exchange.

The trace is followed along its data flow. A tensor is whole on every GPU, or split along its features (channels, heads). A contraction
splits the columns of its weight where its input is whole, and leaves a split result; where its input is split it splits the rows, and the
partial results are summed: one all-reduce for two contractions, as Megatron-LM has it. Point-wise ops work on what they are given. What
needs all features at once (LayerNorm, a softmax over them) gathers them first, and what has no rule runs whole on every GPU.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from modelstat.cost.record import Cost
from modelstat.deploy.collectives import Collective, Kind
from modelstat.deploy.weights import weight_of
from modelstat.errors import UsageError
from modelstat.records import Op, TensorSpec, Trace

SPLIT_TABLE = 2**22
"""Elements from which on an embedding's table is split by rows; smaller ones (positions, types) are whole on every GPU."""
ELEMENT_BY_ELEMENT = frozenset(("elementwise", "activation", "copy", "pooling", "resample", "random", "view"))
OVER_FEATURES = frozenset(("norm", "softmax", "reduction"))


class Shards(msgspec.Struct, frozen=True):
    """One of ``gpus`` GPUs: the costs of its part of each op, the exchanges in order, and the trace with the bytes that it holds.

    ``split_share`` is the share of the MACs that is split at all.
    """

    gpus: int
    trace: Trace
    costs: tuple[Cost, ...]
    collectives: tuple[Collective, ...]
    split_share: float


def shards(trace: Trace, costs: Sequence[Cost], gpus: int) -> Shards:
    """The part of one of ``gpus`` GPUs. Raises UsageError where attention has a number of heads that ``gpus`` does not divide."""
    if gpus == 1:
        return Shards(1, trace, tuple(costs), (), 0.0)
    splitter = _Splitter(trace, gpus)
    local = tuple(splitter.op(index, op, cost) for index, (op, cost) in enumerate(zip(trace.ops, costs, strict=True)))
    for index, value in enumerate(trace.values):
        if value.output and index in splitter.width:
            splitter.exchange("all-gather", value.bytes, len(trace.ops) - 1)
    macs = sum(cost.macs for cost in costs)
    whole = sum(cost.macs for cost, mine in zip(costs, local, strict=True) if mine.macs == cost.macs)
    held = splitter.held - splitter.kept
    parameters = tuple(
        msgspec.structs.replace(one, bytes=-(-one.bytes // gpus)) if one.value in held else one for one in trace.parameters
    )
    values = tuple(
        msgspec.structs.replace(value, bytes=-(-value.bytes // gpus)) if index in splitter.width or index in held else value
        for index, value in enumerate(trace.values)
    )
    part = msgspec.structs.replace(trace, parameters=parameters, values=values)
    return Shards(gpus, part, local, tuple(splitter.collectives), 1.0 - whole / macs if macs else 0.0)


class _Splitter:
    """Walks the ops once. ``width`` has the length of the split axis of each value that is split."""

    def __init__(self, trace: Trace, gpus: int) -> None:
        self.trace, self.gpus = trace, gpus
        self.width: dict[int, int] = {}
        self.held: set[int] = set()
        """Parameters of which each GPU holds a part."""
        self.kept: set[int] = set()
        """Parameters that some op needs whole."""
        self.collectives: list[Collective] = []

    def exchange(self, kind: Kind, size: int, op: int) -> None:
        self.collectives.append(Collective(kind, size, self.gpus, op))

    def op(self, index: int, op: Op, cost: Cost) -> Cost:
        """The cost of this op's part; notes what its results are."""
        if op.view or cost.known == "free":
            self._results(op, max((self.width.get(spec.value, 0) for spec in op.inputs), default=0))
            return cost
        weight = weight_of(op, cost, self.trace)
        if weight is not None:
            return self._contraction(index, op, cost, weight)
        split = [spec for spec in op.inputs if spec.value in self.width]
        table = op.tensor("weight") if cost.family == "embedding" else None
        if table is not None and table.elements >= SPLIT_TABLE and not split:
            return self._table(index, op, cost, table)
        if not split:
            return self._whole(index, op, cost)
        if cost.family == "attention":
            self._check_heads(op)
        gathers = cost.family in OVER_FEATURES and self._needs_all(op, split)
        if gathers or cost.family not in ELEMENT_BY_ELEMENT | OVER_FEATURES | {"attention", "matmul", "gather"}:
            return self._whole(index, op, cost)
        self._results(op, self._joined(op, split))
        self.held.update(spec.value for spec in op.inputs if self.trace.values[spec.value].kind == "parameter")
        return self._scaled(op, cost, {spec.value for spec in op.inputs}, {spec.value for spec in op.outputs})

    def _contraction(self, index: int, op: Op, cost: Cost, weight: TensorSpec) -> Cost:
        own = {weight.value}
        data = [spec for spec in op.inputs if self.trace.values[spec.value].kind not in ("parameter", "buffer")]
        features = self._features(op)
        grouped = int(op.argument("groups", 1) or 1) > 1
        split = [spec for spec in data if spec.value in self.width]
        if split and not grouped:
            # Rows of the weight: every GPU has a part of each sum.
            self.held.add(weight.value)
            self._results(op, 0)
            self.exchange("all-reduce", sum(spec.bytes for spec in op.outputs), index)
            return self._scaled(op, cost, own | {spec.value for spec in data}, set())
        if features % self.gpus:
            return self._whole(index, op, cost)
        self.held.update(spec.value for spec in op.inputs if self.trace.values[spec.value].kind == "parameter")
        self._results(op, features)
        parameters = {spec.value for spec in op.inputs} - {spec.value for spec in data}
        read = parameters | {spec.value for spec in data} if grouped else parameters
        return self._scaled(op, cost, read, {spec.value for spec in op.outputs})

    def _table(self, index: int, op: Op, cost: Cost, table: TensorSpec) -> Cost:
        """Rows of the table: a GPU looks up those that it has, and the sum is what all have found."""
        self.held.add(table.value)
        self._results(op, 0)
        self.exchange("all-reduce", sum(spec.bytes for spec in op.outputs), index)
        return msgspec.structs.replace(cost, read=cost.read // self.gpus)

    def _whole(self, index: int, op: Op, cost: Cost) -> Cost:
        """Every GPU does all of it, on inputs that are gathered where they are split."""
        for spec in {spec.value: spec for spec in op.inputs if spec.value in self.width}.values():
            self.exchange("all-gather", spec.bytes, index)
            del self.width[spec.value]
        self.kept.update(spec.value for spec in op.inputs if self.trace.values[spec.value].kind == "parameter")
        self._results(op, 0)
        return cost

    def _results(self, op: Op, width: int) -> None:
        for spec in op.outputs:
            if width:
                self.width[spec.value] = width
            elif not op.view:
                self.width.pop(spec.value, None)

    def _features(self, op: Op) -> int:
        """Length of the axis that a contraction's columns make: channels of an image, else the last axis."""
        shape = op.outputs[0].shape
        axis = 1 if "conv" in op.name and len(shape) > 2 else -1
        return shape[axis] if shape else 1

    def _joined(self, op: Op, split: Sequence[TensorSpec]) -> int:
        """The split axis of a result: as long as that of the inputs, of a concatenation along it as long as all together."""
        width = max(self.width[spec.value] for spec in split)
        dim = op.argument("dim")
        first = split[0]
        along = type(dim) is int and -len(first.shape) <= dim < len(first.shape) and first.shape[dim] == self.width[first.value]
        if op.name == "aten::cat" and along:
            return int(op.outputs[0].shape[dim])
        return width

    def _needs_all(self, op: Op, split: Sequence[TensorSpec]) -> bool:
        """Whether a norm, softmax or reduction goes over the split axis."""
        if "batch_norm" in op.name:
            return False
        if "group_norm" in op.name:
            # A group stays on one GPU where the groups can be shared out.
            return int(op.argument("group", op.argument("num_groups", 1))) % self.gpus != 0
        spec = split[0]
        width = self.width[spec.value]
        dims = op.argument("dim", op.argument("dims", [-1] if op.name.startswith(("aten::native_layer", "aten::_fused_rms")) else None))
        if dims is None:
            return "norm" not in op.name or (bool(spec.shape) and spec.shape[-1] == width)
        axes = dims if isinstance(dims, list) else [dims]
        return any(type(axis) is int and -len(spec.shape) <= axis < len(spec.shape) and spec.shape[axis] == width for axis in axes)

    def _check_heads(self, op: Op) -> None:
        """Every GPU has whole heads; one of keys and values may be on several GPUs, and is counted as if they shared it."""
        query, keys = op.tensor("query") or op.tensor("q"), op.tensor("key") or op.tensor("k")
        if query is None or keys is None or len(query.shape) < 4 or len(keys.shape) < 4:
            return
        for heads, what, shared in ((query.shape[-3], "heads", False), (keys.shape[-3], "heads of keys and values", True)):
            if heads % self.gpus and not (shared and self.gpus % heads == 0):
                path = self.trace.modules[op.module].path or self.trace.modules[op.module].type
                divisors = ", ".join(str(size) for size in range(2, heads + 1) if heads % size == 0)
                way = f"choose from {divisors}" if divisors else "leave it out"
                raise UsageError(f"--tensor-parallel {self.gpus}: {path} has {heads} {what}, which {self.gpus} does not divide: {way}")

    def _scaled(self, op: Op, cost: Cost, read: set[int], written: set[int]) -> Cost:
        """An N-th of the arithmetic, and of the bytes of these values."""

        def part(specs: Sequence[TensorSpec], chosen: set[int], counted: int) -> int:
            total = sum(spec.bytes for spec in specs)
            mine = sum(spec.bytes / self.gpus if spec.value in chosen else spec.bytes for spec in specs)
            return round(counted * mine / total) if total else counted

        share = self.gpus
        return msgspec.structs.replace(
            cost,
            macs=cost.macs // share,
            flops=-(-cost.flops // share),
            madd=cost.madd // share,
            activations=cost.activations if not written else cost.activations // share,
            read=part(op.inputs, read, cost.read),
            write=part(op.outputs, written, cost.write),
        )
