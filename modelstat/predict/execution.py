"""How a model is run: what issues its kernels, and what a compiler does to them first."""

from __future__ import annotations

from typing import Literal

import msgspec

from modelstat.errors import UsageError

HOSTS: dict[str, float] = {"fast": 11e-6, "typical": 26e-6, "slow": 45e-6}
"""Seconds (s) that a host needs to issue one eager op, by kind of host: what whole models at small batches show of an H100 box, a
2080 Ti box and an A100 box (pytorch-gpu-benchmark and NeuSight measurements, read 2026-11-30). The cost belongs to the host's
processor and software, not to its GPU."""

COMPILED_HOST = 0.35
"""A compiled model's generated code issues a kernel in about this share of an eager op's time: no dispatcher, no Python module
(assumed; a compiled launch is 4-10 us where an eager op is 11-26 us)."""

GRAPH_KERNEL_SECONDS = 1.7e-6
"""Start of a kernel inside a replayed CUDA graph (1.7-2.5 us an op were measured; replayed-graph kernel tables, 2026-11-30)."""

Mode = Literal["eager", "compile"]

MODES: tuple[Mode, ...] = ("eager", "compile")


class Execution(msgspec.Struct, frozen=True):
    """Execution mode, layout and host.

    ``mode`` eager runs each op as its own kernel, compile as torch.compile fuses them. ``cuda_graph`` replays all of it with one
    launch. ``channels_last`` keeps images with their channels innermost. ``host_seconds`` (s) is the host's cost to issue one eager op.
    """

    mode: Mode = "eager"
    cuda_graph: bool = False
    channels_last: bool = False
    host_seconds: float = HOSTS["typical"]

    @property
    def walks_channels_last(self) -> bool:
        """Whether the model is walked on images with their channels innermost; a compiler decides on layouts by itself."""
        return self.channels_last and self.mode == "eager"

    @property
    def issue_seconds(self) -> float:
        """Seconds (s) from one issued kernel to the next."""
        if self.cuda_graph:
            return 0.0
        return self.host_seconds * (COMPILED_HOST if self.mode == "compile" else 1.0)

    @property
    def text(self) -> str:
        """For a report: ``eager, host 26 us an op``.

        >>> Execution(mode="compile", cuda_graph=True).text
        'compile, CUDA graph'
        """
        parts: list[str] = [self.mode]
        if self.channels_last:
            parts.append("channels last")
        parts.append("CUDA graph" if self.cuda_graph else f"host {self.host_seconds * 1e6:g} us an op")
        return ", ".join(parts)


def host_seconds(text: str) -> float:
    """Seconds (s) an op for ``fast``, ``typical``, ``slow`` or a number of microseconds. Raises UsageError.

    >>> host_seconds("fast"), host_seconds("15.5")
    (1.1e-05, 1.55e-05)
    """
    if text in HOSTS:
        return HOSTS[text]
    try:
        microseconds = float(text.lower().removesuffix("us").strip())
    except ValueError:
        microseconds = -1.0
    if not 0.0 <= microseconds < 1e6:
        raise UsageError(f"host {text!r}: give {', '.join(HOSTS)}, or the microseconds that it needs to issue an op, such as 20")
    return microseconds / 1e6


def parse_execution(mode: str = "eager", host: str = "typical", *, cuda_graph: bool = False, channels_last: bool = False) -> Execution:
    """An execution from the texts that a user gives. Raises UsageError for an unknown mode or host.

    >>> parse_execution("compile", "20").issue_seconds == 20e-6 * COMPILED_HOST
    True
    """
    wanted = mode.strip().lower()
    known = next((each for each in MODES if each == wanted), None)
    if known is None:
        raise UsageError(f"mode {mode!r}: choose from {', '.join(MODES)}")
    return Execution(known, cuda_graph, channels_last, host_seconds(host.strip().lower()))
