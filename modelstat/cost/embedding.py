"""Embedding tables: only the rows that are looked up are read.

A table is never read more than once: more look-ups than rows repeat rows.
"""

from __future__ import annotations

from math import prod

from modelstat.cost.operands import operand, total_bytes
from modelstat.cost.registry import Work, register
from modelstat.records import Op, TensorSpec


def rows_bytes(table: TensorSpec, rows: int) -> int:
    """Bytes of ``rows`` rows of a table (rows, *), at most all of them."""
    return round(min(rows, table.shape[0]) * prod(table.shape[1:]) * table.item_bytes) if table.shape else table.bytes


@register("embedding", "aten::embedding")
def embedding(op: Op) -> Work:
    """weight (V, D), indices (*) -> (*, D)."""
    table, indices = operand(op, "weight"), operand(op, "indices")
    return Work(read=indices.bytes + rows_bytes(table, indices.elements))


@register("embedding", "aten::_embedding_bag", "aten::_embedding_bag_forward_only", "aten::embedding_bag")
def embedding_bag(op: Op) -> Work:
    """weight (V, D), indices (I) -> (bags, D): an addition or a compare per row element, and a multiplication where rows have weights."""
    table, indices = operand(op, "weight"), operand(op, "indices")
    others = total_bytes(spec for name, spec in zip(op.names, op.inputs, strict=True) if name != "weight")
    weighted = op.tensor("per_sample_weights") is not None
    gathered = indices.elements * prod(table.shape[1:])
    return Work(flops=gathered * (2 if weighted else 1), read=others + rows_bytes(table, indices.elements))


@register("embedding", "aten::one_hot")
def one_hot(op: Op) -> Work:
    """Integers in, integers out: bytes only."""
    return Work()
