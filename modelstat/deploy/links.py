"""What lies between GPUs: bytes a second and seconds a hop."""

from __future__ import annotations

import re

import msgspec

from modelstat.errors import UsageError
from modelstat.hardware.gpu import Gpu

PCIE_LANE_GBS = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
"""GB/s of one lane in one direction by generation: 8, 16 and 32 GT/s with 128b/130b coding from 3.0 on (PCI-SIG)."""

NO_LINK = "neither interconnect nor PCIe in the database: several do not work together"

START_SECONDS = 6.6e-6
"""Before a ring moves anything: NCCL's own constant for its low-latency protocol (src/graph/tuning.cc, baseLat, read 2026-11-30)."""
HOP_SECONDS = {"interconnect": 0.6e-6, "PCIe": 1.0e-6}
"""One step of a ring over NVLink and over PCIe (the same file, hwLat)."""


class Link(msgspec.Struct, frozen=True):
    """What one GPU sends to its neighbour: ``bytes_per_second`` in one direction, ``hop_seconds`` a step, and where that is from.

    ``start_seconds`` is paid once a collective.
    """

    bytes_per_second: float
    hop_seconds: float = 0.0
    start_seconds: float = 0.0
    source: str = ""


def link(gpu: Gpu) -> Link | None:
    """The link of a GPU's database row: half of its interconnect's figure, which sums both directions (Gaudi's are one way).

    Where that is empty PCIe, and the source says so; None where neither is known.
    """
    if gpu.interconnect_gbs is not None:
        one_way = gpu.key.startswith("gaudi")
        rate = gpu.interconnect_gbs * (1.0 if one_way else 0.5)
        source = f"interconnect, {gpu.interconnect_gbs:g} GB/s {'one way' if one_way else 'in both directions together'}"
        return Link(rate * 1e9, HOP_SECONDS["interconnect"], START_SECONDS, source)
    found = re.fullmatch(r"(\d)\.\d x(\d+)", gpu.pcie)
    lane = PCIE_LANE_GBS.get(int(found[1])) if found else None
    if found is None or lane is None:
        return None
    return Link(lane * int(found[2]) * 1e9, HOP_SECONDS["PCIe"], START_SECONDS, f"PCIe {gpu.pcie}, as no interconnect is known")


def link_between(gpu: Gpu) -> Link:
    """The link between GPUs that work together. Raises UsageError where none is known."""
    found = link(gpu)
    if found is None:
        raise UsageError(f"{gpu.name} ({gpu.key}) has {NO_LINK}")
    return found
