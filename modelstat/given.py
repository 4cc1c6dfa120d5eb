"""What callers may give in several ways: one value or many, a GPU by name or as a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modelstat.hardware.gpu import Gpu


def listed(given: Any) -> list[Any]:
    """One value or a sequence of them as a list, empty for nothing."""
    return [] if given is None else [given] if isinstance(given, (str, int)) else list(given)


def several(given: Any) -> tuple[Any, ...]:
    """One value, a sequence of them without repetitions, or (None,) for nothing."""
    found = (given,) if given is None or isinstance(given, (str, int)) else tuple(given)
    return tuple(dict.fromkeys(found)) or (None,)


def given_gpus(gpu: str | Gpu | Sequence[str | Gpu] | None) -> tuple[Gpu, ...]:
    """The GPUs that an argument names. Raises UnknownGpuError or GpuDefinitionError."""
    if gpu is None:
        return ()
    from modelstat.hardware.database import resolve

    named = [gpu] if isinstance(gpu, str) or not isinstance(gpu, Sequence) else list(gpu)
    found: list[Gpu] = []
    for one in named:
        found.extend(resolve([one]) if isinstance(one, str) else [one])
    return tuple(found)


def fleet_gpus(gpu: str | Gpu | Sequence[str | Gpu]) -> tuple[Gpu, ...]:
    """:func:`given_gpus`, or the whole database for ``all``."""
    from modelstat.hardware.database import all_gpus

    return tuple(all_gpus()) if gpu in ("all", ["all"]) else given_gpus(gpu)
