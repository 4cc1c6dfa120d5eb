"""Fused attention: softmax(Q K^T) V in one kernel, the scores never leaving the SM.

Prefill (many queries): tiles of 128 queries walk over the keys that they may see, half of the square if causal. Decode (one query):
the keys and values are read once, and what is left is how many blocks read them at once: a block for each sequence and key head, and the
keys split among several blocks where those are too few. fp32, masks and GPUs before Ampere run the memory-efficient kernel, which
has the same form with smaller tiles. A mask is read by it, once for each head and sample. Fused kernels take four axes only: with more, or
with three, attention runs as products, a softmax and point-wise steps, its scores in memory.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from modelstat.cost.operands import operand
from modelstat.cost.record import Cost
from modelstat.predict.kernels.arithmetic import Quantity, anywhere, ceil, floor, maximum, minimum, overlapped, where
from modelstat.predict.kernels.constants import Constants
from modelstat.predict.kernels.rates import Rates
from modelstat.predict.kernels.stream import resident, traffic_seconds
from modelstat.predict.kernels.tiles import fed, limited_by_power, waves
from modelstat.predict.kernels.timing import Time
from modelstat.records import Op

_HEADS_LAST = ("_flash_attention", "_efficient_attention_forward", "varlen", "flash_attn", "xformers")
_TILE_QUERIES, _TILE_KEYS = 128.0, 64.0
_MASK_VECTOR = 8
"""Elements that a mask's rows are a multiple of, or it is copied to such rows."""


class Features(NamedTuple):
    """``queries`` and ``keys`` of each of ``batch`` x ``heads`` (``key_heads`` of keys and values), ``channels`` wide.

    ``causal`` 1 or 0; ``split`` 1 if a decode kernel may split the keys; ``flash`` 1 for the flash kernel, 0 for the memory-efficient one.
    ``mask`` is its bytes (B), an axis that is expanded once, ``padded`` the same if it must be copied to rows of whole vectors first;
    ``fused`` 0 where no fused kernel takes it.
    """

    batch: Quantity
    heads: Quantity
    key_heads: Quantity
    queries: Quantity
    keys: Quantity
    channels: Quantity
    item_bytes: Quantity
    causal: Quantity
    split: Quantity
    flash: Quantity
    mask: Quantity = 0.0
    padded: Quantity = 0.0
    fused: Quantity = 1.0


def features(op: Op, cost: Cost) -> Features:
    """From query and key, heads before positions or behind them."""
    query, key = operand(op, "query", "q", "src"), operand(op, "key", "k", "src")
    last = any(part in op.name for part in _HEADS_LAST)
    head, position = (-2, -3) if last and len(query.shape) >= 3 else (-3, -2)
    heads = float(query.shape[head]) if len(query.shape) >= 3 else 1.0
    key_heads = float(key.shape[head]) if len(key.shape) >= 3 else 1.0
    queries, keys, channels = float(query.shape[position]), float(key.shape[position]), float(query.shape[-1])
    batch = prod(op.outputs[0].shape[:-1]) / max(heads * queries, 1.0) if op.outputs else 1.0
    mask = op.tensor("attn_mask") or op.tensor("attn_bias") or op.tensor("bias")
    flash = query.item_bytes == 2 and mask is None and channels <= 256
    size = float(mask.bytes) if mask is not None else 0.0
    padded = size if keys % _MASK_VECTOR else 0.0
    fused = float(op.name != "modelstat::attention" or len(query.shape) == len(key.shape) == 4)
    # One query against a cache moves keys and values alone, which may be kept smaller than they are computed with.
    item_bytes = float(key.item_bytes if queries == 1.0 else query.item_bytes)
    causal = bool(op.argument("is_causal", op.argument("causal", False)))
    return Features(
        max(batch, 1.0), heads, max(key_heads, 1.0), queries, keys, channels, item_bytes, float(causal), 1.0, float(flash),
        size, padded, fused,
    )  # fmt: skip


def seconds(f: Features, rates: Rates, c: Constants) -> Time:
    """Time of one fused attention."""
    if anywhere(f.fused < 1.0):
        apart = _unfused(f, rates, c)
        if not anywhere(f.fused > 0.0):
            return apart
        return Time(*(where(f.fused > 0.0, kept, fallen) for kept, fallen in zip(_fused(f, rates, c), apart, strict=True)))
    return _fused(f, rates, c)


def _fused(f: Features, rates: Rates, c: Constants) -> Time:
    one = f.queries <= 1.0
    if not anywhere(one):
        return _prefill(f, rates, c)
    if not anywhere(f.queries > 1.0):
        return _decode(f, rates, c)
    return Time(*(where(one, quick, long) for quick, long in zip(_decode(f, rates, c), _prefill(f, rates, c), strict=True)))


