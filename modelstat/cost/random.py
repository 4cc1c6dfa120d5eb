"""Random numbers: drawing them is integer arithmetic, so it is bytes only; dropout multiplies by a mask and rescales."""

from __future__ import annotations

from modelstat.cost.operands import total_bytes
from modelstat.cost.registry import Work, register
from modelstat.records import Op

DRAWS = (
    "rand", "rand_like", "randn", "randn_like", "randint", "randint_like", "randperm", "normal", "normal_functional", "uniform", "random",
    "exponential", "geometric", "cauchy", "log_normal", "_sobol_engine_draw", "_fill_mem_eff_dropout_mask", "_cudnn_init_dropout_state",
    "_philox_normal", "_philox_uniform", "_philox_key_split", "_philox_key_fold_in",
)  # fmt: skip
"""Only written: a tensor that is given lends its shape, or is overwritten."""


@register("random", *(f"aten::{name}" for name in DRAWS))
def draw(op: Op) -> Work:
    """Writes what it draws; parameters that are tensors (mean, std) are read."""
    read = total_bytes(spec for name, spec in zip(op.names, op.inputs, strict=True) if name in ("mean", "std"))
    return Work(read=read, write=total_bytes(op.outputs or op.tensors("self")))


@register("random", "aten::bernoulli")
def bernoulli(op: Op) -> Work:
    """Reads probabilities; in place it overwrites self, and reads only a tensor of probabilities."""
    if not op.name.endswith("_"):
        return Work()
    return Work(read=total_bytes(op.tensors("p")))


@register("random", "aten::multinomial", "aten::binomial", "aten::poisson", "aten::_standard_gamma", "aten::_sample_dirichlet")
def sample(op: Op) -> Work:
    """Reads the parameters of the distribution; 1 per element for their running sum."""
    return Work(flops=op.inputs[0].elements)


@register(
    "random",
    "aten::native_dropout", "aten::_fused_dropout", "aten::dropout", "aten::feature_dropout", "aten::alpha_dropout",
    "aten::feature_alpha_dropout",
)  # fmt: skip
def dropout(op: Op) -> Work:
    """2 per element in training, a copy otherwise."""
    return Work(flops=2 * op.inputs[0].elements if op.argument("train", True) else 0)


@register("quantized", "quantized::dropout")
def quantized_dropout(op: Op) -> Work | None:
    """Nothing at inference, which is all that quantised models do."""
    return None
