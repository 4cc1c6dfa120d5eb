"""The verdict in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelstat import units

if TYPE_CHECKING:
    from modelstat.report.verdict import GpuVerdict
    from modelstat.report.verdict_layers import Counts

SAME = 0.005
"""Share of change below which a number is called the same."""


def more_or_less(before: float, after: float, what: str) -> str:
    """How much of something there is now.

    >>> more_or_less(100, 57, "FLOPs"), more_or_less(100, 280, "bytes"), more_or_less(100, 112, "bytes"), more_or_less(3, 3, "FLOPs")
    ('43 % fewer FLOPs', '2.8x the bytes', '12 % more bytes', 'the same FLOPs')
    """
    if not before or abs(after / before - 1) < SAME:
        return f"the same {what}" if before == after or before else f"{what} where there were none"
    change = after / before
    if change >= 1.5:
        return f"{change:.1f}x the {what}"
    return f"{abs(change - 1) * 100:.0f} % {'more' if change > 1 else 'fewer'} {what}"


def faster_or_slower(before: float, after: float) -> str:
    """How the time changed.

    >>> faster_or_slower(1.0, 1.9), faster_or_slower(1.9, 1.0), faster_or_slower(1.0, 1.001)
    ('1.90x slower', '1.90x faster', 'as fast as before')
    """
    if not before or not after or abs(after / before - 1) < SAME:
        return "as fast as before"
    return f"{after / before:.2f}x slower" if after > before else f"{before / after:.2f}x faster"


def sentence(gpu: GpuVerdict, before: Counts, after: Counts, batch: int | None) -> str:
    """FLOPs and bytes, the ridge point, the predicted time and where the swap wins, in one sentence."""
    parts = f"{more_or_less(before.flops, after.flops, 'FLOPs')}, {more_or_less(before.mem_bytes, after.mem_bytes, 'bytes')}"
    ridge = _ridge(gpu, before, after)
    text = f"{parts}: {ridge}" if ridge else parts
    if gpu.before.predicted_ms is None or gpu.after.predicted_ms is None:
        return f"{text}; no time: {gpu.missing or 'unknown'}"
    at = "" if batch is None else f" at batch {batch}"
    text += f"; predicted {faster_or_slower(gpu.before.predicted_ms, gpu.after.predicted_ms)}{at}{_limit(gpu)}"
    ends = [each for each in (gpu.wins.text if gpu.wins else None, _needed(gpu, before, after)) if each]
    return "; ".join([text, *ends])


def _ridge(gpu: GpuVerdict, before: Counts, after: Counts) -> str:
    if gpu.ridge is None or before.intensity is None or after.intensity is None:
        return ""
    numbers = f"({units.ratio(before.intensity)} -> {units.ratio(after.intensity)} FLOP/B against {units.ratio(gpu.ridge)})"
    sides = (before.intensity >= gpu.ridge, after.intensity >= gpu.ridge)
    return {
        (True, False): "crosses the ridge",
        (False, True): "rises above the ridge",
        (True, True): "stays above the ridge",
        (False, False): "stays below the ridge",
    }[sides] + f" {numbers}"


def _limit(gpu: GpuVerdict) -> str:
    """What limits the swapped model, and how many kernels are launched where that is the host."""
    if gpu.after.bound != "overhead" or not gpu.before.kernels or not gpu.after.kernels:
        return f", {gpu.after.bound}-bound" if gpu.after.bound else ""
    times = gpu.after.kernels / gpu.before.kernels
    launches = f"{gpu.after.kernels} kernels instead of {gpu.before.kernels}"
    return f", overhead-bound: {launches}" + (f", {times:.1f}x as many launches" if times >= 1.05 else "")


def _needed(gpu: GpuVerdict, before: Counts, after: Counts) -> str | None:
    """The bandwidth above which fewer FLOPs for more bytes pay, by the roofline of the totals: bytes after x peak / FLOPs before."""
    fewer_for_more = after.flops < before.flops and after.mem_bytes > before.mem_bytes
    if not fewer_for_more or gpu.peak_flops is None or not before.flops:
        return None
    needed = after.mem_bytes * gpu.peak_flops / before.flops
    if needed <= gpu.bandwidth_bytes:
        return None
    times = f"{needed / gpu.bandwidth_bytes:.1f}x what is there"
    return f"by the roofline it needs more than {units.bandwidth(needed)} beside this peak, {times}"