def _efficiency(f: Features, rates: Rates, c: Constants) -> Quantity:
    """Share of the peak at which a tile runs, by the width of a head; the flash kernel needs Ampere or later."""
    flash = where(f.channels <= 64.0, c["efficiency_64"], where(f.channels <= 128.0, c["efficiency_128"], c["efficiency_256"]))
    return fed(where((f.flash > 0.0) & (rates.capability >= 8.0), flash, flash * c["memory_efficient"]), rates)


def _prefill(f: Features, rates: Rates, c: Constants) -> Time:
    rows = minimum(_TILE_QUERIES, 16.0 * ceil(f.queries / 16.0))
    rows = _TILE_QUERIES - (_TILE_QUERIES - rows) * c["rows_saved"]
    # A causal mask starts in the upper left corner: query i sees i + 1 keys.
    triangle = minimum(f.queries, f.keys)
    pairs = where(f.causal > 0.0, triangle * triangle / 2.0 + (f.queries - triangle) * f.keys, f.queries * f.keys)
    seen = where(f.causal > 0.0, minimum(f.keys, pairs / f.queries + _TILE_QUERIES / 2.0), f.keys)
    span = _TILE_KEYS * ceil(seen / _TILE_KEYS) + c["prologue"] * rates.feed
    blocks = f.batch * f.heads * ceil(f.queries / _TILE_QUERIES)
    channels = maximum(f.channels, 32.0)
    work = 4.0 * channels * rows * span
    clocked = waves(blocks, rates.sms, c["tail"]) * work * rates.sms / rates.issue / _efficiency(f, rates, c)
    compute = limited_by_power(clocked, 4.0 * f.batch * f.heads * f.channels * pairs, rates, c)
    size = 2.0 * f.item_bytes * f.batch * f.channels * (f.queries * f.heads + f.keys * f.key_heads)
    dram = size * (1.0 - resident(size, rates.l2_bytes * c["l2_share"])) + f.mask
    read = where(f.mask > 0.0, f.batch * f.heads * f.queries * f.keys * f.item_bytes, 0.0)
    memory = traffic_seconds(dram, size + read, rates, c["port_bytes"]) + 2.0 * f.padded / rates.memory
    latency = (c["latency_cycles"] + c["key_cycles"] * maximum(f.keys, _TILE_KEYS)) / rates.clock_hz
    return Time(compute, memory, overlapped(compute, memory, c["overlap"]) + latency)


def _unfused(f: Features, rates: Rates, c: Constants) -> Time:
    """Query and key scaled, a product, the mask added, a softmax, a product: scores are written and read again by each step."""
    scores = f.batch * f.heads * f.queries * f.keys
    compute = 4.0 * f.channels * scores / (rates.issue * c["unfused_efficiency"])
    tokens = f.batch * f.channels * (f.queries * f.heads + f.keys * f.key_heads) * f.item_bytes
    passes = c["unfused_passes"] + where(f.mask > 0.0, 2.0, 0.0)
    memory = (scores * f.item_bytes * passes + 4.0 * tokens) / rates.memory
    return Time(compute, memory, overlapped(compute, memory, 1.0) + c["unfused_latency_s"])


def _decode(f: Features, rates: Rates, c: Constants) -> Time:
    wide = maximum(f.channels, 64.0)
    step = where(f.channels <= 64.0, 256.0, where(f.channels <= 128.0, 128.0, 64.0))
    slots = rates.sms * maximum(1.0, floor(rates.shared_bytes / (c["decode_block_bytes"] * wide / 128.0)))
    steps = ceil(f.keys / step)
    blocks = f.batch * f.key_heads
    split = where(f.split > 0.0, maximum(1.0, minimum(floor(slots / blocks), steps)), 1.0)
    turns = maximum(1.0, waves(blocks * split, slots, c["decode_tail"]))
    compute = turns * (c["decode_block_cycles"] + c["decode_step_cycles"] * ceil(steps / split)) / rates.clock_hz
    stored = 2.0 * f.item_bytes * f.batch * f.key_heads * f.keys * f.channels
    size = stored + 2.0 * f.item_bytes * f.batch * f.heads * f.channels
    dram = size * (1.0 - resident(stored, rates.l2_bytes * c["decode_l2_share"], 8.0))
    memory = traffic_seconds(dram, size, rates, c["port_bytes"])
    cycles = where(f.batch > 1.0, c["decode_batch_cycles"], 0.0) + where((f.split > 0.0) & (steps > 1.0), c["decode_combine_cycles"], 0.0)
    latency = c["decode_latency_s"] + cycles / rates.clock_hz
    return Time(compute, memory, overlapped(compute, memory, c["decode_overlap"]) + latency)
