"""One line under a table: what is needed to reproduce its numbers."""

from __future__ import annotations

from modelstat import units
from modelstat.report.document import Document
from modelstat.report.grid import shape_text
from modelstat.report.timing import GpuEntry

BRIEF = "MACs without bias, FLOPs with a MAC = 2, bytes read and written once per op"


def inputs_text(document: Document) -> str:
    """All inputs with their dtype.

    The name is left out where there is only one input.
    """
    single = len(document.inputs) == 1
    parts = (f"{shape_text([each.shape])} {each.dtype}" for each in document.inputs)
    if single:
        return next(parts)
    return ", ".join(f"{each.name}={part}" for each, part in zip(document.inputs, parts, strict=True)) or "none"


def peak_text(gpu: GpuEntry) -> str:
    """Peak and bandwidth, or why there is no peak: ``14.0 TFLOP/s fp32 dense, 900 GB/s``."""
    peak = f"{units.flops_rate(gpu.peak_flops)} {gpu.peak_column} dense" if gpu.peak_flops is not None else f"no peak ({gpu.missing})"
    return f"{peak}, {units.bandwidth(gpu.bandwidth_bytes)}"


def caption(document: Document, *gpus: GpuEntry | None) -> str:
    """Model, input, batch, precision, GPU peaks, convention and version, in one line."""
    boards = [f"{gpu.name} ({peak_text(gpu)})" for gpu in gpus if gpu is not None]
    parts = [
        f"{document.model.spec}, input {inputs_text(document)}",
        f"batch {'as given' if document.batch is None else document.batch}, {document.precision}",
        *boards,
        BRIEF,
        f"modelstat {document.versions.get('modelstat', 'unknown')}",
    ]
    return "; ".join(parts)
