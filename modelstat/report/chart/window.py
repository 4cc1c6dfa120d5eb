"""The part of the plane that a roofline shows, and where a point without FLOPs stands in it."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor, log10
from typing import Protocol

import msgspec

from modelstat.report.chart.device import Device

DEEPEST = 1e-9
"""Points below this share of the highest ceiling are not waited for: the axis ends there."""


class Placed(Protocol):
    """What has a place in a roofline: work, and the rates that its time makes of it."""

    @property
    def flops(self) -> float:
        """FLOPs."""
    @property
    def bytes(self) -> float:
        """Bytes moved (B)."""
    @property
    def intensity(self) -> float | None:
        """FLOP/B; None where nothing moves."""
    @property
    def rate(self) -> float | None:
        """FLOP/s; None where the time is not known."""
    @property
    def bandwidth(self) -> float | None:
        """B/s; None where the time is not known."""


class Window(msgspec.Struct, frozen=True):
    """Limits of both logarithmic axes (FLOP/B and FLOP/s).

    ``bytes_only`` is where on the horizontal axis points stand that move bytes but compute nothing, whose intensity of 0 a logarithm does
    not have: their height is ``bytes_only`` x bandwidth, so that their distance to the memory's roof is the true one.
    """

    low: float
    high: float
    bottom: float
    top: float
    bytes_only: float

    def position(self, intensity: float | None, rate: float | None, bandwidth: float | None) -> tuple[float, float] | None:
        """Where a point stands, None where its time is not known or nothing happens.

        >>> Window(0.01, 1e3, 1e9, 1e15, 0.02).position(2.0, 1e12, 5e11), Window(0.01, 1e3, 1e9, 1e15, 0.02).position(0.0, 0.0, 1e12)
        ((2.0, 1000000000000.0), (0.02, 20000000000.0))
        """
        if intensity and rate:
            return intensity, rate
        return (self.bytes_only, self.bytes_only * bandwidth) if bandwidth else None


def window(devices: Iterable[Device], points: Iterable[Placed]) -> Window:
    """The window that holds the points, and the ridge points of the devices' ceilings that are on."""
    shown, boards = list(points), list(devices)
    ceilings = [ceiling for board in boards for ceiling in board.ceilings if ceiling.on] or [
        ceiling for board in boards for ceiling in board.ceilings[:1]
    ]
    ridges = [ceiling.ridge for ceiling in ceilings] or [1.0]
    intensities = [point.intensity for point in shown if point.intensity]
    low = min([*intensities, min(ridges) / 10])
    copies = any(point.bytes and not point.flops for point in shown)
    bytes_only = 10 ** (floor(log10(low)) - 0.5)
    left = bytes_only / 2 if copies else low / 2
    high = max([*intensities, max(ridges) * 8]) * 2
    top = max([ceiling.flops for ceiling in ceilings] or [max(board.roofs[0].bandwidth for board in boards) * high]) * 3
    frame = Window(left, high, 1.0, top, bytes_only)
    heights = [place[1] for point in shown if (place := frame.position(point.intensity, point.rate, point.bandwidth))]
    roof = min(left * board.roofs[0].bandwidth for board in boards)
    top = max([top, *(height * 1.5 for height in heights)])  # what was measured may lie above every ceiling, and is shown
    return Window(left, high, max(min([*heights, roof]) / 2, top * DEEPEST), top, bytes_only)
