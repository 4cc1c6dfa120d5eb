"""Matrix products as GPUs run them: a grid of output tiles, handed to the SMs in waves.

A tile of x by y outputs runs at a share of the SM's peak that its shape allows: small tiles re-read their operands more often. The last
wave is rarely full. Where tiles are fewer than SMs, the sum over k is split among several (split-K).
"""

from __future__ import annotations

from modelstat.predict.kernels.arithmetic import Quantity, ceil, floor, maximum, minimum
from modelstat.predict.kernels.constants import Constants
from modelstat.predict.kernels.rates import Rates

TILES = ((256, 128), (128, 128), (128, 64), (64, 64), (128, 32), (64, 32))
"""Rows by columns; a library has each of them also turned by 90 degrees."""

_NAMES = tuple((x, y, f"tile_{x}x{y}") for x, y in TILES)


def waves(blocks: Quantity, slots: Quantity, tail: float) -> Quantity:
    """Waves that ``blocks`` take on ``slots``; ``tail`` is the share of the last, partly filled wave that is really waited for.

    >>> waves(150, 100, 1.0), waves(150, 100, 0.0)
    (2.0, 1.5)
    """
    filled = blocks / slots
    return filled + tail * (ceil(filled) - filled)


def tile_seconds(x: int, y: int, batch: Quantity, m: Quantity, n: Quantity, k: Quantity, rates: Rates, c: Constants) -> Quantity:
    """Seconds (s) of ``batch`` products (m, k) @ (k, n) on tiles of x by y at the full peak; the tile's efficiency is the caller's.

    The tile lies whichever way covers the output with fewer. Where tiles are fewer than SMs, parts of at least ``split_k`` steps of k go to
    different SMs; adding them up is not charged. ``prologue`` steps fill a tile's pipeline: time that slower tensor cores fill
    with fewer steps.
    """
    blocks = ceil(m / x) * ceil(n / y)
    if x != y:
        blocks = minimum(blocks, ceil(m / y) * ceil(n / x))
    blocks = batch * blocks
    split = maximum(1.0, minimum(floor(rates.sms / maximum(1.0, blocks)), k / c["split_k"]))
    turns = waves(blocks * split, rates.sms, c["tail"]) + c["ramp"]
    return turns * 2.0 * x * y * (k / split + c["prologue"] * rates.feed) * rates.sms / rates.issue


def fed(efficiency: Quantity, rates: Rates) -> Quantity:
    """Efficiency of a tile where tensor cores run at a share of their full rate: waiting for operands costs them that share of it.

    >>> from modelstat.hardware.database import find
    >>> from modelstat.predict.kernels.rates import rates
    >>> fed(0.5, rates(find("a40"), "float16")), round(fed(0.5, rates(find("rtx-3090"), "float16")), 3)
    (0.5, 0.667)
    """
    return efficiency / (efficiency + (1.0 - efficiency) * rates.feed)


def product_seconds(batch: Quantity, m: Quantity, n: Quantity, k: Quantity, rates: Rates, c: Constants) -> Quantity:
    """Seconds (s) on the best of the tiles that ``c`` has an efficiency for."""
    best: Quantity = None
    for x, y, name in _NAMES:
        efficiency = c.get(name)
        if efficiency is not None:
            time = tile_seconds(x, y, batch, m, n, k, rates, c) / fed(efficiency, rates)
            best = time if best is None else minimum(best, time)
    return best


def limited_by_power(clocked: Quantity, flops: Quantity, rates: Rates, c: Constants) -> Quantity:
    """The same work under the board's power limit: seconds (s).

    Power is drawn by useful operations (padding multiplies zeros), so ``flops`` never run faster than the TDP feeds them, nor than they can
    be issued. The clock that a limit lowers slows what does not fill the GPU too: by (peak / sustained)^throttle.
    """
    slower = maximum(1.0, rates.issue / rates.power) ** c["throttle"]
    return maximum(clocked * slower, flops / minimum(rates.issue, rates.power))
