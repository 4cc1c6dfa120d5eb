"""From the counters of Nsight Compute to FLOPs, bytes and time.

Per-thread instructions with their predicate on count one operation for an addition or a multiplication and two for a fused
multiply-add, at every width: ``smsp__sass_thread_inst_executed_op_{f,h,d}{add,mul,fma}_pred_on.sum`` (Nsight Compute documentation,
metric comparison with nvprof's flop_count_sp, _hp and _dp). A sector is 32 bytes (the same, memory tables). Tensor cores count their
operations themselves from Ampere on (``sm__ops_path_tensor_src_*_dst_*.sum``; a multiply-add is two); on Volta an instruction of the
tensor pipe is 512 FLOPs (Yang et al., Hierarchical Roofline Analysis, 2020, and Nsight Compute's tensor roofline section).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set

from modelstat.measure.imports.record import MeasuredKernel

SECTOR_BYTES = 32
VOLTA_FLOPS = 512
"""FLOPs of one instruction of Volta's tensor pipe, for a whole warp."""

_LANES = re.compile(r"sm(?:sp)?__sass_thread_inst_executed_op_([fhd])(add|mul|fma)_pred_on\.sum")
_TENSOR_OPS = re.compile(r"sm__ops_path_tensor_src_((?!u?int)\w+?)_dst_(\w+?)(_sparsity_o(?:n|ff))?\.sum")
_TENSOR_PIPE = re.compile(r"sm(?:sp)?__inst_executed_pipe_tensor\.sum")
_TIME = re.compile(r"gpu__time_duration\.(?:sum|avg|max)|Duration")

_BYTES: dict[str, tuple[tuple[tuple[str, ...], int], ...]] = {
    "dram_bytes": (
        (("dram__bytes.sum",), 1),
        (("dram__bytes_read.sum", "dram__bytes_write.sum"), 1),
        (("dram__sectors_read.sum", "dram__sectors_write.sum"), SECTOR_BYTES),
    ),
    "l2_bytes": (
        (("lts__t_bytes.sum",), 1),
        (("lts__t_sectors.sum",), SECTOR_BYTES),
        (("lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum"), SECTOR_BYTES),
    ),
    "l1_bytes": (
        (("l1tex__t_bytes.sum",), 1),
        (("l1tex__t_sectors.sum",), SECTOR_BYTES),
    ),
}
"""Field -> the first set of metrics that is there counts: their sum times the factor."""

METRICS = (
    "gpu__time_duration.sum",
    "dram__sectors_read.sum",
    "dram__sectors_write.sum",
    *(f"smsp__sass_thread_inst_executed_op_{kind}{op}_pred_on.sum" for kind in "fh" for op in ("add", "mul", "fma")),
)
COMMAND = f"ncu --csv --page raw --metrics {','.join(METRICS)} --log-file kernels.csv python your_script.py"
"""The command line that collects what a roofline needs."""


def is_known(metric: str) -> bool:
    """Whether a metric is one that anything is computed from."""
    return any(each.fullmatch(metric) for each in (_LANES, _TENSOR_OPS, _TENSOR_PIPE, _TIME)) or any(
        metric in names for choices in _BYTES.values() for names, _ in choices
    )


def kernel(
    name: str, metrics: Mapping[str, float], collected: Set[str], *, capability: str = "", line: int | None = None, launches: int = 1
) -> MeasuredKernel:
    """The kernel that a launch's ``metrics`` (SI units) describe.

    ``collected`` are the metrics of the whole file: where a launch lacks one of them that others have, what it belongs to is unknown.
    ``capability`` is the compute capability (``7.0``), empty where it is not known.
    """
    seconds = next((value for metric, value in metrics.items() if _TIME.fullmatch(metric)), None)
    return MeasuredKernel(
        name=name,
        seconds=seconds,
        launches=launches,
        flops=_flops(metrics, collected, capability),
        dram_bytes=_bytes("dram_bytes", metrics, collected),
        l2_bytes=_bytes("l2_bytes", metrics, collected),
        l1_bytes=_bytes("l1_bytes", metrics, collected),
        line=line,
    )


def missing(kernels: Iterable[MeasuredKernel], collected: Set[str]) -> tuple[str, ...]:
    """A sentence for what no kernel of a file has, with the command that collects it; and for a count that lacks a part."""
    everything = tuple(kernels)
    wanted = {"time": "seconds", "FLOPs": "flops", "DRAM bytes": "dram_bytes"}
    absent = [label for label, field in wanted.items() if all(getattr(each, field) is None for each in everything)]
    found = [f"the metrics for {', '.join(absent)} are missing; collect them with `{COMMAND}`"] if absent else []
    lanes = {match.groups() for metric in collected if (match := _LANES.fullmatch(metric))}
    kinds = sorted({kind for kind, _ in lanes})
    lacking = [f"{kind}{op}" for kind in kinds for op in ("add", "mul", "fma") if (kind, op) not in lanes]
    if lacking:
        found.append(f"FLOPs lack those of {', '.join(lacking)} instructions, which were not collected")
    return tuple(found)


def _bytes(field: str, metrics: Mapping[str, float], collected: Set[str]) -> float | None:
    for names, factor in _BYTES[field]:
        if collected >= set(names):
            return factor * sum(metrics[name] for name in names) if metrics.keys() >= set(names) else None
    return None


def _flops(metrics: Mapping[str, float], collected: Set[str], capability: str) -> float | None:
    lanes = {metric: match for metric in collected if (match := _LANES.fullmatch(metric))}
    tensor = _tensor_metrics(collected)
    if tensor:
        factor: float | None = 1
    else:
        tensor = {metric for metric in collected if _TENSOR_PIPE.fullmatch(metric)}
        factor = VOLTA_FLOPS if not capability or capability.startswith("7.0") or capability.startswith("7.2") else None
    if not lanes and (not tensor or factor is None):
        return None
    needed = {*lanes, *tensor}
    if not metrics.keys() >= needed:
        return None
    if factor is None and any(metrics[metric] for metric in tensor):
        return None  # tensor cores were busy, and nobody knows with how many operations
    vector = sum(metrics[metric] * (2 if match.group(2) == "fma" else 1) for metric, match in lanes.items())
    return vector + (factor or 0) * sum(metrics[metric] for metric in tensor)


def _tensor_metrics(collected: Set[str]) -> set[str]:
    """The counters of tensor operations, each operation once: a total stands for its sparse and dense parts."""
    found = {metric: match for metric in collected if (match := _TENSOR_OPS.fullmatch(metric))}
    totals = {match.groups()[:2] for match in found.values() if not match.group(3)}
    return {metric for metric, match in found.items() if not match.group(3) or match.groups()[:2] not in totals}
