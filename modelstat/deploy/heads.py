"""Tensor parallelism of attention and norms."""

from __future__ import annotations

from itertools import pairwise
from math import gcd

from modelstat.deploy.cut import Cut, cut_of, even
from modelstat.deploy.placement import Operands, Placement, data_alone, nothing
from modelstat.errors import UsageError
from modelstat.records import Op

HEADS_LAST = ("flash_attention_forward", "efficient_attention_forward", "flash_attn::", "xformers::", "varlen")
"""Parts of the names of ops whose tensors are (B, L, H, E); (B, H, L, E) elsewhere."""


def attention(known: Operands) -> Placement | None:
    """Every GPU has whole heads of the query, and those of keys and values that they meet: a part, or one that several share."""
    op = known.op
    found = [known.named(*names) for names in (("query", "q"), ("key", "k"), ("value", "v"))]
    query, key, value = found
    if query is None or key is None or value is None or len(op.inputs[query].shape) < 3:
        return None
    axis = heads_axis(op, len(op.inputs[query].shape))
    cut, heads = known.cuts[query], op.inputs[query].shape[axis]
    if cut is not None and cut.axis == 0 and axis != 0:
        return _samples(known, cut)
    # Fewer heads of keys and values than GPUs: several share one. A single one is whole everywhere.
    wrong = tuple(
        (index, even(axis, op.inputs[index].shape[axis], gcd(op.inputs[index].shape[axis], known.gpus)))
        for index in (key, value)
        if (one := known.cuts[index]) is not None and one.axis != axis
    )
    ways = max((one.ways for one in known.cuts if one is not None), default=0)
    if wrong or not ways or heads % ways or (cut is not None and cut != even(axis, heads, cut.ways)):
        return nothing(known, *wrong)
    cut = even(axis, heads, ways)
    inputs: list[Cut | None] = [None] * len(op.inputs)
    for index, spec in enumerate(op.inputs):
        size = spec.shape[axis] if len(spec.shape) == len(op.inputs[query].shape) else 1
        if index in (key, value) and size > 1:
            ways = cut.ways if size % cut.ways == 0 else size if cut.ways % size == 0 else 0
            if not ways:
                return None
            inputs[index] = even(axis, size, ways)
        elif index == query or (size == heads and index not in (key, value)):
            inputs[index] = cut
    outputs = tuple(cut if len(spec.shape) > axis and spec.shape[axis] == heads else None for spec in op.outputs)
    return Placement(tuple(inputs), outputs)


def heads_axis(op: Op, rank: int) -> int:
    """The axis of the heads, counted from the front."""
    return rank - (2 if any(part in op.name for part in HEADS_LAST) else 3)


def _samples(known: Operands, cut: Cut) -> Placement | None:
    """Each sample by itself."""
    size = known.op.inputs[0].shape[0]
    inputs = tuple(cut if spec.shape and spec.shape[0] == size else None for spec in known.op.inputs)
    return Placement(inputs, tuple(cut if spec.shape and spec.shape[0] == size else None for spec in known.op.outputs))


def check_heads(op: Op, gpus: int, where: str) -> None:
    """Raises UsageError for a number of heads that ``gpus`` does not divide. Several GPUs may share one of keys and values.

    A single head stays whole on every GPU.
    """
    query, keys = op.tensor("query") or op.tensor("q"), op.tensor("key") or op.tensor("k")
    if query is None or keys is None or len(query.shape) < 4 or len(keys.shape) < 4:
        return
    axis = heads_axis(op, len(query.shape))
    if query.shape[axis] == 1:
        return
    for heads, what, shared in ((query.shape[axis], "heads", False), (keys.shape[axis], "heads of keys and values", True)):
        if heads % gpus and not (shared and gpus % heads == 0):
            divisors = ", ".join(str(size) for size in range(2, heads + 1) if heads % size == 0)
            way = f"choose from {divisors}" if divisors else "leave it out"
            raise UsageError(f"--tensor-parallel {gpus}: {where} has {heads} {what}, which {gpus} does not divide: {way}")


def norm(known: Operands) -> Placement | None:
    """Norms over other axes than the split one; a norm of channels or groups of them where every GPU has whole ones."""
    op, cut = known.op, known.cuts[0]
    if cut is None or any(known.cuts[1:]):
        return None
    shape = op.inputs[0].shape
    if "batch_norm" in op.name:
        if cut.axis == 0:
            return None if op.argument("training") or "update" in op.name else data_alone(known, cut)
        if cut.axis != 1:
            return None
        vectors = tuple(cut.on(0) if len(spec.shape) == 1 and spec.shape[0] == shape[1] else None for spec in op.inputs[1:])
        outputs = tuple(cut if len(spec.shape) == len(shape) else cut.on(0) if spec.shape == shape[1:2] else None for spec in op.outputs)
        return Placement((cut, *vectors), outputs)
    if "group_norm" in op.name:
        return _groups(known, cut)
    if "layer_norm" in op.name or "rms_norm" in op.name:
        over = len(op.argument("normalized_shape", shape[-1:]))
        return data_alone(known, cut) if cut.axis < len(shape) - over else None
    return None


def _groups(known: Operands, cut: Cut) -> Placement | None:
    op, shape = known.op, known.op.inputs[0].shape
    name = "group" if "group" in op.arguments else "num_groups"
    groups = int(op.argument(name, 1))
    if cut.axis == 0:
        return data_alone(known, cut)
    wide = max(shape[1] // groups, 1)
    blocks = [(high - low) // cut.ways for low, high in pairwise(cut.bounds)]
    if cut.axis != 1 or any(block % wide for block in blocks):
        return None
    vectors = tuple(cut.on(0) for _ in op.inputs[1:])
    statistics = cut_of(1, (bound // wide for bound in cut.sections(shape[1])), cut.ways)
    return Placement((cut, *vectors), (cut, *(statistics,) * (len(op.outputs) - 1)), arguments={name: groups // cut.ways})
