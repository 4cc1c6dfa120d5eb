"""What every origin gives: a Source, which builds a model and its example inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

    from modelstat.records import Swap


@dataclass
class Built:
    """A model and the example inputs of one call, ``model(*args, **kwargs)``.

    Tensors made from a shape are on the meta device. ``batch`` is what was prepended to the shapes, None where the
    inputs are used as they are. ``notes`` say what the user must know: a default input, a build with real weights. ``swaps`` is what
    was swapped in the model.
    """

    model: nn.Module
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    batch: int | None = None
    notes: tuple[str, ...] = ()
    swaps: tuple[Swap, ...] = ()


class Source(ABC):
    """One model, named but not built."""

    spec: str
    """The canonical spec."""
    precision: str | None = None
    """The precision that the source asks for, None for the model's own."""

    @abstractmethod
    def key(self) -> dict[str, str]:
        """Everything that decides what is built, without importing torch: origin, name, arguments, versions, digests."""

    @abstractmethod
    def build(self, inputs: str | None = None, batch: int | None = None, *, weights: bool = False) -> Built:
        """Build the model and its inputs. ``inputs`` is the text of ``--input``.

        Without ``weights`` no weight is allocated; with it they are real, seeded random numbers on the CPU.
        Raises SourceError, InputError, UsageError or MissingExtraError.
        """


def package_versions(names: Iterable[str]) -> dict[str, str]:
    """Installed version of each distribution, ``absent`` where there is none.

    >>> package_versions(["no-such-package"])
    {'version:no-such-package': 'absent'}
    """
    versions = {}
    for name in names:
        try:
            versions[f"version:{name}"] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[f"version:{name}"] = "absent"
    return versions
