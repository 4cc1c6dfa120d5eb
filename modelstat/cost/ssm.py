"""State-space models: the selective scan of Mamba and what stands beside it in fused kernels.

Per batch, channel (D), step (L) and state (N): delta A 1, exp 1, B (delta u) 1, the recurrence h = a h + b 2, and the contraction
y = C h, one MAC. The scan runs on vector lanes.
"""

from __future__ import annotations

from modelstat.cost.operands import operand
from modelstat.cost.registry import Work, register
from modelstat.records import Op


def scan_work(batch: int, channels: int, steps: int, states: int, per_output: int) -> Work:
    """``per_output``: FLOPs per (batch, channel, step) beside the states."""
    outputs = batch * channels * steps
    return Work(macs=outputs * states, flops=outputs * (5 * states + per_output), outputs=outputs, unit="vector")


@register(
    "ssm",
    "modelstat::selective_scan", "mamba_ssm::selective_scan_fwd", "mamba_ssm::selective_scan", "selective_scan_cuda::fwd",
    "selective_scan_cuda_core::fwd", "selective_scan_cuda_oflex::fwd", "vmamba::selective_scan",
)  # fmt: skip
def selective_scan(op: Op) -> Work:
    """u and delta (B, D, L), A (D, N), B and C (B, N, L) or (B, groups, N, L), optional D (D), z (B, D, L), delta_bias (D).

    Per output: delta u 1; skip connection D u 2; gate silu(z) 5 + 1; bias of delta 1; softplus of delta 5.
    """
    batch, channels, steps = operand(op, "u").shape
    states = operand(op, "A").shape[-1]
    per_output = 1
    per_output += 2 if op.tensor("D") is not None else 0
    per_output += 6 if op.tensor("z") is not None or op.tensor("z_") is not None else 0
    per_output += 1 if op.tensor("delta_bias") is not None else 0
    per_output += 5 if op.argument("delta_softplus", False) else 0
    return scan_work(batch, channels, steps, states, per_output)


@register("ssm", "mamba_ssm::selective_state_update", "modelstat::selective_state_update")
def state_update(op: Op) -> Work:
    """One step: state (B, D, N) or (B, heads, D, N) is read and written. Per output: delta u 1, and skip and gate where given."""
    state = operand(op, "state")
    states = state.shape[-1]
    per_output = 1 + (2 if op.tensor("D") is not None else 0) + (6 if op.tensor("z") is not None else 0)
    return scan_work(1, state.elements // max(states, 1), 1, states, per_output)
