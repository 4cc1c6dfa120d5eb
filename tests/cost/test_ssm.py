from __future__ import annotations

from modelstat.cost.registry import cost_of
from tests.cost.ops import op

B, D, L, N = 2, 32, 100, 16


def test_selective_scan() -> None:
    inputs = {"u": (B, D, L), "delta": (B, D, L), "A": (D, N), "B": (B, N, L), "C": (B, N, L)}
    cost = cost_of(op("mamba_ssm::selective_scan_fwd", inputs, (B, D, L)))
    assert (cost.macs, cost.flops) == (B * D * L * N, 7 * B * D * L * N + B * D * L)
    assert (cost.unit, cost.read, cost.write) == ("vector", 4 * (2 * B * D * L + D * N + 2 * B * N * L), 4 * B * D * L)


def test_skip_gate_bias_and_softplus() -> None:
    inputs = {
        "u": (B, D, L), "delta": (B, D, L), "A": (D, N), "B": (B, N, L), "C": (B, N, L), "D": (D,), "z": (B, D, L), "delta_bias": (D,),
    }  # fmt: skip
    cost = cost_of(op("mamba_ssm::selective_scan_fwd", inputs, (B, D, L), delta_softplus=True))
    assert cost.flops == B * D * L * (7 * N + 1 + 2 + 6 + 1 + 5)


def test_one_step() -> None:
    cost = cost_of(op("mamba_ssm::selective_state_update", {"state": (B, D, N), "x": (B, D)}, (B, D)))
    assert (cost.macs, cost.flops) == (B * D * N, B * D * (7 * N + 1))
