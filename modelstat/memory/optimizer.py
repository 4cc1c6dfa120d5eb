"""What an optimizer keeps for every parameter."""

from __future__ import annotations

from modelstat.errors import UsageError
from modelstat.records import Trace

OPTIMIZERS: dict[str, int] = {"sgd": 0, "momentum": 1, "adam": 2}
"""Numbers for each trainable parameter: none, the momentum, or both moments (AdamW has as many as Adam)."""

STATE_ITEM_BYTES = 4
"""The state is in fp32. (torch.optim keeps it in the dtype of the parameters, which is fp32 but for models in half precision.)"""


def check_optimizer(name: str) -> None:
    """Raises UsageError for an optimizer that is not in :data:`OPTIMIZERS`."""
    if name not in OPTIMIZERS:
        raise UsageError(f"unknown optimizer {name!r}: choose one of {', '.join(OPTIMIZERS)}")


def optimizer_bytes(trace: Trace, name: str) -> int:
    """Bytes of the state for all trainable parameters; a complex one has two numbers for each of them. Raises UsageError."""
    check_optimizer(name)
    elements = sum(
        parameter.elements * (2 if parameter.dtype.startswith("complex") else 1)
        for parameter in trace.parameters
        if parameter.kind == "parameter" and parameter.trainable
    )
    return STATE_ITEM_BYTES * OPTIMIZERS[name] * elements
