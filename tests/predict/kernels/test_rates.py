from __future__ import annotations

import pytest

from modelstat.errors import MissingPeakError
from modelstat.hardware.database import all_gpus, find
from modelstat.predict.kernels.constants import constants
from modelstat.predict.kernels.rates import architecture_family, memory_kind, rates

C = constants("rates", "values")


@pytest.mark.parametrize(
    ("gpu", "dtype", "issue", "power"),
    [
        # fp32: TDP / watts of a sustained TFLOP/s against the datasheet's peak.
        ("a100-pcie-40", "float32", 19.5e12, 250 / C["watts_fp32_7_to_16_nm"] * 1e12),
        ("t4", "float32", 8.1e12, 70 / C["watts_fp32_7_to_16_nm"] * 1e12),
        # 128 lanes behind 4 schedulers, and the clock of a GeForce board.
        ("l4", "float32", 30.3e12 * C["issue_shared_lanes"], 72 / C["watts_fp32_ada"] * 1e12),
        ("rtx-4090", "float32", 82.6e12 * C["issue_shared_lanes"] * C["clock_geforce"], 450 / C["watts_fp32_ada"] * 1e12),
        # Tensor cores have watts of their own; half the bits, twice the rate for the same power.
        ("l40s", "bfloat16", 362.05e12, 350 / C["watts_tensor_ada"] * 1e12),
        ("l40s", "tf32", 183.2e12, 350 / C["watts_tensor_ada"] * 1e12 * 183.2 / 362.05),
        ("h100-sxm", "float16", 989.4e12, 700 / C["watts_tensor_hopper"] * 1e12),
        ("v100", "float16", 112e12, float("inf")),
    ],
)
def test_issue_and_power(gpu: str, dtype: str, issue: float, power: float) -> None:
    found = rates(find(gpu), dtype)
    assert found.issue == pytest.approx(issue)
    assert found.power == pytest.approx(power)


@pytest.mark.parametrize(
    ("gpu", "kind"),
    [
        ("p100-pcie", "before_ampere"), ("t4", "before_ampere"), ("v100", "hbm"), ("a100", "hbm"), ("a40", "gddr_ecc"),
        ("l40s", "gddr_ecc"), ("rtx-3090", "gddr"), ("m1", "shared"),
    ],
)  # fmt: skip
def test_memory(gpu: str, kind: str) -> None:
    record = find(gpu)
    assert memory_kind(record, architecture_family(record)[0]) == kind
    assert rates(record, "float32").memory == pytest.approx(record.bandwidth_gbs * 1e9 * C[f"memory_{kind}"])


def test_a_partitioned_cache_counts_half() -> None:
    assert rates(find("a100"), "float32").l2_bytes == 40 * 2**20 / 2
    assert rates(find("l40s"), "float32").l2_bytes == 96 * 2**20


def test_tensor_cores_of_geforce_boards_are_fed_better() -> None:
    assert rates(find("rtx-3090"), "float16").feed == 0.5
    assert rates(find("rtx-3090"), "float32").feed == 1.0
    assert rates(find("a40"), "float16").feed == 1.0


def test_a_missing_precision_is_said() -> None:
    with pytest.raises(MissingPeakError, match="bfloat16"):
        rates(find("v100"), "bfloat16")


def test_every_gpu_has_rates_for_what_it_has_peaks_for() -> None:
    for gpu in all_gpus():
        for precision in gpu.precisions:
            found = rates(gpu, precision)
            numbers = [value for value in found if isinstance(value, float)]
            assert all(number > 0 for number in numbers), gpu.key
            assert found.memory < found.bandwidth
