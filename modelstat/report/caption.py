"""One line under a table: what is needed to reproduce its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def runs_text(gpus: Iterable[GpuEntry]) -> list[str]:
    """How the model runs where its time is predicted, and what corrected that time: ``predicted for eager, host 26 us an op``."""
    runs = dict.fromkeys(gpu.execution for gpu in gpus if gpu.execution)
    corrections = dict.fromkeys(gpu.correction for gpu in gpus if gpu.correction)
    return [*([f"predicted for {' or '.join(runs)}"] if runs else []), *corrections]


def versions_text(documents: Sequence[Document]) -> str:
    """modelstat's version, and those of torch and of the packages that the models come from: counts hang on all of them."""
    found: dict[str, dict[str, None]] = {"modelstat": {}}
    for document in documents:
        for name, version in document.versions.items():
            found.setdefault(name, {})[version] = None
    return ", ".join(f"{name} {' and '.join(versions) or 'unknown'}" for name, versions in found.items())


def caption(document: Document, gpu: GpuEntry | None) -> str:
    """Model, input, batch, precision, GPU peaks, execution, convention and versions, in one line."""
    gpus = [] if gpu is None else [gpu]
    parts = [
        f"{document.model.spec}, input {inputs_text(document)}",
        f"batch {'as given' if document.batch is None else document.batch}, {document.precision}",
        *(f"{each.name} ({peak_text(each)})" for each in gpus),
        *runs_text(gpus),
        BRIEF,
        versions_text([document]),
    ]
    return "; ".join(parts)


def shared_caption(documents: Sequence[Document], *remarks: str) -> str:
    """The same for a table of several documents, each fact once; an input says whose it is where models have different ones."""
    specs = dict.fromkeys(document.model.spec for document in documents)
    inputs: dict[str, dict[str, None]] = {}
    for document in documents:
        inputs.setdefault(inputs_text(document), {})[document.model.spec] = None
    shown = [text if len(owners) == len(specs) else f"{text} ({', '.join(owners)})" for text, owners in inputs.items()]
    sizes = dict.fromkeys("as given" if document.batch is None else str(document.batch) for document in documents)
    precisions = dict.fromkeys(document.precision for document in documents)
    parts = [
        f"{', '.join(specs)}, input {', '.join(shown)}",
        f"batch {', '.join(sizes)}, {', '.join(precisions)}",
        *dict.fromkeys(f"{gpu.name} ({peak_text(gpu)})" for document in documents for gpu in document.gpus),
        *runs_text(gpu for document in documents for gpu in document.gpus),
        *remarks,
        BRIEF,
        versions_text(documents),
    ]
    return "; ".join(parts)
