"""The lines about memory and training below the table."""

from __future__ import annotations

from modelstat import units
from modelstat.predict.roofline import FITS_SHARE
from modelstat.report.document import Document
from modelstat.report.grid import printable
from modelstat.report.timing import GpuEntry
from modelstat.report.training import TrainingEntry


def memory_text(document: Document, gpu: GpuEntry | None) -> str:
    """Peak memory at inference, its two parts, where it is, and whether it fits a GPU."""
    held = document.memory
    where = "" if held.peak_op is None else f" in {_place(document, held.peak_path)}"
    parts = f"weights {units.bytes_(held.weight_bytes)}, activations {units.bytes_(held.activation_bytes)}"
    text = f"{units.bytes_(held.peak_bytes)} at peak{where} ({parts})"
    return text if gpu is None else f"{text}, {fits_text(held.peak_bytes, gpu)}"


def fits_text(size: int, gpu: GpuEntry) -> str:
    """``0.3 % of the memory of A100: fits (peak memory, up to 95 %)``."""
    if gpu.memory_bytes is None:
        return f"memory of {gpu.name} unknown"
    verdict = "fits" if size <= FITS_SHARE * gpu.memory_bytes else "does not fit"
    return f"{units.percent(size / gpu.memory_bytes)} of the memory of {gpu.name}: {verdict} ({gpu.fits_basis}, up to 95 %)"


def training_texts(document: Document, step: TrainingEntry, gpu: GpuEntry | None) -> tuple[str, str, str]:
    """One step of training: its FLOPs, its peak memory, and what that is made of."""
    forward, backward = step.forward_flops, step.backward_flops
    times = "" if not forward else f", {units.ratio((forward + backward) / forward)} times the forward"
    counts = f"{units.count(forward + backward)} FLOPs a step: forward {units.count(forward)}, backward {units.count(backward)}{times}"
    peak = f"{units.bytes_(step.peak_bytes)} at peak in the {step.peak_phase} of {_place(document, step.peak_path)}"
    state = f"{step.optimizer}'s state {units.bytes_(step.optimizer_bytes)}" if step.optimizer_bytes else f"no state of {step.optimizer}"
    parts = (
        f"weights {units.bytes_(step.weight_bytes)}, gradients {units.bytes_(step.gradient_bytes)}, {state}, "
        f"activations {units.bytes_(step.activation_bytes)}, each at its largest"
    )
    return counts, peak if gpu is None else f"{peak}, {fits_text(step.peak_bytes, gpu)}", parts


def _place(document: Document, path: str | None) -> str:
    return printable(path or document.layers[0].type)
