"""The lines above and below the table: what was analyzed, and what a reviewer wants to know."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from modelstat import units
from modelstat.report.caption import inputs_text, peak_text
from modelstat.report.document import Document
from modelstat.report.grid import printable
from modelstat.report.layers import leaves
from modelstat.report.memory import memory_text, training_texts
from modelstat.report.prediction import prediction_lines
from modelstat.report.timing import GpuEntry

Line = tuple[str, str]
"""A label and a text. A label may be empty: the line continues the one above."""

HEAVIEST = 5
MANY = 4
"""Of more inputs than this the header names the first and the last: each has a row below."""


def header(documents: Sequence[Document]) -> list[Line]:
    """Model, inputs, precision and batch of all documents, and each GPU with its peak, bandwidth and ridge point."""
    lines: dict[Line, None] = {}
    for document in documents:
        model = document.model
        frozen = "" if model.trainable_params == model.params else f" ({units.count(model.trainable_params)} trainable)"
        lines["Model", f"{printable(model.spec)}, {units.count(model.params)} params{frozen}"] = None
    ends = documents if len(documents) <= MANY else (documents[0], documents[-1])
    for document in ends:
        batch = "batch as given" if document.batch is None else f"batch {document.batch}"
        lines["Input", f"{inputs_text(document)}, {batch}, precision {document.precision}"] = None
    for document in documents:
        for gpu in document.gpus:
            ridge = "" if gpu.ridge is None else f", ridge {units.ratio(gpu.ridge)} FLOP/B"
            lines["GPU", f"{gpu.name}: {peak_text(gpu)}{ridge}"] = None
            if gpu.siblings:
                lines["", f"siblings of this board: {', '.join(gpu.siblings)}"] = None
    return _grouped(lines)


def findings(document: Document) -> list[Line]:
    """What a reviewer wants to know about one document, on its first GPU if it has one."""
    gpu = document.gpus[0] if document.gpus else None
    totals = document.totals
    lines: list[Line] = []
    if gpu is None:
        intensity = "nothing moves" if totals.intensity is None else f"{units.ratio(totals.intensity)} FLOP/B for the whole model"
        lines.append(("Intensity", intensity))
    else:
        lines += _gpu_findings(document, gpu)
    lines.append(("FLOPs", _flop_shares(document)))
    heavy = heaviest(document, gpu)
    if heavy:
        lines.append(("Heaviest", ", ".join(heavy)))
    lines.append(("Memory", memory_text(document, gpu)))
    return lines + training([document]) + remarks([document])


def training(documents: Sequence[Document]) -> list[Line]:
    """One step of training, for the documents where it was asked for; of several, each says which it is."""
    lines: list[Line] = []
    for document in documents:
        if document.training is msgspec.UNSET:
            continue
        gpu = document.gpus[0] if document.gpus and 1 in (len(document.gpus), len(documents)) else None
        batch = "batch as given" if document.batch is None else f"batch {document.batch}"
        which = "" if len(documents) == 1 else f"{batch}, {document.precision}: "
        first, *others = training_texts(document, document.training, gpu)
        lines.append(("Training" if not lines else "", which + first))
        lines += [("", text) for text in others]
    return lines


def remarks(documents: Sequence[Document]) -> list[Line]:
    """Ops without a formula, notes on the GPUs and warnings: each once, for one document or for several."""
    unknown = {_unknown(document): None for document in documents}
    lines: dict[Line, None] = {("No formula", text): None for text in unknown}
    for document in documents:
        for gpu in document.gpus:
            deviates = gpu.exceptions.get(gpu.peak_column or "")
            for note in (*([f"{gpu.peak_column}: {deviates}"] if deviates else []), *gpu.notes):
                lines["Note", note if len(documents[0].gpus) == 1 else f"{gpu.name}: {note}"] = None
            if gpu.missing:
                lines["Note", f"{gpu.name}: {gpu.missing}"] = None
        for warning in document.warnings:
            if not warning.startswith("no formula for "):  # said above
                lines["Note", printable(warning)] = None
    return _grouped(lines)


def _grouped(lines: dict[Line, None]) -> list[Line]:
    """The lines with a label that repeats the one above left out."""
    found: list[Line] = []
    above = ""
    for label, text in lines:
        found.append(("" if label == above else label, text))
        above = label or above
    return found


def _gpu_findings(document: Document, gpu: GpuEntry) -> list[Line]:
    intensity = document.totals.intensity
    if gpu.ideal_ms is None or gpu.whole_model_ms is None or gpu.ideal_upper_ms is None:
        return [("Time", f"unknown: {gpu.missing}")]
    lines: list[Line] = []
    if intensity is not None and gpu.ridge is not None and gpu.attainable_flops is not None:
        side = "compute" if intensity >= gpu.ridge else "memory"
        where = "above" if intensity >= gpu.ridge else "below"
        text = f"{units.ratio(intensity)} FLOP/B for the whole model, {where} the ridge {units.ratio(gpu.ridge)}: {side}-bound as a whole"
        lines.append(("Intensity", f"{text}, at most {units.flops_rate(gpu.attainable_flops)}"))
    ideal, upper, whole = (units.seconds(ms / 1e3) for ms in (gpu.ideal_ms, gpu.ideal_upper_ms, gpu.whole_model_ms))
    bound = f", {gpu.bound}-bound" if gpu.bound else ""
    lines.append(("Ideal time", f"{ideal} summed over ops{bound} (upper bound {upper}); {whole} taken once over the whole model"))
    if gpu.compute_bound_share is not None and gpu.memory_bound_share is not None:
        shares = (
            f"{units.percent(gpu.compute_bound_share)} in compute-bound ops, {units.percent(gpu.memory_bound_share)} in memory-bound ops"
        )
        lines.append(("", shares))
    return lines + prediction_lines(gpu)


def _flop_shares(document: Document) -> str:
    """Shares of the FLOPs in contractions (families with MACs), norms, element-wise ops and the rest."""
    total = document.totals.flops
    if not total:
        return "none"
    groups = {"contractions": 0, "norms": 0, "element-wise": 0, "other": 0}
    for family in document.families:
        element_wise = family.family in ("elementwise", "activation")
        group = "contractions" if family.macs else "norms" if family.family == "norm" else "element-wise" if element_wise else "other"
        groups[group] += family.flops
    return ", ".join(f"{name} {units.percent(flops / total)}" for name, flops in groups.items())


def heaviest(document: Document, gpu: GpuEntry | None) -> list[str]:
    """The modules without children that take most predicted time, or most FLOPs where no GPU is given, with their share."""
    weights: list[tuple[float, str]] = []
    total = gpu.predicted_ms if gpu else document.totals.flops
    for index in leaves(document.layers):
        weight = gpu.layers[index].predicted_ms if gpu else document.layers[index].flops
        if weight and total:
            weights.append((weight / total, document.layers[index].path or document.layers[index].type))
    weights.sort(key=lambda pair: -pair[0])
    return [f"{printable(path)} {units.percent(share)}" for share, path in weights[:HEAVIEST]]


def _unknown(document: Document) -> str:
    if not document.coverage.unknown_ops:
        return "none: every op is counted"
    names = ", ".join(f"{printable(op.name)} ({op.count}x)" for op in document.coverage.unknown_ops)
    return f"{names}: {units.percent(document.coverage.unknown_byte_share)} of the bytes; their FLOPs are missing above"
