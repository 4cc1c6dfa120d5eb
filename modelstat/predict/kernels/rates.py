"""What a GPU really gives a kernel: the datasheet, less what power, issue slots and memory take away.

Every correction belongs to an architecture family or a kind of memory, never to a GPU; ``rates.json`` has the numbers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from modelstat.hardware.gpu import Gpu
from modelstat.predict.kernels.arithmetic import Quantity
from modelstat.predict.kernels.constants import Constants, constants

_FAMILIES: tuple[tuple[str, str, float], ...] = (
    ("Maxwell", "maxwell", 5.3), ("Pascal GP100", "gp100", 6.0), ("Pascal", "pascal", 6.1), ("Volta", "volta", 7.0),
    ("Turing", "turing", 7.5), ("Ampere GA100", "ga100", 8.0), ("Ampere", "ampere", 8.6), ("Ada", "ada", 8.9), ("Hopper", "hopper", 9.0),
    ("Blackwell GB20x", "gb20x", 12.0), ("Blackwell", "blackwell", 10.0), ("CDNA", "cdna", 9.0), ("RDNA", "rdna", 8.6),
    ("GCN", "cdna", 7.0), ("Xe", "xe", 8.6), ("Apple", "apple", 8.6), ("Gaudi", "gaudi", 9.0), ("TPU", "tpu", 9.0),
)  # fmt: skip
"""Start of the database's architecture -> family, and the compute capability whose kernels it is taken to resemble."""

_PARTITIONED_L2 = frozenset(("turing", "ga100", "hopper", "blackwell"))
"""Two L2 partitions: what one side's SMs read of the other side is kept twice, so a re-read starts to miss at half the size."""

_FULL_ISSUE = frozenset(("maxwell", "gp100", "pascal", "volta", "turing", "ga100", "cdna", "gaudi", "tpu"))
"""Families whose fp32 lanes do not share issue slots: all others have 128 lanes behind 4 schedulers that also issue everything else."""


class Rates(NamedTuple):
    """A GPU for one dtype of arithmetic. Fields are floats, or in a fit arrays with an entry a measurement."""

    peak: Quantity
    """Datasheet peak of contractions (FLOP/s)."""
    issue: Quantity
    """Peak that the schedulers can issue at the clock that the board really runs at (FLOP/s)."""
    power: Quantity
    """Contractions that the board's power sustains (FLOP/s); infinite where that is not known."""
    vector: Quantity
    """fp32 lanes, a fused multiply-add being 2 (FLOP/s), as far as power and issue slots allow; infinite on a GPU without the figure."""
    bandwidth: Quantity
    """Datasheet memory bandwidth (B/s)."""
    memory: Quantity
    """What a long stream reaches of it (B/s)."""
    l2_bytes: Quantity
    """Last-level cache as one SM's re-reads see it (B)."""
    sms: Quantity
    clock_hz: Quantity
    threads: Quantity
    """Threads that an SM holds."""
    shared_bytes: Quantity
    """Shared memory of an SM (B)."""
    capability: Quantity
    """Compute capability as a number, 8.6 for GA10x; of other vendors, the one whose kernels theirs resemble."""
    feed: Quantity
    """Rate of the tensor cores as a share of what the chip's SMs are built to feed: 0.5 on boards whose rate is halved, else 1."""
    tensor: bool
    """Contractions run on tensor cores."""
    family: str


@lru_cache(maxsize=512)
def rates(gpu: Gpu, dtype: str) -> Rates:
    """The rates of ``gpu`` for arithmetic in ``dtype`` (a torch dtype's name, or ``tf32``). Raises MissingPeakError."""
    return measured_rates(gpu, dtype, constants("rates", "values"))


def measured_rates(gpu: Gpu, dtype: str, c: Constants) -> Rates:
    """The same with constants that are being fitted."""
    family, capability = architecture_family(gpu)
    found = gpu.peak(dtype)
    tensor = found.column.endswith("_tensor") or found.column in ("tf32", "fp32_matrix")
    peak = found.flops
    # GeForce boards have head-room over the boost clock that is printed on them, and use it.
    faster = c["clock_geforce"] if gpu.segment == "geforce" else 1.0
    lanes_share = family not in _FULL_ISSUE
    issue = peak * faster * (c["issue_shared_lanes"] if lanes_share and not tensor else 1.0)
    if dtype == "float16" and found.column == "fp32":
        # Halves are only how the numbers are stored: they are widened on the way in, and fp32's faster algorithms are missing.
        issue *= c["half_on_fp32_lanes"]
    power = _power_flops(gpu, family, tensor, peak, c)
    sms = float(gpu.sms or (gpu.cores or 8192) / 64)
    fp32 = gpu.fp32 * 1e12 if gpu.fp32 is not None else float("inf")
    vector = min(fp32 * faster * (c["issue_shared_lanes"] if lanes_share else 1.0), _power_flops(gpu, family, False, fp32, c))
    l2_bytes = (gpu.l2_mb or 0.0) * 2**20 * (0.5 if family in _PARTITIONED_L2 else 1.0)
    return Rates(
        peak=peak,
        issue=issue,
        power=power,
        vector=vector,
        bandwidth=gpu.bandwidth_bytes,
        memory=gpu.bandwidth_bytes * c[f"memory_{memory_kind(gpu, family)}"],
        l2_bytes=max(l2_bytes, 2.0**20),
        sms=sms,
        clock_hz=(gpu.boost_mhz or 1500.0) * 1e6 * faster,
        threads=1024.0 if capability == 7.5 else 1536.0 if 8.6 <= capability < 9.0 or capability >= 12.0 else 2048.0,
        shared_bytes=(gpu.smem_kb_per_sm or 64.0) * 1024,
        capability=capability,
        feed=0.5 if tensor and gpu.tensor_class != "full" else 1.0,
        tensor=tensor,
        family=family,
    )


def architecture_family(gpu: Gpu) -> tuple[str, float]:
    """The family, and the compute capability as a number. An unknown architecture is taken for the newest."""
    for start, family, capability in _FAMILIES:
        if gpu.architecture.startswith(start):
            return family, capability
    return "unknown", 9.0


def memory_kind(gpu: Gpu, family: str) -> str:
    """Which memory efficiency counts: up to Turing (Volta's aside) one for all memories, later the kind of memory decides.

    GDDR of data-centre and workstation boards pays for error correction, which has no lanes of its own there.
    """
    if family in ("maxwell", "gp100", "pascal", "turing"):
        return "before_ampere"
    if gpu.memory_type.startswith("HBM"):
        return "hbm"
    if gpu.memory_type.startswith("GDDR"):
        return "gddr" if gpu.segment == "geforce" else "gddr_ecc"
    return "shared"


def _power_flops(gpu: Gpu, family: str, tensor: bool, peak: float, c: Constants) -> float:
    """FLOP/s that the TDP sustains: TDP / W, with W in watts per sustained TFLOP/s (16-bit rate on tensor cores)."""
    if gpu.tdp_w is None or family in ("apple", "tpu", "gaudi", "xe", "unknown"):
        return float("inf")
    if not tensor:
        key = family if family in ("ada", "hopper", "blackwell", "gb20x") else "7_to_16_nm"
        return gpu.tdp_w / c[f"watts_fp32_{key}"] * 1e12
    watts = c.get(f"watts_tensor_{family}")
    if watts is None:
        return float("inf")
    # The same units do twice the operations on half the bits for about the same power.
    reference = next((value for value in (gpu.fp16_tensor, gpu.bf16_tensor) if value), peak / 1e12)
    return gpu.tdp_w / watts * 1e12 * (peak / 1e12 / reference)
