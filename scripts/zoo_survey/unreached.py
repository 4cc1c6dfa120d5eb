"""The parts of a model that its example input does not reach."""

from __future__ import annotations

from modelstat.api import trace_spec
from modelstat.sweeping.row import Row

SHARE = 0.02
"""Of the parameters: less than this is not worth a line."""
DEPTH = 2
"""How many names of a path tell the part."""


def unreached(row: Row, precision: str | None) -> str:
    """The parts and their share of the parameters, empty for a model that uses nearly all of them.

    ``precision`` is the one that the sweep asked for, so that the trace comes from the cache. A module that was called may still have
    parameters that no op read (a table of which the model takes no row).
    """
    if row.status != "ok" or "never called" not in (row.notes or ""):
        return ""
    trace = trace_spec(row.spec, precision=precision)
    read = {spec.value for op in trace.ops for spec in op.inputs}
    parameters = [parameter for parameter in trace.parameters if parameter.kind == "parameter"]
    idle = [parameter for parameter in parameters if parameter.value not in read]
    share = sum(parameter.elements for parameter in idle) / max(sum(parameter.elements for parameter in parameters), 1)
    if share < SHARE:
        return ""
    parts = dict.fromkeys(".".join(trace.modules[parameter.module].path.split(".")[:DEPTH]) for parameter in idle)
    named = ", ".join(f"`{part}`" for part in list(parts)[:3]) + (", ..." if len(parts) > 3 else "")
    return f"{named}: {100 * share:.0f} % of the parameters"
