"""Which layers a failed limit is due to."""

from __future__ import annotations

from collections.abc import Sequence

from modelstat.budget.limits import QUANTITIES
from modelstat.budget.result import Culprit
from modelstat.report.compare_layers import largest, layer_name
from modelstat.report.document import Document
from modelstat.report.grid import printable
from modelstat.report.layers import leaves

SHOWN = 3


def culprits(quantities: Sequence[str], document: Document, baseline: Document | None) -> tuple[Culprit, ...]:
    """For each quantity the three layers that grew most over the baseline; without one, those that take most."""
    found: list[Culprit] = []
    for quantity in dict.fromkeys(quantities):
        found += _heaviest(quantity, document) if baseline is None else _grown(quantity, baseline, document)
    return tuple(found)


def _grown(quantity: str, baseline: Document, document: Document) -> list[Culprit]:
    field = QUANTITIES[quantity].layer
    found = []
    for change, amount in largest([baseline, document], field, SHOWN):
        layer = printable(layer_name(change))
        text = f"{layer} +{_amount(field, amount)}" + (f", {change.status}" if change.status != "changed" else "")
        found.append(Culprit(quantity=quantity, layer=layer, amount=_si(field, amount), text=text))
    return found


def _heaviest(quantity: str, document: Document) -> list[Culprit]:
    field = QUANTITIES[quantity].layer
    times = document.gpus[0].layers if document.gpus else ()
    weights = []
    for index in leaves(document.layers):
        row = document.layers[index]
        if field == "mem_bytes":
            weight: float | None = row.mem_read_bytes + row.mem_write_bytes
        else:
            weight = getattr(times[index] if field.endswith("_ms") else row, field)
        if weight:
            weights.append((weight, f"{row.path} ({row.type})" if row.path else row.type))
    weights.sort(key=lambda pair: -pair[0])
    return [
        Culprit(quantity=quantity, layer=printable(name), amount=_si(field, weight), text=f"{printable(name)} {_amount(field, weight)}")
        for weight, name in weights[:SHOWN]
    ]


def _si(field: str, amount: float) -> float:
    return amount / 1e3 if field.endswith("_ms") else amount


def _amount(field: str, amount: float) -> str:
    """With its unit: what grew is not always what is limited (peak memory grows with what the layers write)."""
    from modelstat import units

    if field.endswith("_ms"):
        return units.seconds(amount / 1e3)
    if field == "mem_write_bytes":
        return f"{units.bytes_(amount)} written"
    if field == "mem_bytes":
        return f"{units.bytes_(amount)} moved"
    return units.count(amount)
