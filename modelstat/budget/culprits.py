"""Which layers a failed budget is due to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from modelstat.budget.limits import QUANTITIES
from modelstat.budget.result import Culprit
from modelstat.report.compare_layers import SHOWN_AS, difference, layer_changes, layer_name
from modelstat.report.document import Document
from modelstat.report.grid import formatted, printable
from modelstat.report.layers import leaves

COUNT = 3
"""How many layers are named."""

Amounts = Mapping[str, float]
"""What one layer takes, or by how much it grew, by field: counts, B, ms."""


def culprits(quantities: Sequence[str], document: Document, baseline: Document | None) -> tuple[Culprit, ...]:
    """The three layers that grew most over the baseline in the quantities that failed; without one, those that take most.

    A layer's weight is the sum of its shares in the growth of each quantity.
    """
    fields = list(dict.fromkeys(QUANTITIES[quantity].layer for quantity in quantities))
    layers = _taking(fields, document) if baseline is None else _growing(fields, baseline, document)
    sums = {field: sum(amounts[field] for _, amounts in layers) for field in fields}

    def weight(amounts: Amounts) -> float:
        return sum(amounts[field] / sums[field] for field in fields if sums[field])

    heaviest = sorted(layers, key=lambda layer: -weight(layer[1]))[:COUNT]
    sign = "" if baseline is None else "+"
    return tuple(_culprit(name, amounts, sign) for name, amounts in heaviest if weight(amounts))


def _growing(fields: Sequence[str], baseline: Document, document: Document) -> list[tuple[str, Amounts]]:
    """By how much each layer costs more than before."""
    return [
        (
            f"{layer_name(change)}{'' if change.status == 'changed' else f', {change.status}'}",
            {field: max(difference(change, field) or 0.0, 0.0) for field in fields},
        )
        for change in layer_changes([baseline, document]).layers
    ]


def _taking(fields: Sequence[str], document: Document) -> list[tuple[str, Amounts]]:
    """What each layer without layers below it costs."""
    times = document.gpus[0].layers if document.gpus else ()

    def cost(index: int, field: str) -> float:
        row = document.layers[index]
        if field == "mem_bytes":
            return row.mem_read_bytes + row.mem_write_bytes
        return getattr(times[index] if field.endswith("_ms") else row, field) or 0.0

    rows = [(index, document.layers[index]) for index in leaves(document.layers)]
    return [(f"{row.path} ({row.type})" if row.path else row.type, {field: cost(index, field) for field in fields}) for index, row in rows]


def _culprit(name: str, amounts: Amounts, sign: str) -> Culprit:
    parts = [f"{SHOWN_AS[field].header} {sign}{formatted(SHOWN_AS[field], amount)}" for field, amount in amounts.items() if amount]
    return Culprit(layer=printable(name), amounts=dict(amounts), text=f"{printable(name)}: {', '.join(parts)}")
