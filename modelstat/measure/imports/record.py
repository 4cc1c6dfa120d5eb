"""What a profile says, whoever wrote it: kernels with their time, their counters, and the ops that launched them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

Shapes = tuple[tuple[int, ...], ...]


class OpCall(msgspec.Struct, frozen=True):
    """One call of an operator around a kernel. ``index`` is the place of the call in the profile: two calls never share one.

    ``shapes`` are those of its tensors, in the order of its arguments; None where the profile has none.
    """

    name: str
    index: int
    shapes: Shapes | None = None


class MeasuredKernel(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of a kernel, or all launches of one name where a profile sums them up. On a CPU, an op without the ops inside it.

    ``seconds`` (s), ``flops`` and bytes (B) are sums over the launches; None where the profile does not say.
    """

    name: str
    seconds: float | None
    launches: int = 1
    flops: float | None = None
    dram_bytes: float | None = None
    l2_bytes: float | None = None
    l1_bytes: float | None = None
    calls: tuple[OpCall, ...] = ()
    """The ops around the launch, outermost first."""
    path: str = ""
    """The ranges around the launch that are no ops (module paths, as a user marks them), joined by ``/``."""
    step: int | None = None
    line: int | None = None
    """Where in the file it stands; None in files without lines."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One file. ``ordered``: the kernels are single launches in the order in which they ran, not sums by name.

    ``problems`` are sentences about what was left out, each with its line, and about what the file does not say.
    """

    file: str
    format: str
    kernels: tuple[MeasuredKernel, ...]
    ordered: bool
    problems: tuple[str, ...] = ()

    @property
    def seconds(self) -> float | None:
        """Time of all kernels (s); None where it is known of none."""
        return total(kernel.seconds for kernel in self.kernels)

    @property
    def flops(self) -> float | None:
        """FLOPs of all kernels that have counters; None without any."""
        return total(kernel.flops for kernel in self.kernels)

    @property
    def dram_bytes(self) -> float | None:
        """Bytes (B) between DRAM and the chip, of all kernels that have counters; None without any."""
        return total(kernel.dram_bytes for kernel in self.kernels)


def total(values: Iterable[float | None]) -> float | None:
    """The sum of those that are known, None if none is.

    >>> total([1.0, None, 2.0]), total([None])
    (3.0, None)
    """
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def by_name(kernels: tuple[MeasuredKernel, ...]) -> tuple[MeasuredKernel, ...]:
    """All launches of one name as one record, the longest first. A figure that one launch lacks is unknown for the name."""
    groups: dict[str, list[MeasuredKernel]] = {}
    for kernel in kernels:
        groups.setdefault(kernel.name, []).append(kernel)
    summed = [
        MeasuredKernel(
            name=name,
            seconds=whole([each.seconds for each in group]),
            launches=sum(each.launches for each in group),
            flops=whole([each.flops for each in group]),
            dram_bytes=whole([each.dram_bytes for each in group]),
            l2_bytes=whole([each.l2_bytes for each in group]),
            l1_bytes=whole([each.l1_bytes for each in group]),
        )
        for name, group in groups.items()
    ]
    return tuple(sorted(summed, key=lambda kernel: -(kernel.seconds or 0.0)))


def whole(values: list[float | None]) -> float | None:
    """The sum, None if one is unknown.

    >>> whole([1.0, 2.0]), whole([1.0, None])
    (3.0, None)
    """
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
