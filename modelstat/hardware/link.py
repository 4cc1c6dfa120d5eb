"""The link between host and GPU, as the database names it: ``4.0 x16``."""

from __future__ import annotations

from modelstat.hardware.gpu import Gpu

LANE_BYTES: dict[str, float] = {
    "1.0": 2.5e9 * 8 / 10 / 8,
    "2.0": 5e9 * 8 / 10 / 8,
    "3.0": 8e9 * 128 / 130 / 8,
    "4.0": 16e9 * 128 / 130 / 8,
    "5.0": 32e9 * 128 / 130 / 8,
    "6.0": 64e9 * 236 / 256 / 8,
}
"""Bytes per second (B/s) and direction of one PCIe lane: transfer rate x line code (6.0: the transaction bytes of a 256 byte flit),
from the PCI Express base specifications. Packet headers are not taken off."""


def link_bytes(gpu: Gpu) -> float | None:
    """Bytes per second (B/s) of a GPU's PCIe link in one direction; None where it has none, or one that is not known.

    >>> from modelstat.hardware.database import find
    >>> round(link_bytes(find("v100")) / 1e9, 2)
    15.75
    """
    generation, _, lanes = gpu.pcie.partition(" x")
    per_lane = LANE_BYTES.get(generation)
    return per_lane * int(lanes) if per_lane and lanes.isdecimal() else None
